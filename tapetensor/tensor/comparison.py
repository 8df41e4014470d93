"""Comparisons, which give masks, and the logic of masks."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Never, TypeAlias

import numpy as np
from typing_extensions import override

from tapetensor.arguments import as_flag, normalize_axes
from tapetensor.arguments.spellings import no_such_argument
from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import check_one_library
from tapetensor.errors import ArgumentValueError, DTypeError, TapeTensorError, cut_traceback
from tapetensor.rules.broadcasting import broadcast
from tapetensor.rules.dims import sized
from tapetensor.rules.refusals import refusal
from tapetensor.tape import NoneTape
from tapetensor.tape.ids import next_id
from tapetensor.tensor.base import (
    FloatingBase,
    TensorBase,
    check_floating,
    check_same_dtype,
    rewrap,
)
from tapetensor.tensor.operands import OPERAND, as_scalar
from tapetensor.tensor.signatures import mask_reduction, same_signature
from tapetensor.typing import D, F, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor

    # A comparison takes no tape, so either side may own one.
    Compared: TypeAlias = "TensorBase[S, Any, D] | TensorBase[tuple[()], Any, D] | float"


class Comparison(TensorBase[S, T, D]):
    """Comparisons and the logic of masks.

    The results are plain bool tensors; nothing is differentiable.
    """

    __slots__ = ()

    @override
    def __eq__(  # type: ignore[override]  # compares elements, as numpy's, and not objects
        self, rhs: Compared[S, D], /
    ) -> Tensor[S, NoneTape, np.bool_]:
        """Compare for equality, element by element."""
        return _compare("equal", operator.eq, self, rhs)

    @override
    def __ne__(  # type: ignore[override]  # compares elements, as numpy's, and not objects
        self, rhs: Compared[S, D], /
    ) -> Tensor[S, NoneTape, np.bool_]:
        """Compare for inequality, element by element."""
        return _compare("not_equal", operator.ne, self, rhs)

    __hash__ = TensorBase.__hash__

    def __lt__(self, rhs: Compared[S, D], /) -> Tensor[S, NoneTape, np.bool_]:
        """Tell which elements are smaller."""
        return _compare("less", operator.lt, self, rhs)

    def __le__(self, rhs: Compared[S, D], /) -> Tensor[S, NoneTape, np.bool_]:
        """Tell which elements are smaller or equal."""
        return _compare("less_equal", operator.le, self, rhs)

    def __gt__(self, rhs: Compared[S, D], /) -> Tensor[S, NoneTape, np.bool_]:
        """Tell which elements are larger."""
        return _compare("greater", operator.gt, self, rhs)

    def __ge__(self, rhs: Compared[S, D], /) -> Tensor[S, NoneTape, np.bool_]:
        """Tell which elements are larger or equal."""
        return _compare("greater_equal", operator.ge, self, rhs)

    def isnan(self: FloatingBase[S, Any, F]) -> Tensor[S, NoneTape, np.bool_]:
        """Tell which elements are NaN.

        Shape: that of `self`.
        Derivative: none.

        Raises:
            DTypeError: if the dtype is not floating.

        Source: array API, ``isnan``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([float("nan"), 2.0], shape=(2,)).isnan()
        Tensor([ True, False], shape=(2,), dtype=bool, NoneTape)
        """
        return _tell("isnan", np.isnan, self)

    def isinf(self: FloatingBase[S, Any, F]) -> Tensor[S, NoneTape, np.bool_]:
        """Tell which elements are infinite.

        Shape: that of `self`.
        Derivative: none.

        Raises:
            DTypeError: if the dtype is not floating.

        Source: array API, ``isinf``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([-float("inf"), 2.0], shape=(2,)).isinf()
        Tensor([ True, False], shape=(2,), dtype=bool, NoneTape)
        """
        return _tell("isinf", np.isinf, self)

    def isfinite(self: FloatingBase[S, Any, F]) -> Tensor[S, NoneTape, np.bool_]:
        """Tell which elements are neither NaN nor infinite.

        Shape: that of `self`.
        Derivative: none.

        Raises:
            DTypeError: if the dtype is not floating.

        Source: array API, ``isfinite``.

        >>> import tapetensor as tt
        >>> tt.from_numpy([float("nan"), 2.0], shape=(2,)).isfinite()
        Tensor([False,  True], shape=(2,), dtype=bool, NoneTape)
        """
        return _tell("isfinite", np.isfinite, self)

    @same_signature(mask_reduction)
    def any(
        self: TensorBase[S, T, D],
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        **elsewhere: Never,
    ) -> Tensor[Any, Any, Any]:
        """Tell whether the mask holds anywhere; False for no elements.

        Shape: ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: none.

        Raises:
            DTypeError: if the tensor is no mask; compare first.
            AxisError: if there is no such axis.

        Source: array API, ``any``.

        >>> import tapetensor as tt
        >>> (tt.arange(3) > 1).any()
        Tensor(True, shape=(), dtype=bool, NoneTape)
        """
        return _reduced("any", np.any, self, axis, keepdims, elsewhere)

    @same_signature(mask_reduction)
    def all(
        self: TensorBase[S, T, D],
        axis: int | tuple[int, ...] | None = None,
        keepdims: bool = False,
        **elsewhere: Never,
    ) -> Tensor[Any, Any, Any]:
        """Tell whether the mask holds everywhere; True for no elements.

        Shape: ``(*Ds, N) -> (*Ds)`` for ``axis=-1``.
        Derivative: none.

        Raises:
            DTypeError: if the tensor is no mask; compare first.
            AxisError: if there is no such axis.

        Source: array API, ``all``.

        >>> import tapetensor as tt
        >>> (tt.arange(3) > 1).all()
        Tensor(False, shape=(), dtype=bool, NoneTape)
        """
        return _reduced("all", np.all, self, axis, keepdims, elsewhere)

    def __and__(
        self: Comparison[S, NoneTape, np.bool_], rhs: Tensor[S, NoneTape, np.bool_], /
    ) -> Tensor[S, NoneTape, np.bool_]:
        """Tell where both masks hold."""
        return _logic("and", operator.and_, self, rhs)

    def __or__(
        self: Comparison[S, NoneTape, np.bool_], rhs: Tensor[S, NoneTape, np.bool_], /
    ) -> Tensor[S, NoneTape, np.bool_]:
        """Tell where one mask holds, or both."""
        return _logic("or", operator.or_, self, rhs)

    def __xor__(
        self: Comparison[S, NoneTape, np.bool_], rhs: Tensor[S, NoneTape, np.bool_], /
    ) -> Tensor[S, NoneTape, np.bool_]:
        """Tell where exactly one of the masks holds."""
        return _logic("xor", operator.xor, self, rhs)

    def __invert__(self: Comparison[S, NoneTape, np.bool_]) -> Tensor[S, NoneTape, np.bool_]:
        """Tell where the mask does not hold."""
        _check_mask("invert", self)
        return rewrap(self, ~self._array, next_id(), None)


def _tell(
    op: str, holds: Callable[[Any], Array], x: TensorBase[Any, Any, Any]
) -> Tensor[Any, Any, Any]:
    check_floating(op, x)
    return rewrap(x, holds(x._array), next_id(), None)


def _reduced(
    op: str,
    reduce: Callable[..., Array],
    mask: TensorBase[Any, Any, Any],
    axis: object,
    keepdims: object,
    elsewhere: dict[str, Never],
) -> Tensor[Any, Any, Any]:
    if elsewhere:
        raise no_such_argument(op, elsewhere)
    _check_mask(op, mask)
    axes = normalize_axes(op, axis, mask._array.shape)
    found = reduce(mask._array, axis=axes, keepdims=as_flag(op, "keepdims", keepdims))
    return rewrap(mask, found, next_id(), None)


def _compare(
    op: str, compare: Callable[[Any, Any], Array], lhs: TensorBase[Any, Any, Any], rhs: object
) -> Tensor[Any, Any, Any]:
    try:
        if isinstance(rhs, TensorBase):
            check_same_dtype(op, (lhs, rhs))
            other: Any = rhs._array
        else:
            other = as_scalar(op, OPERAND, rhs)
        return rewrap(lhs, _broadcasting(op, compare, lhs._array, other), next_id(), None)
    except TapeTensorError as error:
        cut_traceback(error)
        raise


def _logic(
    op: str,
    combine: Callable[[Any, Any], Array],
    lhs: TensorBase[Any, Any, Any],
    rhs: TensorBase[Any, Any, Any],
) -> Tensor[Any, Any, Any]:
    _check_mask(op, lhs)
    _check_mask(op, rhs)
    return rewrap(lhs, _broadcasting(op, combine, lhs._array, rhs._array), next_id(), None)


def _broadcasting(op: str, combine: Callable[[Any, Any], Array], lhs: Array, rhs: Any) -> Array:
    try:
        return combine(lhs, rhs)
    except ValueError:
        raise refusal(lambda: broadcast(op, [sized(lhs.shape), sized(rhs.shape)])) from None
    except OverflowError:
        raise ArgumentValueError(
            f"{op}: the number is outside the range of dtype {lhs.dtype}"
        ) from None
    except TypeError:
        check_one_library(op, (lhs, rhs))
        raise


def _check_mask(op: str, tensor: object) -> None:
    if not isinstance(tensor, TensorBase) or tensor._array.dtype != np.bool_:
        kind = tensor._array.dtype if isinstance(tensor, TensorBase) else type(tensor).__name__
        raise DTypeError(f"{op}: expected a bool tensor, got {kind}; compare first (x > 0)")
