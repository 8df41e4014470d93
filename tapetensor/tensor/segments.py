"""Sums of slices that belong together, as the neighbours of a node or the words of a text do."""

from __future__ import annotations

from tapetensor.arguments import as_size
from tapetensor.kernels import indexing
from tapetensor.rules.dims import sized
from tapetensor.rules.indexing import check_segments
from tapetensor.rules.refusals import refusal
from tapetensor.tape import NoneTape
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import check_numeric, check_plain, check_tensor
from tapetensor.tensor.indexing import I
from tapetensor.tensor.labels import check_labels
from tapetensor.tensor.tensor import Tensor
from tapetensor.typing import Ds, M, N, R, T


def segment_sum(
    x: Tensor[tuple[M, *Ds], T, R], segments: Tensor[tuple[M], NoneTape, I], count: N
) -> Tensor[tuple[N, *Ds], T, R]:
    """Return the sums of the slices along the first axis that name the same segment.

        y[s] = sum of x[i] over all i with segments[i] == s;  0 where there is none

    The reverse of ``table.take(segments)``; ``segment_sum(x, segments, n)`` is added to a tensor
    with ``+``, as index_add and scatter_add do elsewhere.

    Shape: ``(M, *Ds), (M) -> (N, *Ds)`` for ``count: N``.
    Derivative: each slice gets the cotangent of its segment.

    Args:
        x: what is added up.
        segments: the number of the segment of each slice, from 0 to ``count - 1``.
        count: how many segments there are.

    Raises:
        ShapeError: if there are not as many segments as slices.
        DTypeError: if `segments` are not integers, or `x` is bool.
        AxisError: if a number is none of a segment.
        ArgumentTypeError: if an argument is of the wrong kind.
        ArgumentValueError: if `count` is negative.
        UntracedTensorError: if `segments` own a tape.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> words = tt.from_numpy([1.0, 2.0, 4.0], shape=(3,))
    >>> segment_sum(words, tt.from_numpy([0, 0, 2], shape=(3,), dtype=np.int64), 3)
    Tensor([3., 0., 4.], shape=(3,), dtype=float32, NoneTape)
    """
    check_tensor("segment_sum", "the first operand", x)
    check_numeric("segment_sum", x)
    check_plain("segment_sum", "segments", segments, "they are positions: write them as integers")
    number = as_size("segment_sum", "count", count)
    if x._array.ndim == 0 or segments._array.shape != x._array.shape[:1]:
        shapes = sized(x._array.shape), sized(segments._array.shape)
        raise refusal(lambda: check_segments("segment_sum", *shapes))
    check_labels("segment_sum", segments, number, names=("segments", "segments"))
    return apply(indexing.segment_sum, (x, segments), (number,), keeps_dtype=False)
