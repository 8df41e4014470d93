"""Kinds of arrays: numpy's, another library's, stand-ins; their shapes and dtypes."""
