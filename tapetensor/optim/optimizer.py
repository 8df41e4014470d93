"""The base of all optimizers: it finds parameters, takes steps, and reports missing gradients."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from typing_extensions import override

from tapetensor.arguments import as_flag, as_number, check_choice, check_kind
from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import Captured
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, UnusedParametersError
from tapetensor.optim.group import NO_GRADIENT, Group, Names, State, Takes
from tapetensor.tape import NoneTape
from tapetensor.tape.context import active_context
from tapetensor.tape.gradients import Gradients
from tapetensor.tape.history import comes_of_parameters, own
from tapetensor.tensor.base import check_floating, check_plain
from tapetensor.tensor.ownership import HasParameters
from tapetensor.tensor.tensor import Tensor

# What has parameters, or the tensors themselves.
Parameters: TypeAlias = (
    HasParameters | Sequence[Tensor[Any, NoneTape, Any]] | Mapping[str, Tensor[Any, NoneTape, Any]]
)
# From so many elements on a parameter is updated by itself.
_LARGE = 32_768


class Optimizer(ABC):
    """The parameters of a model, and the state that belongs to each.

    The parameters are those that the model has when the optimizer is made. A parameter with two
    names is updated once. A step keeps the tensors and their ids, and gives them new arrays. Tapes,
    `numpy()` views and detached tensors keep the old arrays.

    An optimizer of your own derives from this class. It passes its update to this constructor as
    `kernel`, and returns the options of a step from `_options`. The update is a function

        kernel(out, parameter, gradient, *state, scratch, *options) -> None

    All arrays have one shape, mostly ``(n,)``, for parameters lie end to end, and one dtype:

    - `out` takes the new parameter. It may be the memory of the gradient, so the gradient is not
      read any more once `out` is written to.
    - `parameter` and `gradient` are read and never written to.
    - `state`: an array for each of `states`, in their order, which is written over.
    - `scratch`: two arrays for temporaries, in a tuple, with anything in them.
    - `options`: what ``_options(count)`` returns for step number `count`, counted from 1.

    The update must work element by element, because it may get the parameters in pieces. The first
    step tries it, and `tapetensor.testing.check_optimizer` compares it with a plain formula.

    Args:
        model: a module or another object with ``parameters()``, a list of tensors, or a dict of
            tensors by name.
        lr: the learning rate.
        kernel: the update.
        states: the arrays of state that there are to a parameter, `optim.State`, by names of
            their own; ``step`` is taken.
        weight_decay: how strong the decay is, for `_decay`.
        decoupled_weight_decay: whether it acts on the parameter directly.
        check_finite: whether a step refuses gradients that are not finite.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import optim
    >>> def update(out, parameter, gradient, mean, scratch, lr):
    ...     mean += 0.1 * (gradient - mean)
    ...     out[...] = parameter - lr * np.sign(mean)
    >>> class SignOfMean(optim.Optimizer):
    ...     def __init__(self, model, lr):
    ...         super().__init__(model, lr, update, [optim.State("mean")], 0.0, False)
    ...     def _options(self, count):
    ...         return (self.lr,)
    >>> w = tt.ones((2,))
    >>> SignOfMean([w], lr=0.25).step(w.trace().square().sum().backward())
    >>> w.numpy()
    array([0.75, 0.75], dtype=float32)
    """

    def __init__(
        self,
        model: Parameters,
        lr: float,
        kernel: Callable[..., None],
        states: Sequence[State],
        weight_decay: float,
        decoupled_weight_decay: bool,
        *,
        check_finite: bool = False,
    ) -> None:
        self._op = op = type(self).__name__
        self._weight_decay = as_number(op, "weight_decay", weight_decay, at_least=0)
        self._is_decoupled = as_flag(op, "decoupled_weight_decay", decoupled_weight_decay)
        self._lr = _as_lr(op, lr)
        self._check_finite = as_flag(op, "check_finite", check_finite)
        self._parameters = parameters = _named_parameters(op, model)
        # An update of one's own is tried before the first step.
        self._is_tried = getattr(kernel, "__module__", "").startswith("tapetensor.")
        self._states = tuple(states)
        _check_names(op, [one.name for one in self._states])
        self._size = sum([tensor.size for tensor in parameters.values()])
        takes = self._takes()
        self.groups = [
            Group([(names, parameters[names]) for names in group], kernel, states, takes)
            for group in _grouped(parameters, _LARGE if takes != "rows" else 0)
        ]

    if not TYPE_CHECKING:
        # A checker that saw this would accept any name.
        @override
        def __setattr__(self, name: str, value: object) -> None:
            """Set an attribute; refuse what an optimizer is only made with, and does not read."""
            if name in _made_with(type(self)):
                raise AttributeError(
                    f"{type(self).__name__}: {name} is what an optimizer is made with, and is not "
                    "set later, as lr is; make another one, and hand on the state: "
                    "io.load_state_dict(another, io.state_dict(this))"
                )
            super().__setattr__(name, value)

    @property
    def steps(self) -> int:
        """The number of steps so far, which is the argument of a schedule."""
        first = self.groups[0]
        captured = first.captured()
        if captured is not None:
            raise captured.refusal(
                "the number of steps is read, which every call changes; read it between the calls, "
                "as in optimizer.lr = schedule(optimizer.steps)"
            )
        return first.steps

    @property
    def lr(self) -> float:
        """The learning rate, >= 0; set it between steps: ``optimizer.lr = schedule(step)``."""
        return self._lr

    @lr.setter
    def lr(self, value: float) -> None:
        # While a function is compiled it is a number of the plan.
        if isinstance(self._lr, Captured):
            raise self._lr.array.refusal(
                "the learning rate is set, which a replay would not repeat; set it between the "
                "calls: optimizer.lr = ..."
            )
        self._lr = _as_lr(self._op, value)

    def parameters(self) -> dict[str, Tensor[Any, Any, Any]]:
        """Return the updated tensors, by all their names: ``loss.backward(wrt=optimizer)``."""
        return {name: tensor for names, tensor in self._parameters.items() for name in names}

    def step(self, grads: Gradients, *, unused: Literal["error", "skip"] = "error") -> None:
        """Update every parameter by its gradient, or none.

        Args:
            grads: the gradients that `backward` returned.
            unused: ``"error"`` raises an error if a parameter has no gradient. ``"skip"`` leaves
                such parameters and their state as they are, without decay, as for one head of
                several, or an expert that got no tokens. Their own counts of steps, by which Adam
                corrects its means, stand still, as in PyTorch.

        Raises:
            MissingGradientError: if a gradient lacks a part, because its parameter was also used in
                ops that no tape recorded; nothing is updated then.
            UnusedParametersError: if parameters have no gradient, unless they are skipped, or one
                of another shape, dtype or library of arrays; nothing is updated then.
            NumericalInstabilityError: if a gradient is not finite and the optimizer was made with
                ``check_finite=True``; nothing is updated then.
            ArgumentTypeError: if `grads` are not Gradients; at the first step of an optimizer of
                one's own, if its update takes other arguments or returns something.
            ArgumentValueError: if `unused` is neither; at that step, if its update writes nothing
                to `out`, or reads or writes what it must not.
        """
        if unused != "error":
            check_choice(f"{self._op}.step", "unused", unused, ("error", "skip"))
        words = "the Gradients that backward() returns"
        check_kind(f"{self._op}.step", "grads", grads, Gradients, words)
        if not self._is_tried:
            # So that nothing is changed by one that is wrong.
            first, starts = self.groups[0], [one.start for one in self._states]
            _try_update(self._op, first.kernel, starts, self._options, first.dtype)
            self._is_tried = True
        if grads.gaps:
            names: dict[int, str] = {
                tensor.id: names[0] for names, tensor in self._parameters.items()
            }
            grads.check_complete(f"{self._op}.step", names)
        lacking: list[tuple[Names, str]] = []
        updates = [(group, group.gradients(grads, lacking)) for group in self.groups]
        refused = lacking
        if unused == "skip":
            refused = [one for one in lacking if one[1] != NO_GRADIENT]
        if refused:
            listed = "; ".join([f"{' = '.join(names)}: {reason}" for names, reason in refused])
            raise UnusedParametersError(
                f"{self._op}.step: nothing was updated, for these parameters cannot be: {listed}. "
                "Did they take part in the loss, was `wrt` the whole model, and does it still have "
                "them? After a layer is replaced, make a new optimizer; to clip or set weights "
                "between steps, write tt.ravel(model).assign(...). Where it is meant that some "
                'have no gradient, step(grads, unused="skip") leaves them as they are.',
                [name for names, _ in refused for name in names],
            )
        if self._check_finite:
            for group, gradients in updates:
                group.check_finite(f"{self._op}.step", gradients)
        for group, gradients in updates:
            group.step(gradients, self._options, not lacking)

    def zero_grad(self) -> None:
        """Close what is left on the tapes of the active context, before the next step begins.

        Gradients are values that `backward` returns, so there is none to set to zero here (for a
        store that a loop carries from step to step there is ``grads.zero()``). Call it after
        `step`, if at all: what was recorded is freed with the tensors, and nothing grows without
        it.
        """
        active_context().close_tapes(
            f"{self._op}.zero_grad() was called (which belongs after step(), not between the "
            "forward and the backward pass)"
        )

    def state_arrays(self) -> dict[str, Array]:
        """Return all that `step` changes, but for the parameters: what `tapetensor.io` saves.

        ``lr``, ``steps``, and by the name of each parameter its own step count and the arrays of
        the algorithm: ``hidden.weight.velocity``, say. Copy an array before the next step.
        """
        arrays = {"lr": np.array(self._lr), "steps": np.array(self.steps)}
        for group in self.groups:
            arrays |= group.state_arrays()
        return arrays

    def check_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Check values that are to be restored, as `state_arrays` returns them.

        Args:
            arrays: ``lr``, ``steps``, and the arrays of each parameter, by name.

        Raises:
            ArgumentValueError: if the learning rate or a step count is outside its range, a number
                is not finite, or a parameter took more steps than there were.
        """
        for name, array in arrays.items():
            if name in ("lr", "steps") or name.endswith(".step"):
                as_number(self._op, name, array.item(), at_least=0)
            elif array.dtype.kind == "f" and not np.all(np.isfinite(array)):
                raise ArgumentValueError(f"{self._op}: {name} must be finite, and is not")
        steps = int(arrays["steps"])
        for group in self.groups:
            for name, taken in group.counts(arrays).items():
                if taken > steps:
                    raise ArgumentValueError(
                        f"{self._op}: {name} took {taken} steps, and there were {steps}"
                    )

    def restore_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Take over what `state_arrays` returned, which `tapetensor.io` has checked."""
        self._lr = float(arrays["lr"])
        for group in self.groups:
            group.restore_arrays(arrays)

    @override
    def __repr__(self) -> str:
        """Show how much is optimized, and the learning rate."""
        return f"{self._op}({self._size} parameters, lr={self._lr:g})"

    def _takes(self) -> Takes:
        """Return what the update is for: some rows of a table, the whole of it, or either.

        It is either where it leaves an element as it is, with its state, whose gradient is zero.
        """
        return "whole"

    @abstractmethod
    def _options(self, count: int) -> tuple[Any, ...]:
        """Return the options of the kernels for step number `count`, counted from 1."""

    def _decay(self, lr: float) -> tuple[float, float]:
        """Return what is added to the gradient per parameter, and what is kept of the parameter."""
        decay = self._weight_decay
        return (0.0, 1 - lr * decay) if self._is_decoupled else (decay, 1.0)


@cache
def _made_with(cls: type[Optimizer]) -> frozenset[str]:
    """Return the arguments, but `lr`, that an optimizer of this library is made with."""
    is_own = cls.__module__.startswith(Optimizer.__module__.rpartition(".")[0])
    return frozenset(inspect.signature(cls).parameters if is_own else ()) - {"lr"}


def _check_names(op: str, names: Sequence[str]) -> None:
    """Refuse names of state of which a file would hold one for two."""
    for at, name in enumerate(names):
        is_taken = name == "step" or name in names[:at]
        if is_taken or not name or "." in name:
            why = "is taken" if is_taken else "must be a word without dots"
            raise ArgumentValueError(
                f"{op}: the state {name!r} {why}: files have the arrays by these names"
            )


def _as_lr(op: str, value: object) -> float:
    if callable(value):
        raise ArgumentTypeError(
            f"{op}: lr must be a number, got a function; of a schedule take the number before each "
            "step: optimizer.lr = schedule(optimizer.steps)"
        )
    return as_number(op, "lr", value, at_least=0)


def _named_parameters(op: str, model: Parameters) -> dict[Names, Tensor[Any, Any, Any]]:
    """Return the parameters of `model`, each once, by all its names."""
    named: Any
    if isinstance(model, Mapping) and all(isinstance(name, str) for name in model):
        named = model
    elif isinstance(model, list | tuple):
        named = {str(at): one for at, one in enumerate(model)}
    elif callable(getattr(model, "parameters", None)) and not isinstance(model, type):
        named = model.parameters()  # type: ignore[union-attr]
    else:
        got = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise ArgumentTypeError(
            f"{op}: expected a model with a method parameters() that returns tensors by name, a "
            f"list of tensors, or a dict of tensors by name, got {got}"
        )
    names: dict[int, Names] = {}
    tensors: dict[int, Any] = {}
    for name, tensor in named.items():
        cure = "it is the model's input that is traced"
        check_plain(op, f"parameter {name!r}", tensor, cure)
        check_floating(op, tensor)
        known = tensors.setdefault(tensor.id, tensor)
        if known is not tensor:
            raise ArgumentValueError(
                f"{op}: parameters {names[tensor.id][0]!r} and {name!r} are two handles of one id, "
                "of which only one would get new values; to share it, use one object for both"
            )
        names[tensor.id] = (*names.get(tensor.id, ()), name)
    if not tensors:
        raise ArgumentValueError(f"{op}: the model has no parameters to optimize")
    for tensor in tensors.values():
        if not comes_of_parameters(tensor.history):
            own(tensor, is_trained=True)
    return {names[unique_id]: tensor for unique_id, tensor in tensors.items()}


def _grouped(parameters: dict[Names, Tensor[Any, Any, Any]], large: int) -> list[list[Names]]:
    """Return the names by group: small parameters of one dtype together, each large one alone.

    A large one gains nothing from company, for which its gradient would have to be copied.
    """
    together: dict[np.dtype[Any], list[Names]] = {}
    alone: list[list[Names]] = []
    for names, tensor in parameters.items():
        if tensor.size < large:
            together.setdefault(tensor.dtype, []).append(names)
        else:
            alone.append([names])
    return [*together.values(), *alone]


def _try_update(
    op: str,
    kernel: Callable[..., None],
    starts: Sequence[float],
    options: Callable[[int], tuple[Any, ...]],
    dtype: np.dtype[Any],
) -> None:
    """Run an update on arrays of its own, and refuse one that breaks the contract of `Optimizer`.

    Args:
        starts: the first value of each array of state.
        options: what the update is given at the end, by the number of the step.
    """
    taken = options(1)
    _check_arity(op, kernel, len(starts), taken)
    parameter = np.array([0.5, -0.25, 0.75], dtype)
    gradient = np.array([0.125, 0.5, -0.25], dtype)

    def tried(fill: float | None) -> Array:
        """Return what is written to an array full of a number, or, for None, over the gradient."""
        given, flow = parameter.copy(), gradient.copy()
        out = flow if fill is None else np.full_like(parameter, fill)
        state = [np.full_like(given, start) for start in starts]
        scratch = np.empty_like(given), np.empty_like(given)
        with np.errstate(all="ignore"):
            returned: object = kernel(out, given, flow, *state, scratch, *taken)  # type: ignore[func-returns-value]  # one of one's own may return something
        if returned is not None:
            raise ArgumentTypeError(
                f"{op}: its update returns {type(returned).__name__}, and must write to its first "
                "argument, out, and return nothing: out[...] = parameter - lr * gradient"
            )
        if not np.array_equal(given, parameter) or (
            out is not flow and not np.array_equal(flow, gradient)
        ):
            raise ArgumentValueError(
                f"{op}: its update writes to the parameter or the gradient, which others hold, "
                "too; write to out, and to the arrays of state"
            )
        return out

    over_nan, over_zero = tried(np.nan), tried(0.0)
    unwritten = np.isnan(over_nan) & (over_zero == 0.0)
    if unwritten.any():
        raise ArgumentValueError(
            f"{op}: its update writes nothing to {'its argument out' if unwritten.all() else ''}"
            f"{'' if unwritten.all() else 'a part of out'}, which takes the new parameter; write "
            "out[...] = parameter - lr * gradient, not parameter = ..., and return nothing"
        )
    if not np.array_equal(tried(None), over_zero, equal_nan=True):
        raise ArgumentValueError(
            f"{op}: its update reads the gradient after it has written to out, which may be the "
            "memory of the gradient; write to out last, or in one expression: "
            "out[...] = parameter - lr * gradient"
        )


def _check_arity(op: str, kernel: Callable[..., None], states: int, taken: tuple[Any, ...]) -> None:
    if not isinstance(taken, tuple):
        raise ArgumentTypeError(
            f"{op}: _options(count) must return a tuple, got {type(taken).__name__}; "
            "write (self.lr,), say"
        )
    try:
        signature = inspect.signature(kernel)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*[None] * (3 + states + 1 + len(taken)))
    except TypeError as error:
        parts = ["out, parameter, gradient", f"{states} of state" * bool(states), "scratch"]
        parts += [f"{len(taken)} that _options returns"] * bool(taken)
        raise ArgumentTypeError(
            f"{op}: its update takes {signature}, and is given {', '.join(filter(None, parts))}: "
            f"{error}"
        ) from error
