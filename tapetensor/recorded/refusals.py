"""How the arrays of this room refuse."""

from __future__ import annotations


class UnrecordedError(TypeError):
    """An array was used in a way whose derivative is not known; the op is named further up."""


class UnsupportedError(UnrecordedError):
    """A function was called with options that its kernel does not have; it is named next door."""


class MissingAttributeError(UnrecordedError, AttributeError):
    """An array was asked for a method that it does not have."""
