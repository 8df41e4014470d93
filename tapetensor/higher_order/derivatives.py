"""Gradients as functions of functions: a gradient of a gradient, Hessian-vector products."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, overload

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
    op_name,
    size_of,
)
from tapetensor.tape.ids import next_id
from tapetensor.tape.pullbacks import JointPullbacks, Kernel, Needed, Pullbacks
from tapetensor.tape.replay import pruned, replay
from tapetensor.tensor.apply import Enclosed, apply_enclosing
from tapetensor.tensor.base import (
    check_floating,
    check_plain,
    check_same_dtype,
    check_tensor,
    wrap,
)
from tapetensor.tensor.complaints import no_higher_order
from tapetensor.tensor.tensor import Tensor, Tensor0D
from tapetensor.typing import F, S, T

S2 = TypeVar("S2", bound=tuple[Any, ...])
S3 = TypeVar("S3", bound=tuple[Any, ...])


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
def grad(f: Callable[..., Any], /, *inputs: Any) -> Any:
    """Return the gradient of a scalar function at a point.

        df/dx (x)

    Of a plain `x` it is a plain value. Of one that owns a tape it is recorded like the result of
    any op, so that it can be differentiated once more, to any order: by ``backward()``, also with
    respect to tensors that `f` closes over (the weights of a model, for a gradient penalty), or by
    another `grad` around it. Every op of the library can be differentiated twice; one of your own
    that cannot raises.

    Shape: that of `x`; of several inputs the gradients come as a tuple.
    Derivative: the Hessian, applied to the cotangent. At a kink, where the first derivative is a
        convention, the second is that of one side, or one in between.

    Args:
        f: takes as many tensors as there are inputs, each with a tape, and returns a scalar that
            is computed from them. What else it uses is plain, and a constant as far as `f` goes.
        *inputs: one tensor to three, floating; either all own a tape or none does.

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
    check_function("grad", "f", f)
    if not inputs:
        raise ArgumentTypeError("grad: give the tensor to differentiate at: grad(f, x)")
    for position, x in enumerate(inputs):
        check_tensor("grad", f"input {position}", x)
        check_floating("grad", x)
    check_same_dtype("grad", inputs)
    owners = [x.owns_tape for x in inputs]
    if any(owners) and not all(owners):
        raise UntracedTensorError(
            f"grad: input {owners.index(True)} owns a tape and input {owners.index(False)} does "
            "not; trace all of them, or close over what is not to be differentiated"
        )
    if owners[0]:
        gradients = apply_enclosing(grad, partial(_recorded_gradients, f, inputs), inputs)
    else:
        gradients = _plain_gradients(f, inputs)
    return gradients[0] if len(gradients) == 1 else gradients


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
    check_matching("hessian_vector_product", "x", x.array, "v", v.array)

    def along(x: Tensor[S, OwnedTape, F]) -> Tensor0D[OwnedTape, F]:
        return (grad(f, x) * v).sum()

    return grad(along, x)


def _plain_gradients(
    f: Callable[..., Any], inputs: tuple[Tensor[Any, Any, Any], ...]
) -> tuple[Tensor[Any, Any, Any], ...]:
    with GradientContext() as inside:
        # On the way to a derivative of higher order a plain value is part of it if it came of what
        # is, and a constant otherwise.
        arrays: list[Any] = [x.array for x in inputs]
        levels = [array.level for array in arrays if isinstance(array, Recorded)]
        inside.level = max(levels, key=lambda level: level.depth, default=None)
        traced = [_fresh(x, x.array) for x in inputs]
        output = _checked(f(*traced), inside)
        gradients = output.backward(wrt=traced)
    # All that the function has used is before its gradient, with the past of the inputs.
    origins = gradients.origins
    for x in inputs:
        origins += (x.id,) if x.history is None else (x.id, x.history)
    results = []
    for x, of_x in zip(inputs, traced, strict=True):
        array = gradients.array(of_x.id)
        results.append(x.wrap_gradient(np.zeros_like(x.array) if array is None else array))
        unique_id = results[-1]._id
        results[-1].history = gap_step(unique_id, grad, origins, size_of(origins))
    return tuple(results)


def _recorded_gradients(
    f: Callable[..., Any], inputs: tuple[Tensor[Any, Any, Any], ...], *arrays: Array
) -> Enclosed:
    """Run `f` and its backward pass on arrays that record both."""
    level = RecordingLevel(active_context().level)
    points = [level.array(array) for array in arrays]
    with GradientContext() as inside:
        inside.level = level
        traced = [_fresh(x, point) for x, point in zip(inputs, points, strict=True)]
        output = _checked(f(*traced), inside)
        seed: Any = level.array(np.ones_like(level.lift(output.array).value))
        wanted: dict[int, Any] = {x.id: x for x in traced}
        steps, _ = gathered(output.history)
        run, _ = pruned("grad", steps, output.id, wanted)
        started: dict[int, Any] = {output.id: seed}
        found: dict[int, Any] = replay(
            _lifting(run, level), started, BackwardPass(), [], kept=frozenset(wanted)
        )

    gradients = [
        found[x.id] if x.id in found else level.array(np.zeros_like(point.value))
        for x, point in zip(traced, points, strict=True)
    ]
    parents = tuple([x.id for x in inputs] + list(level.leafs))
    values = dict(zip([point.id for point in points], arrays, strict=True)) | level.leafs
    needed = (True,) * len(values)
    pullbacks: list[Pullbacks] = [
        JointPullbacks(needed, partial(_replayed, level.recording, gradient.id, values))
        for gradient in gradients
    ]
    # Plain values that the function has used may be computed from what gradients are asked of.
    histories: list[History] = [step for step in steps if step[5]]
    return [gradient.value for gradient in gradients], parents, pullbacks, histories


def _replayed(
    recording: Recording, output_id: int, values: dict[int, Array], needed: Needed, g: Array
) -> list[Any]:
    """Return what flows from the cotangent of a gradient to the parents that need it."""
    names = zip(values, needed, strict=True)
    wanted = {one: "an operand of grad" for one, is_needed in names if is_needed}
    run, _ = pruned("backward", recording, output_id, wanted)
    found = replay(run, {output_id: g}, BackwardPass(), [], kept=frozenset(wanted))
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


def _checked(output: Tensor[Any, Any, Any], inside: GradientContext) -> Tensor0D[OwnedTape, Any]:
    check_tensor("grad", "the result of f", output)
    if output.array.shape != ():
        raise ShapeError(
            f"grad: f must return a scalar, its result has shape {output.array.shape}; "
            "reduce it (mean(), sum())"
        )
    check_floating("grad", output)
    if not isinstance(output.tape, OwnedTape):
        raise UntracedTensorError(
            "grad: the result of f owns no tape, so it does not depend on the input; inside f use "
            "the tensor that it is given, without detach()"
        )
    if not output.tape.is_only_of(inside):
        raise HigherOrderError(
            "grad: f uses a tensor that has a tape from outside; give it to grad as another "
            "input, or detach() it if it is a constant"
        )
    return output
