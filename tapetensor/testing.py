"""Checks of gradients and of optimizers, for those of this library and for users' own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from tapetensor.arguments import as_number, as_size, check_function, check_rng
from tapetensor.arrays.array import Array
from tapetensor.errors import ArgumentValueError, DTypeError, TapeTensorError, UntracedTensorError
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tape.gradients import Gradients
from tapetensor.tape.history import op_name
from tapetensor.tape.tape import recorded
from tapetensor.tensor import Tensor, from_numpy
from tapetensor.tensor.base import TensorBase, check_plain, check_tensor

Plain: TypeAlias = Tensor[Any, NoneTape, np.float64]
Traced: TypeAlias = Tensor[Any, OwnedTape, np.float64]

# Random directions per set of inputs. A wrong derivative escapes one direction only by being
# orthogonal to it, so a second one is there for bad luck.
_DIRECTIONS = 2
_SHOWN_ELEMENTS = 20


class GradientMismatchError(TapeTensorError, AssertionError):
    """The pullbacks of a function disagree with its central differences.

    An AssertionError too, so that test runners report a failed check and not a crash.
    """


def check_grad(
    f: Callable[..., Traced],
    *inputs: Plain,
    rng: np.random.Generator,
    eps: float = 1e-6,
    rtol: float = 1e-5,
    atol: float = 1e-7,
) -> None:
    """Check the pullbacks of a function against central differences along random directions.

        <v, (f(x + eps u) - f(x - eps u)) / (2 eps)>  =  <pullback(v), u>

    for random directions ``u`` and cotangents ``v``: one number on each side, whatever the shapes.
    Every input is checked by itself, with the others plain, and then all of them are together, so
    that an op meets every mix of plain and traced operands.

    Args:
        f: takes as many tensors as there are `inputs`, traced or plain, and returns a traced
            tensor of any shape. It must give the same result for the same values whenever it is
            called (seed its generator inside), and be smooth within ``eps`` of `inputs`.
        *inputs: plain float64 tensors; they stay as they are.
        rng: where the directions and cotangents come from.
        eps: the step, > 0.
        rtol: the relative tolerance, >= 0.
        atol: the absolute tolerance, >= 0.

    Raises:
        GradientMismatchError: if the two sides differ (or are NaN); an `AssertionError`.
        ArgumentTypeError: if `f` is not callable, or an input or the result is not a tensor.
        ArgumentValueError: if there are no inputs, or a number is outside its range.
        DTypeError: if an input or the result is not float64: float32 has too few digits.
        UntracedTensorError: if an input owns a tape, or the result owns none.

    Source: the check of HIPS/autograd, ``autograd/test_util.py``.

    >>> import tapetensor as tt
    >>> from tapetensor.testing import check_grad
    >>> x = tt.from_numpy([[0.5, 1.0], [1.5, 2.0]], shape=(2, 2), dtype=np.float64)
    >>> check_grad(lambda x: x.log().sum(axis=0), x, rng=np.random.default_rng(0))

    An op that hides a factor from the tape is found out:

    >>> def square(x):
    ...     return x * x.detach()
    >>> check_grad(square, x, rng=np.random.default_rng(0))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tapetensor.testing.GradientMismatchError: check_grad: the derivative of square by input 0 is
    wrong: ...
    """
    check_function("check_grad", "f", f)
    if not inputs:
        raise ArgumentValueError("check_grad: give at least one input to differentiate")
    points = [_point(position, tensor) for position, tensor in enumerate(inputs)]
    check_rng("check_grad", rng)
    step = as_number("check_grad", "eps", eps, above=0)
    relative = as_number("check_grad", "rtol", rtol, at_least=0)
    absolute = as_number("check_grad", "atol", atol, at_least=0)

    everything = tuple(range(len(points)))
    alone = [(position,) for position in everything]
    for checked in alone if len(points) == 1 else [*alone, everything]:
        for _ in range(_DIRECTIONS):
            _check_direction(f, points, checked, rng, step, relative, absolute)


class TakesSteps(Protocol):
    """An optimizer, as far as its check needs to know one."""

    def step(self, grads: Gradients) -> None:
        """Update the parameters."""


class OptimizerMismatchError(TapeTensorError, AssertionError):
    """An optimizer disagrees with its plain formula.

    An AssertionError too, so that test runners report a failed check and not a crash.
    """


def check_optimizer(
    make: Callable[[dict[str, Plain]], TakesSteps],
    formula: Callable[[Array, Array, dict[str, Array], int], Array],
    *,
    rng: np.random.Generator,
    steps: int = 5,
    rtol: float = 1e-9,
    atol: float = 1e-12,
) -> None:
    """Check the steps of an optimizer against a plain formula.

    Parameters of several shapes, small ones that are updated together and a large one, take some
    steps with random gradients, and are compared with what the formula makes of the same.

    Args:
        make: the optimizer of a dict of parameters: ``lambda w: MySgd(w, lr=0.1)``.
        formula: the parameter, its gradient, its state so far and the number of the step, counted
            from 1, in; the new parameter out. The state is a dict that the formula fills itself,
            one for each parameter, empty before the first step.
        rng: where parameters and gradients come from.
        steps: how many steps, > 0.
        rtol: the relative tolerance, >= 0.
        atol: the absolute tolerance, >= 0.

    Raises:
        OptimizerMismatchError: if a parameter differs; an `AssertionError`.
        ArgumentTypeError: if `make` or `formula` is not callable, or an argument of a wrong kind.
        ArgumentValueError: if a number is outside its range.

    >>> import numpy as np
    >>> from tapetensor import optim
    >>> from tapetensor.testing import check_optimizer
    >>> def sgd(p, g, state, step):
    ...     state["v"] = 0.9 * state.get("v", 0.0) + g
    ...     return p - 0.1 * state["v"]
    >>> make = lambda w: optim.Sgd(w, lr=0.1, momentum=0.9)
    >>> check_optimizer(make, sgd, rng=np.random.default_rng(0))
    """
    op = "check_optimizer"
    check_function(op, "make", make)
    check_function(op, "formula", formula)
    check_rng(op, rng)
    count = as_size(op, "steps", steps, low=1)
    relative = as_number(op, "rtol", rtol, at_least=0)
    absolute = as_number(op, "atol", atol, at_least=0)
    # The last one is large enough to be updated by itself.
    shapes: list[tuple[int, ...]] = [(), (3,), (2, 4), (33_000,)]
    tensors: dict[str, Plain] = {
        f"w{at}": from_numpy(np.asarray(rng.standard_normal(shape)))
        for at, shape in enumerate(shapes)
    }
    expected: dict[str, Array] = {name: one.numpy().copy() for name, one in tensors.items()}
    states: dict[str, dict[str, Array]] = {name: {} for name in tensors}
    optimizer = make(tensors)
    for step in range(1, count + 1):
        gradients = Gradients()
        for name, tensor in tensors.items():
            gradient: Array = np.asarray(rng.standard_normal(tensor.shape))
            gradients.insert(tensor, gradient)
            expected[name] = formula(expected[name], gradient.copy(), states[name], step)
        optimizer.step(gradients)
        for name, tensor in tensors.items():
            found, wanted = tensor.numpy(), expected[name]
            if not np.allclose(found, wanted, rtol=relative, atol=absolute):
                worst = np.unravel_index(np.argmax(np.abs(found - wanted)), found.shape)
                raise OptimizerMismatchError(
                    f"check_optimizer: after step {step} the parameter of shape {found.shape} is "
                    f"{found[worst]:.12g} at {tuple(map(int, worst))}, by the formula "
                    f"{np.asarray(wanted)[worst]:.12g}"
                )


def _check_direction(
    f: Callable[..., Traced],
    points: list[Array],
    checked: tuple[int, ...],
    rng: np.random.Generator,
    eps: float,
    rtol: float,
    atol: float,
) -> None:
    directions: list[Array] = [
        np.asarray(rng.standard_normal(point.shape))
        if position in checked
        else np.zeros_like(point)
        for position, point in enumerate(points)
    ]
    leaves = [from_numpy(point) for point in points]
    output = _call(f, leaves, checked)
    ops = ", ".join([op_name(step[1]) for step in recorded(output.history)]) or "none"
    cotangent: Array = np.asarray(rng.standard_normal(output.shape))
    wanted = [leaves[position] for position in checked]
    gradients = output.backward(from_numpy(cotangent), wrt=wanted)
    # No entry means that no gradient flowed to the leaf, which is a derivative of 0.
    found = [gradients.get(leaf) for leaf in wanted]
    pulled_back = math.fsum(
        float(np.sum(gradient.numpy() * directions[position]))
        for gradient, position in zip(found, checked, strict=True)
        if gradient is not None
    )

    ahead = _call(f, _moved(points, directions, eps), checked).detach().numpy()
    behind = _call(f, _moved(points, directions, -eps), checked).detach().numpy()
    pushed_forward = float(np.sum(cotangent * (ahead - behind))) / (2.0 * eps)

    allowed = atol + rtol * max(abs(pulled_back), abs(pushed_forward))
    # Written so that a NaN on either side fails.
    if not abs(pulled_back - pushed_forward) <= allowed:
        where = " and ".join(f"input {position}" for position in checked)
        values = "\n".join(
            f"  input {position}, shape {point.shape}: "
            f"{np.array2string(point, threshold=_SHOWN_ELEMENTS, prefix='    ')}"
            for position, point in enumerate(points)
        )
        raise GradientMismatchError(
            f"check_grad: the derivative of {getattr(f, '__name__', f)} by {where} is wrong: "
            f"the pullbacks give {pulled_back:.12g}, central differences {pushed_forward:.12g} "
            f"(allowed difference {allowed:.3g})\n  recorded ops: {ops}\n{values}"
        )


def _moved(points: list[Array], directions: list[Array], step: float) -> list[Plain]:
    return [
        from_numpy(np.add(point, step * u)) for point, u in zip(points, directions, strict=True)
    ]


def _call(f: Callable[..., Traced], leaves: list[Plain], checked: tuple[int, ...]) -> Traced:
    """Call `f` with the checked inputs traced and make sure of what it returns."""
    # Traced for the differences as well: a module may compute something else for a plain input.
    output = f(
        *[leaf.trace() if position in checked else leaf for position, leaf in enumerate(leaves)]
    )
    check_tensor("check_grad", "the result of f", output)
    _check_float64("the result of f", output)
    if not output.owns_tape:
        raise UntracedTensorError(
            "check_grad: the result of f owns no tape, so it does not depend on the traced input; "
            "inside f use the tensors that it is given, without detach()"
        )
    return output


def _point(position: int, tensor: TensorBase[Any, Any, Any]) -> Array:
    name = f"input {position}"
    check_plain("check_grad", name, tensor, "check_grad traces it")
    _check_float64(name, tensor)
    point: Array = tensor.numpy()
    return point


def _check_float64(name: str, tensor: TensorBase[Any, Any, Any]) -> None:
    if tensor.dtype != np.float64:
        raise DTypeError(
            f"check_grad: {name} has dtype {tensor.dtype}, which is too coarse for differences; "
            "use float64 (x.astype(np.float64))"
        )
