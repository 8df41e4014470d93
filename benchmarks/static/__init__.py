"""How many mistakes a type checker finds: programs, mistakes put into them, and the count."""
