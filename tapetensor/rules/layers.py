"""Shapes that layers take."""

from __future__ import annotations

from tapetensor.errors import ShapeError
from tapetensor.rules.dims import ANY, Dim, Dims, computed, differ, product, written


def check_features(op: str, shape: Dims, features: Dim) -> None:
    """Raise ShapeError if the last axis of an input surely has not the size of the layer."""
    if not shape or differ(shape[-1], features):
        raise ShapeError(
            f"{op}: the last axis of the input must have size {features}, got shape "
            f"{written(shape)}"
        )


def batch_norm_1d(op: str, shape: Dims, channels: Dim) -> None:
    """Raise ShapeError if `BatchNorm1d` does not take a shape."""
    if len(shape) not in (2, 3) or differ(shape[1], channels):
        wanted = f"(B, {channels}) or (B, {channels}, L)"
        raise ShapeError(f"{op}: the input must have shape {wanted}, got {written(shape)}")


def batch_norm_2d(op: str, shape: Dims, channels: Dim) -> None:
    """Raise ShapeError if `BatchNorm2d` does not take a shape."""
    if len(shape) not in (3, 4) or differ(shape[-3], channels):
        wanted = f"(B, {channels}, H, W) or ({channels}, H, W)"
        raise ShapeError(f"{op}: the input must have shape {wanted}, got {written(shape)}")


def check_variance(op: str, shape: Dims, channels: Dim) -> None:
    """Raise ShapeError if a training input has one value per channel, which has no variance."""
    count = computed(lambda all_values, each: all_values / each or ANY, product(shape), channels)
    if count.literal in (0, 1):
        raise ShapeError(
            f"{op}: a variance needs two values per channel or more, a training input of shape "
            f"{written(shape)} has fewer; tapetensor.data.batches_exact leaves out a last batch "
            "that is smaller than the others"
        )


def recurrent(op: str, shape: Dims, features: Dim) -> None:
    """Raise ShapeError if a recurrent layer does not take a shape."""
    check_features(op, shape, features)
    if len(shape) != 3 or shape[1].literal == 0:
        raise ShapeError(
            f"{op}: the input must have shape (batch, steps, features) with one step or more, got "
            f"{written(shape)}"
        )


def recurrent_cell(op: str, shape: Dims, features: Dim) -> None:
    """Raise ShapeError if the cell of a recurrent layer does not take a shape."""
    check_features(op, shape, features)
    if len(shape) != 2:
        raise ShapeError(f"{op}: the input must have shape (batch, features), got {written(shape)}")
