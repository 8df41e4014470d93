"""Checked operands of ops: the right one of an operator, labels, windows over images."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from typing_extensions import TypeVar

from tapetensor.arguments import as_size
from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import Captured, run_check
from tapetensor.errors import (
    ArgumentTypeError,
    AxisError,
    DTypeError,
    TapeTensorError,
    cut_traceback,
    refusal,
)
from tapetensor.kernels.numerics.windows import Sizes, Window
from tapetensor.rules import windows as rules
from tapetensor.rules.dims import Size, sized
from tapetensor.rules.windows import check_rank
from tapetensor.tape import Kernel, Tape
from tapetensor.tensor.apply import apply, apply_pair
from tapetensor.tensor.base import (
    TensorBase,
    check_floating,
    check_integers,
    check_same_dtype,
    check_tensor,
)

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


# Beside a plain left operand the right one gives the tape state; else the left one does, and the
# right one is plain or in the same state. That covers all four combinations, and type variables.
TapeOfRhs = TypeVar("TapeOfRhs", bound=Tape)

# The name of what stands beside a tensor, and might be one too.
OPERAND = "the other operand"


def as_scalar(op: str, name: str, value: object) -> float:
    """Return a real number as one of Python's, which takes the dtype of the tensor beside it."""
    kind = type(value)
    if kind is float or kind is int:
        return value  # type: ignore[return-value]  # its exact class was just looked at
    if isinstance(value, Captured) and isinstance(value, int | float | np.integer | np.floating):
        # A number that a program will compute.
        # As below, one of numpy's would impose its own dtype.
        scalar: Any = value
        number: float = scalar.item() if isinstance(value, np.generic) else scalar
        return number
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        # A numpy scalar would impose its own dtype.
        return float(value)
    wanted, cure = "a number", ""
    if name == OPERAND:
        wanted = "a tensor or a number"
        cure = "; wrap numpy arrays and lists with tt.from_numpy(...)"
    raise ArgumentTypeError(f"{op}: {name} must be {wanted}, got {value.__class__.__name__}{cure}")


def binary(
    kernel: Kernel, number_kernel: Kernel, lhs: TensorBase[Any, Any, Any], rhs: object
) -> Tensor[Any, Any, Any]:
    """Run the kernel for two tensors, or the one for a tensor and a number."""
    try:
        if rhs.__class__ is float:
            return apply(number_kernel, (lhs,), (rhs,))
        if isinstance(rhs, TensorBase):
            return apply_pair(kernel, lhs, rhs)
        return apply(number_kernel, (lhs,), (as_scalar(kernel.__name__, OPERAND, rhs),))
    except TapeTensorError as error:
        cut_traceback(error)
        raise


def number_like(op: str, name: str, tensor: TensorBase[Any, Any, Any], value: object) -> float:
    """Return `value` as a plain number that the dtype of `tensor` can hold."""
    number = as_scalar(op, name, value)
    dtype = tensor._array.dtype
    if dtype.kind == "f":
        return number
    # numpy would wrap a number that is too large, and promote a mask to integers.
    if isinstance(number, int) and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if limits.min <= number <= limits.max:
            return number
    raise DTypeError(f"{op}: the number {value!r} does not fit dtype {dtype}")


# By dtype of the labels: the unsigned one of that size, and how many numbers both can hold.
_UNSIGNED = {
    np.dtype(f"i{size}"): (np.dtype(f"u{size}"), 1 << (8 * size - 1)) for size in (1, 2, 4, 8)
}
# That many wrong labels are named in a message.
_NAMED = 5


def check_labels(
    op: str,
    labels: TensorBase[Any, Any, Any],
    classes: int,
    cure: str = "",
    names: tuple[str, str] = ("labels", "classes"),
    ignored: int | None = None,
) -> None:
    """Refuse labels that are not integers from 0 to ``classes - 1``, nor the one `ignored`.

    The message says the `cure` for other dtypes, and calls labels and classes by `names`.
    """
    check_integers(op, names[0], labels, cure)
    checked = (
        labels._array if ignored is None else np.where(labels._array == ignored, 0, labels._array)
    )
    run_check(_refuse_beyond, checked, op, classes, names)


def _refuse_beyond(values: Array, op: str, classes: int, names: tuple[str, str]) -> None:
    if values.size == 0 or _are_below(values, classes):
        return
    if not 0 <= values.min() <= values.max() < classes:
        wrong = np.unique(values[(values < 0) | (values >= classes)]).tolist()
        named = ", ".join(map(str, wrong[:_NAMED])) + (", ..." if len(wrong) > _NAMED else "")
        raise AxisError(
            f"{op}: {names[0]} of {classes} {names[1]} go from 0 to {classes - 1}, found {named}"
        )


def _are_below(values: Array, classes: int) -> bool:
    """Tell by one search that all are classes: read as unsigned, what is below 0 is large.

    False is no answer; it may be a dtype that has no such reading, or an array that is not numpy's.
    """
    if type(values) is not np.ndarray:
        return False
    unsigned, held = _UNSIGNED.get(values.dtype, (None, 0))
    if unsigned is None:
        return False
    read = values.view(unsigned)
    # On short arrays numpy finds the place of the largest in a third of the time of its value.
    return bool(read.item(read.argmax()) < min(classes, held))


# One number for both axes, or one for each.
Ints: TypeAlias = int | tuple[int, int]


def as_window(op: str, kernel: Sizes, stride: object, padding: object, dilation: object) -> Window:
    """Return a window of numbers that hold for all axes, or of one for each."""
    axes = len(kernel)
    return Window(
        kernel,
        per_axis(op, "stride", stride, axes),
        per_axis(op, "padding", padding, axes, low=0),
        per_axis(op, "dilation", dilation, axes),
    )


def per_axis(op: str, name: str, value: object, axes: int, low: int = 1) -> Sizes:
    """Return one int >= `low` for each axis; a single one stands for all."""
    numbers = tuple(value) if isinstance(value, tuple | list) else (value,) * axes
    if len(numbers) != axes:
        raise ArgumentTypeError(
            f"{op}: {name} is an int or {axes} of them in a tuple, got {value!r}"
        )
    return tuple([as_size(op, name, number, low) for number in numbers])


def operands_of(op: str, x: object, weight: object, bias: object) -> tuple[Any, ...]:
    """Return the operands that are there, after a look at their kinds."""
    check_tensor(op, "the input", x)
    check_tensor(op, "the weight", weight)
    if bias is not None:
        check_tensor(op, "the bias", bias)
    operands: tuple[Any, ...] = (x, weight) if bias is None else (x, weight, bias)
    check_same_dtype(op, operands)
    check_floating(op, operands[0])
    return operands


def convolution_window(
    op: str,
    operands: tuple[Any, ...],
    axes: int,
    stride: object,
    padding: object,
    dilation: object,
    groups: object,
) -> tuple[Window, int]:
    """Return the window of a convolution and the number of groups, after all checks."""
    shapes = [operand._array.shape for operand in operands]
    shape, weight_shape, *bias_shape = shapes
    check_rank(op, shape, axes)
    window = kernel_window(op, weight_shape, axes, stride, padding, dilation)
    count = as_size(op, "groups", groups, low=1)
    channels, made = shape[-1 - axes], weight_shape[0]
    fits = (
        weight_shape[1] * count == channels
        and made % count == 0
        and bias_shape in ([], [(made,)])
        and min(window.counts(shape[-axes:])) > 0
    )
    if not fits:
        dims = list(map(sized, shapes))
        asked = rules.Window(*map(sized, window))
        raise refusal(lambda: rules.convolution(op, dims, asked, Size.of(count)))
    return window, count


def kernel_window(
    op: str,
    shape: Sizes,
    axes: int,
    stride: object,
    padding: object,
    dilation: object,
    *,
    transposed: bool = False,
) -> Window:
    """Return the window that the shape of a weight says."""
    if len(shape) != axes + 2 or min(shape[2:]) < 1:
        raise refusal(partial(rules.check_weight, op, sized(shape), axes, transposed=transposed))
    return as_window(op, shape[2:], stride, padding, dilation)


def check_fits(op: str, shape: Sizes, window: Window) -> None:
    """Raise ShapeError if no window fits the padded image."""
    if min(window.counts(shape[-len(window.kernel) :])) < 1:
        asked = rules.Window(*map(sized, window))
        raise refusal(lambda: asked.counts(op, sized(shape)))
