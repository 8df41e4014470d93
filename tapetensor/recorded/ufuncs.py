"""Which kernel answers which ufunc."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tapetensor.kernels import arithmetic, elementwise, linear_algebra, reductions
from tapetensor.recorded import kernels
from tapetensor.recorded.functions import as_axes
from tapetensor.recorded.refusals import UnsupportedError
from tapetensor.tape.pullbacks import Kernel

if TYPE_CHECKING:
    from tapetensor.recorded.array import Level

UFUNCS: dict[Callable[..., Any], Kernel] = {
    np.absolute: elementwise.abs,
    np.add: arithmetic.add,
    np.copysign: kernels.copysign,
    np.cos: elementwise.cos,
    np.divide: arithmetic.divide,
    np.exp: elementwise.exp,
    np.expm1: kernels.expm1,
    np.log: elementwise.log,
    np.log1p: kernels.log1p,
    np.logaddexp: kernels.logaddexp,
    np.matmul: linear_algebra.matmul,
    np.maximum: arithmetic.maximum,
    np.minimum: arithmetic.minimum,
    np.multiply: arithmetic.multiply,
    np.negative: arithmetic.negative,
    np.power: arithmetic.power,
    np.reciprocal: elementwise.reciprocal,
    np.sin: elementwise.sin,
    np.sqrt: elementwise.sqrt,
    np.square: elementwise.square,
    np.subtract: arithmetic.subtract,
    np.tanh: elementwise.tanh,
}

# Constant wherever they have a derivative, which is 0.
FLAT_UFUNCS = frozenset(
    {
        np.equal,
        np.floor,
        np.ceil,
        np.greater,
        np.greater_equal,
        np.isfinite,
        np.isinf,
        np.isnan,
        np.less,
        np.less_equal,
        np.not_equal,
        np.rint,
        np.sign,
        np.signbit,
    }
)

AT: dict[Callable[..., Any], Kernel] = {np.add: kernels.add_at}


def _reduced_by(kernel: Kernel) -> Callable[..., Any]:
    def answer(level: Level, x: Any, axis: Any = 0, dtype: Any = None, **options: Any) -> Any:
        keepdims = options.pop("keepdims", False)
        initial = options.pop("initial", None)
        if options or (dtype is not None and dtype != x.dtype):
            raise UnsupportedError(", ".join(options) or "dtype")
        if initial is not None and kernel is not reductions.max:
            raise UnsupportedError("initial")
        if x.size == 0 and initial is not None:
            nothing = np.empty(x.shape, x.dtype)
            return level.array(
                np.maximum.reduce(nothing, axis=axis, keepdims=keepdims, initial=initial)
            )
        result = level.run(kernel, (x,), as_axes(axis, x.ndim), keepdims)
        return result if initial is None or initial == -np.inf else np.maximum(result, initial)

    return answer


REDUCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.add: _reduced_by(reductions.sum),
    np.maximum: _reduced_by(reductions.max),
    np.minimum: _reduced_by(reductions.min),
}
