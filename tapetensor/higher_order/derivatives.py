"""Gradients as functions of functions: a gradient of a gradient, Hessian-vector products."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, overload

import numpy as np
from typing_extensions import TypeVar

from tapetensor.arguments import check_function
from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import check_matching
from tapetensor.arrays.stand_ins import Level, Recorded, UnrecordedError
from tapetensor.errors import (
    ArgumentTypeError,
    HigherOrderError,
    ShapeError,
    UntracedTensorError,
    at_the_call,
)
from tapetensor.higher_order.array import RecordingLevel
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tape.context import GradientContext, active_context
from tapetensor.tape.history import (
    BackwardPass,
    History,
    Recording,
    Step,
    gap_step,
    gathered,
    next_id,
    op_name,
    size_of,
)
from tapetensor.tape.pullbacks import JointPullbacks, Kernel, Needed, Pullbacks
from tapetensor.tape.replay import copies, needed_for, replay
from tapetensor.tensor.apply import Enclosed, apply_enclosing, no_higher_order
from tapetensor.tensor.base import (
    check_floating,
    check_plain,
    check_same_dtype,
    check_tensor,
    rewrap,
    wrap,
)
from tapetensor.tensor.tensor import Tensor, Tensor0D
from tapetensor.typing import F, S, T

S2 = TypeVar("S2", bound=tuple[Any, ...])
S3 = TypeVar("S3", bound=tuple[Any, ...])
S4 = TypeVar("S4", bound=tuple[Any, ...])


@overload
def grad(
    f: Callable[[Tensor[S, OwnedTape, F]], Tensor0D[OwnedTape, F]], x: Tensor[S, T, F], /
) -> Tensor[S, T, F]: ...
@overload
def grad(
    f: Callable[[Tensor[S, OwnedTape, F], Tensor[S2, OwnedTape, F]], Tensor0D[OwnedTape, F]],
    x: Tensor[S, T, F],
    y: Tensor[S2, T, F],
    /,
) -> tuple[Tensor[S, T, F], Tensor[S2, T, F]]: ...
@overload
def grad(
    f: Callable[
        [Tensor[S, OwnedTape, F], Tensor[S2, OwnedTape, F], Tensor[S3, OwnedTape, F]],
        Tensor0D[OwnedTape, F],
    ],
    x: Tensor[S, T, F],
    y: Tensor[S2, T, F],
    z: Tensor[S3, T, F],
    /,
) -> tuple[Tensor[S, T, F], Tensor[S2, T, F], Tensor[S3, T, F]]: ...
@overload
def grad(
    f: Callable[..., Tensor0D[OwnedTape, F]],
    x: Tensor[Any, T, F],
    y: Tensor[Any, T, F],
    z: Tensor[Any, T, F],
    w: Tensor[Any, T, F],
    /,
    *inputs: Tensor[Any, T, F],
) -> tuple[Tensor[Any, T, F], ...]: ...
def grad(f: Callable[..., Any], /, *inputs: Any) -> Any:
    """Return the gradient of a scalar function at a point.

        df/dx (x)

    The gradient at a plain `x` is a plain value. If `x` has a tape, the gradient is recorded like
    the result of any op. So it can be differentiated again, to any order: by ``backward()``, also
    with respect to tensors that `f` closes over (the weights of a model, for a gradient penalty),
    or by another `grad` around it. Every op of the library can be differentiated twice. An op of
    your own that cannot be raises an error.

    Shape: that of `x`; of several inputs the gradients come as a tuple.
    Derivative: the Hessian, applied to the cotangent. At a kink, where the first derivative is a
        convention, the second is that of one side, or one in between.

    Args:
        f: a function of one tensor for each input, each with a tape, that returns a scalar which
            is computed from them. Other tensors that it uses are plain, and constants within `f`.
        *inputs: one tensor or more, floating; either all have a tape or none has.

    Raises:
        ArgumentTypeError: if `f` is not callable or does not return a tensor, or an input is none.
        ShapeError: if `f` does not return a scalar.
        DTypeError: if an input is not floating, or dtypes differ.
        UntracedTensorError: if some inputs own a tape and others do not, or the result of `f` owns
            none, since it does not depend on them.
        HigherOrderError: if an input owns a tape and `f` uses an op whose derivative cannot be
            differentiated, or a tensor that owns a tape from outside.

    Source: Pearlmutter (1994), "Fast exact multiplication by the Hessian", by reverse mode over
        reverse mode.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([1.0, 2.0], shape=(2,))
    >>> tt.grad(lambda x: (x**3).sum(), x)
    Tensor([ 3., 12.], shape=(2,), dtype=float32, NoneTape)

    The gradient of its sum, which is the second derivative:

    >>> tt.grad(lambda x: tt.grad(lambda x: (x**3).sum(), x).sum(), x)
    Tensor([ 6., 12.], shape=(2,), dtype=float32, NoneTape)
    """
    with at_the_call:
        gradients = _derived("grad", f, inputs, is_scalar=True)[1:]
    return gradients[0] if len(gradients) == 1 else gradients


@overload
def value_and_grad(
    f: Callable[[Tensor[S, OwnedTape, F]], Tensor[S4, OwnedTape, F]], x: Tensor[S, T, F], /
) -> tuple[Tensor[S4, T, F], Tensor[S, T, F]]: ...
@overload
def value_and_grad(
    f: Callable[[Tensor[S, OwnedTape, F], Tensor[S2, OwnedTape, F]], Tensor[S4, OwnedTape, F]],
    x: Tensor[S, T, F],
    y: Tensor[S2, T, F],
    /,
) -> tuple[Tensor[S4, T, F], tuple[Tensor[S, T, F], Tensor[S2, T, F]]]: ...
@overload
def value_and_grad(
    f: Callable[..., Tensor[S4, OwnedTape, F]],
    x: Tensor[Any, T, F],
    y: Tensor[Any, T, F],
    z: Tensor[Any, T, F],
    /,
    *inputs: Tensor[Any, T, F],
) -> tuple[Tensor[S4, T, F], tuple[Tensor[Any, T, F], ...]]: ...
def value_and_grad(f: Callable[..., Any], /, *inputs: Any) -> Any:
    """Return the value of a function at a point, and the gradient of the sum of its elements.

        f(x), d(sum of f(x))/dx

    It runs `f` once. If each element of the value depends on its own row of `x` alone, as the
    solution at a point does, the gradient has the derivative of each element. The loss of a
    differential equation uses these.

    Shape: that of the result of `f`, and that of `x`; for several inputs a tuple of gradients.
    Derivative: of both as of `grad`.

    Args:
        f: a function of one tensor for each input, each with a tape, that returns a tensor of any
            shape which is computed from them.
        *inputs: tensors, floating; either all have a tape or none has.

    It raises the errors of `grad`, but none for the shape of the result of `f`.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([1.0, 2.0], shape=(2,))
    >>> value, slope = tt.value_and_grad(lambda x: x**3, x)
    >>> value
    Tensor([1., 8.], shape=(2,), dtype=float32, NoneTape)
    >>> slope
    Tensor([ 3., 12.], shape=(2,), dtype=float32, NoneTape)
    """
    with at_the_call:
        value, *gradients = _derived("value_and_grad", f, inputs, is_scalar=False)
    return value, gradients[0] if len(gradients) == 1 else tuple(gradients)


def hessian_vector_product(
    f: Callable[[Tensor[S, OwnedTape, F]], Tensor0D[OwnedTape, F]],
    x: Tensor[S, T, F],
    v: Tensor[S, NoneTape, F],
    /,
) -> Tensor[S, T, F]:
    """Return the product of the Hessian of a scalar function with a vector.

        H v = d/dx <df/dx (x), v>

    The Hessian itself is never made: it costs about as much as two gradients.

    Shape: that of `x`, which is that of `v` too.
    Derivative: as of `grad`; none for `v`.

    Args:
        f: as for `grad`.
        x: where; floating.
        v: the vector, plain, of the shape and the dtype of `x`.

    Raises:
        ShapeError: if the shapes of `x` and `v` differ, or `f` does not return a scalar.
        DTypeError: if their dtypes differ or are not floating.
        UntracedTensorError: if `v` owns a tape.
        HigherOrderError: as of `grad`.

    Source: Pearlmutter (1994), "Fast exact multiplication by the Hessian".

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([1.0, 2.0], shape=(2,))
    >>> v = tt.from_numpy([1.0, 0.0], shape=(2,))
    >>> tt.hessian_vector_product(lambda x: (x**3).sum() , x, v)
    Tensor([6., 0.], shape=(2,), dtype=float32, NoneTape)
    """
    check_tensor("hessian_vector_product", "x", x)
    check_plain("hessian_vector_product", "v", v, "write v.detach()")
    check_matching("hessian_vector_product", "x", x._array, "v", v._array)

    def along(x: Tensor[S, OwnedTape, F]) -> Tensor0D[OwnedTape, F]:
        return (grad(f, x) * v).sum()

    return grad(along, x)


def _derived(
    op: str, f: Callable[..., Any], inputs: tuple[Any, ...], *, is_scalar: bool
) -> tuple[Tensor[Any, Any, Any], ...]:
    """Return the value of `f`, and the gradients of the sum of its elements."""
    check_function(op, "f", f)
    if not inputs:
        raise ArgumentTypeError(f"{op}: give the tensor to differentiate at: {op}(f, x)")
    for position, x in enumerate(inputs):
        check_tensor(op, f"input {position}", x)
        check_floating(op, x)
    check_same_dtype(op, inputs)
    owners = [x.owns_tape for x in inputs]
    if any(owners) and not all(owners):
        raise UntracedTensorError(
            f"{op}: input {owners.index(True)} has a tape and input {owners.index(False)} has not; "
            "trace all of them, or close over what is not to be differentiated"
        )
    derivative = _Derivative(op, f, inputs, is_scalar)
    if owners[0]:
        return apply_enclosing(grad, derivative.recorded, inputs)
    return derivative.plain()


class _Derivative(NamedTuple):
    """A function, and the point where it is differentiated.

    Attributes:
        op: what messages name.
        f: the function.
        inputs: the point.
        is_scalar: whether the function has to return a scalar.
    """

    op: str
    f: Callable[..., Any]
    inputs: tuple[Tensor[Any, Any, Any], ...]
    is_scalar: bool

    def plain(self) -> tuple[Tensor[Any, Any, Any], ...]:
        """Return value and gradients as plain values."""
        with GradientContext() as inside:
            # On the way to a derivative of higher order a plain value is part of it if it came of
            # what is, and a constant otherwise.
            arrays: list[Any] = [x._array for x in self.inputs]
            levels = [array.level for array in arrays if isinstance(array, Recorded)]
            inside.level = max(levels, key=lambda level: level.depth, default=None)
            traced = [_fresh(x, x._array) for x in self.inputs]
            output = self._checked(self.f(*traced), inside)
            ones = rewrap(output, np.ones_like(output._array), next_id(), None)
            gradients = output.backward(ones, wrt=traced)
        # All that the function has used is before its gradient, with the past of the inputs.
        origins = gradients.origins
        for x in self.inputs:
            origins += (x.id,) if x.history is None else (x.id, x.history)
        found = [output._array]
        for x, of_x in zip(self.inputs, traced, strict=True):
            array = gradients.array(of_x.id)
            found.append(np.zeros_like(x._array) if array is None else array)
        results = [rewrap(self.inputs[0], array, next_id(), None) for array in found]
        for result in results:
            result.history = gap_step(result.id, grad, origins, size_of(origins))
        return tuple(results)

    def recorded(self, *arrays: Array) -> Enclosed:
        """Run the function and its backward pass on arrays that record both."""
        level = RecordingLevel(active_context().level)
        points = [level.array(array) for array in arrays]
        with GradientContext() as inside:
            inside.level = level
            traced = [_fresh(x, point) for x, point in zip(self.inputs, points, strict=True)]
            output = self._checked(self.f(*traced), inside)
            value: Any = level.lift(output._array)
            seed = level.array(np.ones_like(value.value))
            wanted: dict[int, Any] = {x.id: x for x in traced}
            steps, _ = gathered(output.history)
            needed_ids, _ = needed_for(self.op, steps, output.id, wanted)
            started: dict[int, Any] = {output.id: seed}
            found: dict[int, Any] = replay(
                _lifting(copies(steps, needed_ids), level), started, BackwardPass(), [],
                kept=frozenset(wanted), needed=needed_ids,
            )  # fmt: skip

        results = [value]
        for x, point in zip(traced, points, strict=True):
            results.append(
                found[x.id] if x.id in found else level.array(np.zeros_like(point.value))
            )
        # What the function has computed and dropped is no operand: it gets no gradient, not zeros.
        leafs = level.used_by(results)
        parents = tuple([x.id for x in self.inputs] + list(leafs))
        values = dict(zip([point.id for point in points], arrays, strict=True)) | leafs
        needed = (True,) * len(values)
        pullbacks: list[Pullbacks] = [
            JointPullbacks(needed, partial(_replayed, level.recording, result.id, values))
            for result in results
        ]
        # Plain values that the function has used may be computed from what gradients are asked of.
        histories: list[History] = [step for step in steps if step[5]]
        return [result.value for result in results], parents, pullbacks, histories

    def _checked(
        self, output: Tensor[Any, Any, Any], inside: GradientContext
    ) -> Tensor[Any, OwnedTape, Any]:
        op = self.op
        check_tensor(op, "the result of f", output)
        if self.is_scalar and output._array.shape != ():
            raise ShapeError(
                f"{op}: f must return a scalar, its result has shape {output._array.shape}; "
                "reduce it (mean(), sum()), or write value_and_grad"
            )
        check_floating(op, output)
        if output.tape is None:
            raise UntracedTensorError(
                f"{op}: the result of f has no tape, so it does not depend on the input; inside f "
                "use the tensor that it is given, without detach()"
            )
        if not output.tape.is_only_of(inside):
            raise HigherOrderError(
                f"{op}: f uses a tensor that has a tape from outside; give it to {op} as another "
                "input, or detach() it if it is a constant"
            )
        return output


def _replayed(
    recording: Recording, output_id: int, values: dict[int, Array], needed: Needed, g: Array
) -> list[Any]:
    """Return what flows from the cotangent of a gradient to the parents that need it."""
    names = zip(values, needed, strict=True)
    wanted = {one: "an operand of grad" for one, is_needed in names if is_needed}
    needed_ids, _ = needed_for("backward", recording, output_id, wanted)
    found = replay(
        copies(recording, needed_ids), {output_id: g}, BackwardPass(), [],
        kept=frozenset(wanted), needed=needed_ids,
    )  # fmt: skip
    return [
        np.zeros_like(value) if is_needed and source not in found else found.get(source)
        for (source, value), is_needed in zip(values.items(), needed, strict=True)
    ]


def _lifting(steps: list[Step], level: Level) -> list[Step]:
    """Return the steps with pullbacks that give arrays of `level`, and errors that name the op.

    Where every array is of the level, none is taken for numpy's and written to.
    """
    lifting = []
    for produced_id, kernel, pullbacks, parents, _, size in steps:
        lifted: Any
        if isinstance(pullbacks, JointPullbacks):
            needed = tuple([pullback is not None for pullback in pullbacks])
            lifted = JointPullbacks(needed, partial(_lifted, kernel, level, pullbacks.compute))
        elif parents.__class__ is int:
            lifted = partial(_lifted, kernel, level, pullbacks)
        else:
            lifted = tuple([p and partial(_lifted, kernel, level, p) for p in pullbacks])
        lifting.append([produced_id, kernel, lifted, parents, None, size])
    return lifting


def _lifted(kernel: Kernel, level: Level, pullback: Callable[..., Any], *args: Any) -> Any:
    """Run one pullback, or all of an op; say of what cannot be recorded which op it is of."""
    try:
        found = pullback(*args)
    except UnrecordedError as error:
        raise HigherOrderError(no_higher_order(op_name(kernel), error)) from error
    if isinstance(found, list | tuple):
        return [one if one is None else level.lift(one) for one in found]
    return level.lift(found)


def _fresh(x: Tensor[Any, Any, Any], array: Array | Recorded) -> Tensor[Any, Any, Any]:
    """Return `array` as a traced tensor with an id of its own, apart from what `f` closes over."""
    data: Any = array
    return wrap(type(x), data, next_id(), OwnedTape())
