"""Single ops and layers beside PyTorch's."""
