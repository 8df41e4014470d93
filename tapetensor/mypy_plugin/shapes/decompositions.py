"""Matrices taken apart: how many rows and columns the results have."""

from __future__ import annotations

from tapetensor.mypy_plugin.shapes.calls import Answer, Call, of_all_shapes
from tapetensor.mypy_plugin.shapes.contraction import side_of
from tapetensor.rules.dims import ANY, Dim, Dims, Size
from tapetensor.rules.products import check_matrices


@of_all_shapes
def slogdet(call: Call) -> Answer:
    """Return the results of `slogdet`: two numbers for each matrix."""
    side_of(call)
    leading = call.receiver.dims[:-2]
    return _results(call, leading, leading)


@of_all_shapes
def eigh(call: Call) -> Answer:
    """Return the results of `eigh`: as many values and vectors as rows."""
    size, leading = side_of(call), call.receiver.dims[:-2]
    return _results(call, (*leading, size), (*leading, size, size))


@of_all_shapes
def qr(call: Call) -> Answer:
    """Return the results of `qr`."""
    leading, rows, columns = _matrices(call)
    size = _smaller(rows, columns)
    return _results(call, (*leading, rows, size), (*leading, size, columns))


@of_all_shapes
def svd(call: Call) -> Answer:
    """Return the results of `svd`."""
    leading, rows, columns = _matrices(call)
    size = _smaller(rows, columns)
    return _results(call, (*leading, rows, size), (*leading, size), (*leading, size, columns))


@of_all_shapes
def pinv(call: Call) -> Answer:
    """Return the result of `pinv`, whose matrices lie."""
    leading, rows, columns = _matrices(call)
    return call.like(call.receiver, (*leading, columns, rows))


def _matrices(call: Call) -> tuple[Dims, Dim, Dim]:
    shape = call.receiver.dims
    check_matrices(call.op, shape)
    return shape[:-2], shape[-2], shape[-1]


def _smaller(rows: Dim, columns: Dim) -> Dim:
    if rows.literal is not None and columns.literal is not None:
        return Size.of(min(rows.literal, columns.literal))
    return rows if rows == columns else ANY


def _results(call: Call, *shapes: Dims) -> Answer:
    results = zip(call.results, shapes, strict=True)
    return call.tuple_of([call.like(one, dims) for one, dims in results])
