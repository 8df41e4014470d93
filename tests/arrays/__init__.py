"""Tensors over arrays that are not numpy's."""
