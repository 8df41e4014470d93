"""The mistakes that people make, each as a function from a program to its wrong forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from benchmarks.static.operators import arguments, axes, sizes, tapes
from benchmarks.static.source import Edit, Source

Operator = Callable[[Source], Iterator[Edit]]

OPERATORS: Mapping[str, Operator] = {
    "two dims swapped": sizes.dims_swapped,
    "wrong layer size": sizes.wrong_layer_size,
    "wrong size of data": sizes.wrong_size_of_data,
    "reshape to a wrong size": sizes.wrong_reshape,
    "transpose missing": axes.transpose_missing,
    "transpose doubled": axes.transpose_doubled,
    "wrong axis": axes.wrong_axis,
    "wrong order of axes": axes.wrong_permutation,
    "wrong concat axis": axes.wrong_concat_axis,
    "keepdims forgotten": axes.keepdims_forgotten,
    "arguments swapped": arguments.swapped,
    "wrong variable": arguments.wrong_variable,
    "float64 into float32": arguments.other_dtype,
    "backward without trace": tapes.trace_missing,
    "backward of a non-scalar": tapes.reduction_missing,
    "trace twice": tapes.traced_twice,
    "target with a tape": tapes.target_traced,
}
