"""Habits from other libraries: an error says how to write them here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Never

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import RefusesUfuncs
from tapetensor.errors import ArgumentTypeError
from tapetensor.tensor.base import TensorBase
from tapetensor.typing import D, S, T

# The operators by their ufuncs: what is meant where an array or a number of numpy's stands on the
# left, and how it is written.
_OPERATORS: Final = {
    "add": ("__radd__", "+"),
    "subtract": ("__rsub__", "-"),
    "multiply": ("__rmul__", "*"),
    "divide": ("__rtruediv__", "/"),
    "floor_divide": ("__rfloordiv__", "//"),
    "remainder": ("__rmod__", "%"),
    "power": ("__rpow__", "**"),
    "matmul": ("__rmatmul__", "@"),
    "equal": ("__eq__", "=="),
    "not_equal": ("__ne__", "!="),
    "less": ("__gt__", "<"),
    "less_equal": ("__ge__", "<="),
    "greater": ("__lt__", ">"),
    "greater_equal": ("__le__", ">="),
}
_REFLECTED: Final = {name: method for name, (method, _) in _OPERATORS.items()}
_COMPARISONS: Final = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
# How a ufunc is spelled here, where it is not the method of that name.
_SPELLINGS: Final = {
    **{name: f"x {symbol} y" for name, (_, symbol) in _OPERATORS.items()},
    "negative": "-x",
    "absolute": "x.abs()",
    "maximum": "tt.maximum(x, y)",
    "minimum": "tt.minimum(x, y)",
    "arctan2": "x.atan2(y)",
    "arcsin": "x.asin()",
    "arccos": "x.acos()",
    "arctan": "x.atan()",
    "rint": "x.round()",
}


class _Count(int):
    """A number of elements, which is called by those who know PyTorch's `size`."""

    def __call__(self, *_: Any) -> Never:
        raise ArgumentTypeError(
            "x.size is the number of elements, and is not called; the sizes are x.shape"
        )

    @override
    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        """Pickle the number that it is."""
        return int, (int(self),)


class Habits(TensorBase[S, T, D], RefusesUfuncs):
    """Ufuncs of numpy's, writing elements, calling the size."""

    __slots__ = ()

    @property
    @override
    def size(self) -> int:
        """The number of elements."""
        return _Count(self._array.size)

    if not TYPE_CHECKING:
        # Hidden from type checkers, which say that there is no such method.
        def __setitem__(self, index, value):
            """Say that tensors are values."""
            raise ArgumentTypeError(
                "setitem: the elements of a tensor cannot be written; write tt.where(mask, value, "
                "x), or x.put_along_axis(...), which makes a new tensor"
            )

        def __array_ufunc__(self, ufunc, method, *inputs: Any, **options: Any):
            """Refuse a ufunc, which no tape can see; an operator is this class's own."""
            name, lhs = ufunc.__name__, inputs[0]
            if method == "__call__" and name in _REFLECTED and not isinstance(lhs, TensorBase):
                # Of a number on the left of a comparison numpy has made an array.
                number = lhs[()] if name in _COMPARISONS and np.ndim(lhs) == 0 else lhs
                return getattr(self, _REFLECTED[name])(number)
            cure = _SPELLINGS.get(name, f"x.{name}()" if hasattr(self, name) else "")
            raise ArgumentTypeError(
                f"np.{name}: a function of numpy's would lose the gradient of a tensor; write "
                f"{cure}{' or ' * bool(cure)}np.{name}(x.numpy()) for an array"
            )
