"""A part of a model that is run twice and kept once."""
