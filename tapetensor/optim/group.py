"""Parameters that are updated together, as one flat array."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from sys import getrefcount
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import TypeIs

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import beside, library_of
from tapetensor.arrays.stand_ins import CapturedArray
from tapetensor.tape.gradients import Gradients
from tapetensor.tensor.tensor import Tensor

# How many elements go through a whole update at a time. So many stay in the caches from the first
# ufunc to the last; with fewer the calls would count: a fourth of it takes a tenth more time.
BLOCK = 1 << 17

# All names of one parameter.
Names = tuple[str, ...]
# The further arguments of the kernels, by the number of the step.
Options = Callable[[int], tuple[Any, ...]]


class State(NamedTuple):
    """One array of state that belongs to every parameter.

    Attributes:
        name: what it is called in files.
        start: the value that all of it has before the first step.
        is_used: False if the hyperparameters leave it as it is, so that it need not be saved.
    """

    name: str
    start: float = 0.0
    is_used: bool = True


class Group:
    """Parameters of one dtype whose values and optimizer state lie end to end in flat arrays.

    One update of the flat arrays costs as few numpy calls as that of a single parameter. What is
    out of the ordinary (a gradient is missing, parameters have taken different numbers of steps,
    the arrays are not numpy's) is updated parameter by parameter.

    Arrays that others may see are never written to (copy on write): the gradients are laid end to
    end in a buffer, new values are written over them there, and the parameters become views of it.
    The buffer that they leave takes the next gradients, but only once its reference count says that
    nobody else, no tape and no view, holds on to it.

    Args:
        parameters: the names and the tensor of each.
        kernel: given where the new parameter goes, the parameter, its gradient, its state, which
            is written over, memory for temporaries and options.
        states: the arrays of state that there are to a parameter.
    """

    __slots__ = (
        "_apart",
        "_kernel",
        "_names",
        "_scratch",
        "_slices",
        "_state",
        "_states",
        "_steps",
        "_values",
        "_views",
        "missed",
        "shapes",
        "spare",
        "tensors",
    )

    def __init__(
        self,
        parameters: Sequence[tuple[Names, Tensor[Any, Any, Any]]],
        kernel: Callable[..., None],
        states: Sequence[State],
    ) -> None:
        self._names = tuple([names for names, _ in parameters])
        self.tensors = tensors = tuple([tensor for _, tensor in parameters])
        self._kernel = kernel
        self.shapes = tuple([tensor.array.shape for tensor in tensors])
        ends = np.cumsum([tensor.size for tensor in tensors]).tolist()
        self._slices = tuple(map(slice, [0, *ends[:-1]], ends))
        size, dtype = ends[-1], tensors[0].dtype
        self._states = tuple(states)
        self._state: list[Array] = [
            np.full(size, one.start, dtype) if one.start else np.zeros(size, dtype)
            for one in states
        ]
        # State that is not in the flat arrays at the moment, by position.
        self._apart: dict[int, list[Array]] = {}
        block = min(size, BLOCK)
        self._scratch: tuple[Array, Array] = (np.empty(block, dtype), np.empty(block, dtype))
        self._values: Array = np.empty(size, dtype)
        self._views: Sequence[Array | None] = [None] * len(tensors)
        self.spare: Array | None = None
        self._steps = 0
        # How many steps a parameter is behind, by position.
        self.missed: dict[int, int] = {}

    def __len__(self) -> int:
        """Return the number of parameters."""
        return len(self.tensors)

    def step(
        self, grads: Gradients, options: Options, count: Callable[[int], None] | None
    ) -> list[tuple[Names, str]]:
        """Update the parameters that have a gradient; return the others' names and the reasons.

        Args:
            grads: by the ids of the parameters.
            options: the further arguments of the kernels.
            count: called with the number of steps, 1, when there was an update; if it was
                captured, when it is run.
        """
        unused = self._step(grads, options, count)
        if count is not None and len(unused) < len(self.tensors) and self.captured() is None:
            count(1)
        return unused

    def captured(self) -> CapturedArray | None:
        """Return an array that a step is captured by, which changes nothing yet; None without."""
        data: Any = self.tensors[0].array
        return data if isinstance(data, CapturedArray) else None

    def _step(
        self, grads: Gradients, options: Options, count: Callable[[int], None] | None
    ) -> list[tuple[Names, str]]:
        array_of = grads.array
        gradients: list[Any] = [array_of(tensor.id) for tensor in self.tensors]
        dtype = self._values.dtype
        for gradient, shape in zip(gradients, self.shapes, strict=True):
            # The quick question first: a numpy scalar or a subclass is not wrong, only rare.
            if gradient.__class__ is not np.ndarray and not _is_numpy(gradient):
                break
            if gradient.shape != shape or gradient.dtype != dtype:
                break
        else:
            if not self.missed and self._step_whole(gradients, options):
                return []
        captured = self.captured()
        if captured is not None:
            return self._capture(captured, gradients, Update(self, options, count))
        return self.step_each(gradients, options)

    def _capture(
        self, captured: CapturedArray, gradients: list[Any], update: Update
    ) -> list[tuple[Names, str]]:
        """Let the step become one of a program; return what could not be updated."""
        reasons = [
            _misfit(gradient, shape, self._values.dtype)
            for gradient, shape in zip(gradients, self.shapes, strict=True)
        ]
        fitting = [position for position, reason in enumerate(reasons) if not reason]
        if fitting:
            update.positions = fitting
            arrays = captured.capture_update(update, [gradients[position] for position in fitting])
            for tensor, array in zip(update.tensors, arrays, strict=True):
                tensor.array = array
        return [(name, reason) for name, reason in zip(self._names, reasons, strict=True) if reason]

    def _step_whole(self, gradients: list[Any], options: Options) -> bool:
        """Update all parameters as one; False, with nothing done, if not all of it is numpy's."""
        if not self.is_flat():
            return False
        if len(gradients) == 1:
            # It belongs to the user.
            self.step_flat(np.reshape(gradients[0], -1), self.buffer(), options)
            return True
        buffer = np.concatenate(gradients, axis=None, out=self.buffer())
        self.step_flat(buffer, buffer, options)
        return True

    def is_flat(self) -> bool:
        """Bring values and state into the flat arrays; False if not all of it is numpy's."""
        for tensor, view in zip(self.tensors, self._views, strict=True):
            if tensor.array is not view:
                # The first step, or someone gave the tensor other values since the last one.
                arrays = [tensor.array for tensor in self.tensors]
                if not all(map(_is_numpy, arrays)):
                    return False
                # Nothing has ever been a part of the values, so they may be written over.
                is_first = all(one is None for one in self._views)
                own = self._values if is_first else None
                self._values = np.concatenate(arrays, axis=None, out=own)
                break
        return not self._apart or self._gather_state()

    def step_flat(
        self,
        gradient: Array,
        out: Array,
        options: Options,
        views: Sequence[Array] | None = None,
    ) -> None:
        """Update all parameters, which are flat, by their gradients end to end.

        Args:
            gradient: the gradients.
            out: takes the new values; nobody else can see it. It may be that of the gradients.
            options: the further arguments of the kernel.
            views: the parts of `out` that become the parameters, if there are such already.
        """
        self._steps += 1
        self._run(out, self._values, gradient, options(self._steps))
        self._values, self.spare = out, self._values
        self._views = new = self.parts(out) if views is None else views
        for tensor, view in zip(self.tensors, new, strict=True):
            tensor.array = view

    def parts(self, flat: Array) -> list[Array]:
        """Return the part of each parameter in a flat array, in its shape."""
        places = zip(self._slices, self.shapes, strict=True)
        return [flat[part].reshape(shape) for part, shape in places]

    def saved(self) -> Callable[[], None]:
        """Return what puts parameters and state back to what they are now."""
        held = {name: getattr(self, name) for name in ("_values", "spare", "_steps")}
        arrays = [tensor.array for tensor in self.tensors]
        views, apart, missed = list(self._views), dict(self._apart), dict(self.missed)
        state = [flat.copy() for flat in self._state]

        def put_back() -> None:
            for name, value in held.items():
                setattr(self, name, value)
            for tensor, array in zip(self.tensors, arrays, strict=True):
                tensor.array = array
            self._views, self._apart, self.missed = views, apart, missed
            for flat, before in zip(self._state, state, strict=True):
                flat[:] = before

        return put_back

    def _gather_state(self) -> bool:
        """Bring the state into the flat arrays; False, with nothing done, if it is not numpy's."""
        if not all(_is_numpy(array) for state in self._apart.values() for array in state):
            return False
        for position, state in self._apart.items():
            for flat, array in zip(self._state, state, strict=True):
                flat[self._slices[position]] = np.reshape(array, -1)
        self._apart.clear()
        return True

    def buffer(self) -> Array:
        """Return memory for the values of all parameters that nobody else can see."""
        if self.spare is None or getrefcount(self.spare) != _REFERENCES_OF_UNSHARED:
            return np.empty_like(self._values)
        spare, self.spare = self.spare, None
        return spare

    def _run(self, out: Array, values: Array, gradient: Array, options: tuple[Any, ...]) -> None:
        """Run the kernel on the flat arrays, block by block."""
        if out.size <= BLOCK:
            self._kernel(out, values, gradient, *self._state, self._scratch, *options)
            return
        one, other = self._scratch
        for start in range(0, out.size, BLOCK):
            block = slice(start, min(start + BLOCK, out.size))
            self._kernel(
                out[block],
                values[block],
                gradient[block],
                *[flat[block] for flat in self._state],
                (one[: block.stop - start], other[: block.stop - start]),
                *options,
            )

    def step_each(self, gradients: list[Any], options: Options) -> list[tuple[Names, str]]:
        """Update one by one the parameters whose gradient fits."""
        reasons = [
            _misfit(gradient, shape, self._values.dtype) or _misplaced(gradient, tensor.array)
            for gradient, shape, tensor in zip(gradients, self.shapes, self.tensors, strict=True)
        ]
        if all(reasons):
            return list(zip(self._names, reasons, strict=True))
        self._steps += 1
        for position, tensor in enumerate(self.tensors):
            behind = self.missed.get(position, 0)
            if reasons[position]:
                self.missed[position] = behind + 1
                continue
            # To where the parameter is: it may have been moved since the last step.
            values = tensor.array
            state = [beside(array, values).copy() for array in self._state_of(position)]
            out, *scratch = [np.empty_like(values) for _ in range(3)]
            taken = options(self._steps - behind)
            self._kernel(out, values, gradients[position], *state, scratch, *taken)
            tensor.array, self._apart[position] = out, state
        self._forget_common_misses()
        return [(name, reason) for name, reason in zip(self._names, reasons, strict=True) if reason]

    def _forget_common_misses(self) -> None:
        """Count from the parameter that has taken the most steps.

        The counts, and with them the way that the next step takes, then depend on nothing but the
        steps of each parameter, which is what a file keeps.
        """
        common = min([self.missed.get(position, 0) for position in range(len(self.tensors))])
        if common:
            self._steps -= common
            behind = {position: missed - common for position, missed in self.missed.items()}
            self.missed = {position: missed for position, missed in behind.items() if missed}

    def _state_of(self, position: int) -> list[Array]:
        """Return the arrays of state of one parameter."""
        return self._apart.get(position) or [
            flat[self._slices[position]].reshape(self.shapes[position]) for flat in self._state
        ]

    def state_arrays(self) -> dict[str, Array]:
        """Return the state by the first name of each parameter, ``weight.velocity``, say."""
        arrays: dict[str, Array] = {}
        for position, (name, *_) in enumerate(self._names):
            for one, array in zip(self._states, self._state_of(position), strict=True):
                if one.is_used:
                    arrays[f"{name}.{one.name}"] = array
            arrays[f"{name}.step"] = np.array(self._steps - self.missed.get(position, 0))
        return arrays

    def restore_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Take over what `state_arrays` returned, names, shapes and dtypes having been checked."""
        self._apart.clear()
        steps = [int(arrays[f"{name}.step"]) for name, *_ in self._names]
        self._steps = max(steps)
        self.missed = {
            position: self._steps - taken
            for position, taken in enumerate(steps)
            if taken < self._steps
        }
        for position, (name, *_) in enumerate(self._names):
            for one, flat in zip(self._states, self._state, strict=True):
                if one.is_used:
                    flat[self._slices[position]] = np.reshape(arrays[f"{name}.{one.name}"], -1)


class Update:
    """The step of a group, to be run again with other gradients.

    Args:
        group: what is updated.
        options: the further arguments of its kernels, by the number of the step.
        count: called with the number of steps, 1, when it is run, if given.

    Attributes:
        positions: those of the parameters that have a gradient.
    """

    def __init__(self, group: Group, options: Options, count: Callable[[int], None] | None) -> None:
        self.group = group
        self._options = options
        self.count = count
        self.counted = 0
        self.positions: list[int] = []

    @property
    def tensors(self) -> tuple[Tensor[Any, Any, Any], ...]:
        """The parameters that it updates."""
        return tuple([self.group.tensors[position] for position in self.positions])

    @property
    def is_whole(self) -> bool:
        """Whether all parameters of the group have a gradient."""
        return len(self.positions) == len(self.group)

    def __call__(self, gradient: Array, parts: Sequence[Array] | None = None) -> None:
        """Update the parameters by their gradients, end to end in one array.

        Args:
            gradient: the gradients.
            parts: those of `gradient`, if it is the group's own buffer, which takes the new values.
        """
        group = self.group
        captured = group.captured()
        if captured is not None:
            # Another thread traces with these parameters, which refuses this one.
            captured.capture_update(self, [])
        if self.count is not None:
            self.count(1)
            self.counted = 1
        if self.is_whole and not group.missed and group.is_flat():
            out = group.buffer() if parts is None else gradient
            group.step_flat(gradient, out, self._options, parts)
            return
        found: list[Array | None] = [None] * len(group)
        start = 0
        for position in self.positions:
            shape = group.shapes[position]
            stop = start + math.prod(shape)
            found[position] = gradient[start:stop].reshape(shape)
            start = stop
        group.step_each(found, self._options)

    @staticmethod
    def saved(*updates: Update) -> Callable[[], None]:
        """Return what puts back all that calls of `updates` change from now on."""
        actions = [group.saved() for group in {update.group: None for update in updates}]
        for update in updates:
            update.counted = 0

        def put_back() -> None:
            for action in actions:
                action()
            for update in updates:
                if update.count is not None:
                    update.count(-update.counted)

        return put_back


def _is_numpy(array: object) -> TypeIs[np.ndarray[Any, Any]]:
    # An op may leave a numpy scalar where a 0-d array is meant; it has the same methods.
    return isinstance(array, np.ndarray | np.generic)


def _misfit(gradient: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    """Return why a gradient does not fit a parameter; empty if it does."""
    if gradient is None:
        return "no gradient"
    if gradient.shape != shape:
        return f"a gradient of shape {gradient.shape} for a parameter of shape {shape}"
    if gradient.dtype != dtype:
        return f"a gradient of dtype {gradient.dtype} for a parameter of dtype {dtype}"
    return ""


def _misplaced(gradient: Array, parameter: Array) -> str:
    """Return why a gradient does not lie where a parameter does; empty if it does."""
    theirs, ours = library_of(gradient), library_of(parameter)
    return "" if theirs == ours else f"a gradient of {theirs} for a parameter of {ours}"


def _references_of_unshared() -> int:
    """Return the reference count of an array that only one attribute holds, as Python gives it."""
    probe = Group.__new__(Group)
    probe.spare = np.empty(0)
    return getrefcount(probe.spare)


_REFERENCES_OF_UNSHARED = _references_of_unshared()
