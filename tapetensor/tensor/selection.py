"""Comparisons, which give masks, the logic of masks, and choosing elements by them."""

# Where an operand fits in more than one way (a dim may be 1, or Any) the overloads overlap; they
# give the same shape there, and the first that fits is taken.
# mypy: disable-error-code="overload-overlap"

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Never, Protocol, TypeAlias, overload

import numpy as np
from typing_extensions import TypeVar, override

from tapetensor.arguments import as_flag, normalize_axes
from tapetensor.arguments.spellings import no_such_argument
from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import check_one_library
from tapetensor.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    TapeTensorError,
    cut_traceback,
    refusal,
)
from tapetensor.kernels import arithmetic, indexing
from tapetensor.rules.broadcasting import broadcast
from tapetensor.rules.dims import sized
from tapetensor.tape import Kernel, NoneTape, OwnedTape
from tapetensor.tape.history import next_id
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import (
    FloatingBase,
    TensorBase,
    check_floating,
    check_same_dtype,
    check_tensor,
    rewrap,
)
from tapetensor.tensor.operands import OPERAND, as_scalar, number_like
from tapetensor.tensor.signatures import extreme, mask_reduction, same_signature
from tapetensor.typing import D, Ds, F, M, N, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Joins, Tensor

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


_ShapeOfMask = TypeVar("_ShapeOfMask", contravariant=True)


class Mask(Protocol[_ShapeOfMask]):
    """A plain bool tensor of a shape.

    Contravariant, so that mypy takes the shape from the operands and compares. From an invariant
    mask it would take it too, and join a name there and a literal of the operands to `Any`.
    """

    @property
    def tape_type(self) -> type[NoneTape]:
        """The state of the tape: there is none."""

    def _takes_part(self, shape: _ShapeOfMask, dtype: np.bool_, /) -> None: ...


@same_signature(extreme)
def maximum(
    lhs: Tensor[Any, Any, Any], rhs: Tensor[Any, Any, Any] | float, /
) -> Tensor[Any, Any, Any]:
    """Return the larger of two, element by element.

    Shape: numpy's broadcasting.
    Derivative: 1 for the larger operand, 0 for the other; one half each where they are equal; 1
        for both where one is NaN, and so the result.

    >>> import tapetensor as tt
    >>> tt.maximum(tt.from_numpy([1.0, 5.0], shape=(2,)), 3.0)
    Tensor([3., 5.], shape=(2,), dtype=float32, NoneTape)
    """
    return _extreme(arithmetic.maximum, arithmetic.maximum_number, lhs, rhs)


@same_signature(extreme)
def minimum(
    lhs: Tensor[Any, Any, Any], rhs: Tensor[Any, Any, Any] | float, /
) -> Tensor[Any, Any, Any]:
    """Return the smaller of two, element by element.

    Shape: numpy's broadcasting.
    Derivative: 1 for the smaller operand, 0 for the other; one half each where they are equal; 1
        for both where one is NaN, and so the result.

    >>> import tapetensor as tt
    >>> tt.minimum(tt.from_numpy([1.0, 5.0], shape=(2,)), 3.0)
    Tensor([1., 3.], shape=(2,), dtype=float32, NoneTape)
    """
    return _extreme(arithmetic.minimum, arithmetic.minimum_number, lhs, rhs)


@overload
def where(mask: Mask[S], lhs: Tensor[S, T, F], rhs: float, /) -> Tensor[S, T, F]: ...
@overload
def where(mask: Mask[S], lhs: float, rhs: Tensor[S, T, F], /) -> Tensor[S, T, F]: ...
@overload
def where(mask: Mask[S], lhs: Tensor[S, T, R], rhs: int, /) -> Tensor[S, T, R]: ...
@overload
def where(mask: Mask[S], lhs: int, rhs: Tensor[S, T, R], /) -> Tensor[S, T, R]: ...
@overload
def where(mask: Mask[S], lhs: Tensor[S, T, D], rhs: Joins[S, T, D], /) -> Tensor[S, T, D]: ...
@overload
def where(
    mask: Mask[S], lhs: Tensor[S, NoneTape, D], rhs: Tensor[S, T, D], /
) -> Tensor[S, T, D]: ...
@overload
def where(
    mask: Mask[S], lhs: Tensor[S, T, D], rhs: Tensor[S, OwnedTape, D], /
) -> Tensor[S, OwnedTape, D]: ...
@overload
def where(
    mask: Mask[tuple[M, N]], lhs: Tensor[tuple[*Ds, M, N], T, F], rhs: float, /
) -> Tensor[tuple[*Ds, M, N], T, F]: ...
@overload
def where(
    mask: Mask[tuple[M, N]], lhs: Tensor[tuple[*Ds, M, N], T, R], rhs: int, /
) -> Tensor[tuple[*Ds, M, N], T, R]: ...
def where(
    mask: Mask[Any], lhs: Tensor[Any, Any, Any] | float, rhs: Tensor[Any, Any, Any] | float, /
) -> Tensor[Any, Any, Any]:
    """Return `lhs` where a mask holds and `rhs` elsewhere.

    Shape: numpy's broadcasting of all three.
    Derivative: 1 for the operand that was chosen, 0 for the other. Both are computed, and 0 times
        an infinite derivative is NaN: of ``where(x > 0, x.sqrt(), 0)`` at 0. Choose before the op:
        ``where(x > 0, where(x > 0, x, 1).sqrt(), 0)``.

    Raises:
        DTypeError: if `mask` is not bool, or the dtypes of the operands differ.
        ArgumentTypeError: if neither operand is a tensor.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([-1.0, 5.0], shape=(2,))
    >>> tt.where(x > 0.0, x, 0.0)
    Tensor([0., 5.], shape=(2,), dtype=float32, NoneTape)
    """
    check_tensor("where", "the mask", mask)
    chosen: Any = mask
    if chosen._array.dtype != np.bool_:
        raise DTypeError(
            f"where: the mask must be bool, got {chosen._array.dtype}; compare (x > 0)"
        )
    if isinstance(lhs, TensorBase) and isinstance(rhs, TensorBase):
        check_same_dtype("where", (lhs, rhs))
        return apply(indexing.where, (lhs, rhs, chosen), keeps_dtype=False)
    if isinstance(lhs, TensorBase):
        value = number_like("where", OPERAND, lhs, rhs)
        return apply(indexing.where_number, (lhs, chosen), (value,), keeps_dtype=False)
    if isinstance(rhs, TensorBase):
        value = number_like("where", OPERAND, rhs, lhs)
        return apply(indexing.where_number, (rhs, ~chosen), (value,), keeps_dtype=False)
    raise ArgumentTypeError("where: at least one of the two values must be a tensor")


def _extreme(
    kernel: Kernel, number_kernel: Kernel, lhs: TensorBase[Any, Any, Any], rhs: object
) -> Tensor[Any, Any, Any]:
    try:
        op = kernel.__name__
        check_tensor(op, "the left operand", lhs)
        if isinstance(rhs, TensorBase):
            return apply(kernel, (lhs, rhs))
        return apply(number_kernel, (lhs,), (as_scalar(op, OPERAND, rhs),))
    except TapeTensorError as error:
        cut_traceback(error)
        raise
