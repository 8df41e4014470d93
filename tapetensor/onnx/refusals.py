"""The error for what has no form in ONNX."""

from __future__ import annotations

from tapetensor.errors import TraceError
from tapetensor.pictures import Place


def refusal(what: str, place: Place | None, cure: str = "") -> TraceError:
    """Return the error, with the place in the user's program."""
    told = f"export: {what}; {cure or 'compute it outside of what is exported'}"
    return TraceError(f"{place}: {told}" if place else told)
