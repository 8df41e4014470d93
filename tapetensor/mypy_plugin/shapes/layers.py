"""Layers that keep the size of their input, or nearly so, and refuse others.

Plain typing says so too, but of overloads by the tape mypy explains the first, which is about the
tape, and it says so once for each. The sentences are those of the run time.
"""

from __future__ import annotations

from tapetensor.mypy_plugin.shapes.calls import Answer, Call, MismatchError
from tapetensor.mypy_plugin.shapes.reading import read_dim
from tapetensor.rules.dims import ANY, Dim, Dims, differ, written


def batch_norm_1d(call: Call) -> Answer:
    """Refuse an input of `BatchNorm1d` that does not fit."""
    return _normalized(call, "(B, {0}) or (B, {0}, L)", ranks=(2, 3), axis=1)


def batch_norm_2d(call: Call) -> Answer:
    """Refuse an input of `BatchNorm2d` that does not fit."""
    return _normalized(call, "(B, {0}, H, W) or ({0}, H, W)", ranks=(3, 4), axis=-3)


def recurrent(call: Call) -> Answer:
    """Refuse an input of a recurrent layer that does not fit."""
    shape = _with_features(call)
    if len(shape) != 3:
        raise MismatchError(
            "the input must have shape (batch, steps, features) with one step or more, got "
            f"{written(shape)}"
        )
    return None


def cell(call: Call) -> Answer:
    """Refuse an input of a recurrent cell that does not fit."""
    shape = _with_features(call)
    if len(shape) != 2:
        raise MismatchError(f"the input must have shape (batch, features), got {written(shape)}")
    return None


def _normalized(call: Call, wanted: str, ranks: tuple[int, int], axis: int) -> Answer:
    shape, channels = call.operand("x").dims, _size(call)
    if len(shape) not in ranks or differ(shape[axis], channels):
        raise MismatchError(
            f"the input must have shape {wanted.format(channels)}, got {written(shape)}"
        )
    return None


def _with_features(call: Call) -> Dims:
    """Return the shape of an input whose last axis has the size of the layer."""
    shape, features = call.operand("x").dims, _size(call)
    if not shape or differ(shape[-1], features):
        raise MismatchError(
            f"the last axis of the input must have size {features}, got shape {written(shape)}"
        )
    return shape


def _size(call: Call) -> Dim:
    """Return the size that the layer takes."""
    size = read_dim(call.layer[0])
    return ANY if size is None else size
