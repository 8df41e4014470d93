"""Small valid programs, of which the benchmark makes wrong ones."""
