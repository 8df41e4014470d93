"""Where models grow: time and memory by size, beside PyTorch, a script for each kind of growth."""
