"""Parameters that are updated together, as one flat array."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from sys import getrefcount
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from tapetensor.arrays.array import Array, is_numpys
from tapetensor.arrays.libraries import beside, library_of, to_numpy
from tapetensor.arrays.stand_ins import CapturedArray, run_check
from tapetensor.errors import NumericalInstabilityError
from tapetensor.kernels.numerics.decorators import IS_CHOSEN, MACHINE_CODE, MANY_STEPS
from tapetensor.tape.gradients import Gradients
from tapetensor.tape.row_sparse import RowSparse, dense_of, values_of
from tapetensor.tensor.base import plain_ids, wrap
from tapetensor.tensor.tensor import Tensor

# What an update is for: the rows of a table that were read, the whole of it, or either.
Takes: TypeAlias = Literal["rows", "whole", "either"]

# Why most parameters cannot be updated that cannot.
NO_GRADIENT = "no gradient"
_WHOLE = (
    "its gradient is that of the whole table, and not of rows; the table of an "
    "nn.Embedding(..., sparse=True) has one of rows, where it is read by that layer alone and "
    "outside of tt.compile; optim.Adam takes any other"
)

# All names of one parameter.
Names = tuple[str, ...]

# How many elements go through a whole update at a time. So many stay in the caches from the first
# ufunc to the last; with fewer the calls would count: a fourth of it takes a tenth more time.
BLOCK = 1 << 17

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

    One update of the flat arrays costs as few numpy calls as that of a single parameter. Parameters
    whose arrays are not numpy's are updated one by one.

    Arrays that others may see are never written to (copy on write): the gradients are laid end to
    end in a buffer, new values are written over them there, and the parameters become views of it.
    The buffer that they leave takes the next gradients, but only once its reference count says that
    nobody else, no tape and no view, holds on to it.

    The kernel is that of an `Optimizer`. A group of one parameter updates rows where it may.

    Attributes:
        steps: how many steps there were.
        missed: how many of these each parameter did not take, for it had no gradient.
        spare: memory for new values, if nobody else holds on to it.
    """

    __slots__ = (
        "_apart",
        "_names",
        "_scratch",
        "_shapes",
        "_slices",
        "_state",
        "_takes",
        "_values",
        "_views",
        "dtype",
        "kernel",
        "missed",
        "spare",
        "states",
        "steps",
        "tensors",
    )

    def __init__(
        self,
        parameters: Sequence[tuple[Names, Tensor[Any, Any, Any]]],
        kernel: Callable[..., None],
        states: Sequence[State],
        takes: Takes = "whole",
    ) -> None:
        self._takes = takes
        self._names = tuple([names for names, _ in parameters])
        self.tensors = tensors = tuple([tensor for _, tensor in parameters])
        self.kernel = kernel
        self._shapes = tuple([tensor._array.shape for tensor in tensors])
        ends = np.cumsum([tensor.size for tensor in tensors]).tolist()
        self._slices = tuple(map(slice, [0, *ends[:-1]], ends))
        size, dtype = ends[-1], tensors[0].dtype
        self.dtype: np.dtype[Any] = dtype
        self.states = tuple(states)
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
        self.steps = 0
        self.missed = [0] * len(tensors)

    def gradients(self, grads: Gradients, unused: list[tuple[Names, str]]) -> list[Any]:
        """Return each gradient, and add to `unused` which does not fit its parameter, and why."""
        array_of = grads.arrays.get
        gradients: list[Any] = [array_of(one) for one in plain_ids(self.tensors)]
        dtype, is_of_rows = self.dtype, self._takes == "rows"
        places = zip(self._names, self.tensors, gradients, self._shapes, strict=True)
        for names, tensor, gradient, shape in places:
            # The quick questions first: what else there is may be wrong, or only rare.
            if (
                type(gradient) is not np.ndarray
                or type(tensor._array) is not np.ndarray
                or gradient.dtype is not dtype
                or gradient.shape != shape
                or is_of_rows
            ):
                reason = misfit(gradient, tensor._array, shape, dtype, self._takes)
                if reason:
                    unused.append((names, reason))
        if RowSparse in map(type, gradients) and (len(gradients) > 1 or self._takes == "whole"):
            return [*map(dense_of, gradients)]
        return gradients

    def step(self, gradients: list[Any], options: Options, is_whole: bool = True) -> None:
        """Update the parameters that have a gradient; others stay as they are, with their state."""
        places = None if is_whole else places_of(gradients)
        if self.is_flat():
            is_native = IS_CHOSEN and self._values.size >= MANY_STEPS
            loop = MACHINE_CODE.update(self, options) if is_native else None
            if places == ():
                self.miss()
            elif isinstance(gradients[0], RowSparse):
                self._step_rows(gradients[0], options)
            elif len(gradients) == 1 and loop is None:
                # It belongs to the user.
                self.step_flat(np.reshape(gradients[0], -1), self.buffer(), options)
            elif places is None:
                buffer = np.concatenate(gradients, axis=None, out=self.buffer())
                self.step_flat(buffer, buffer, options, loop=loop)
            else:
                buffer = self.buffer()
                for place in places:
                    buffer[self._slices[place]] = np.reshape(gradients[place], -1)
                self.step_flat(buffer, buffer, options, loop=loop, places=places)
            return
        captured = self.captured()
        if captured is None:
            self._step_each(gradients, options)
            return
        update = Update(self, options, places)
        given = [one for one in gradients if one is not None]
        arrays = captured.capture_update(update, given)
        for tensor, array in zip(update.tensors, arrays, strict=True):
            tensor._array = array

    def check_finite(self, op: str, gradients: list[Any]) -> None:
        """Raise NumericalInstabilityError if a gradient is not finite; a plan does so each time."""
        for names, held in zip(self._names, gradients, strict=True):
            gradient = values_of(held)
            if type(gradient) is np.ndarray:
                refuse_not_finite(gradient, op, names)
            elif gradient is not None:
                run_check(refuse_not_finite, gradient, op, names)

    def captured(self) -> CapturedArray | None:
        """Return an array that a step is captured by, which changes nothing yet; None without."""
        data: Any = self.tensors[0]._array
        return data if isinstance(data, CapturedArray) else None

    def is_flat(self) -> bool:
        """Bring values and state into the flat arrays; False if values are not numpy's."""
        for tensor, view in zip(self.tensors, self._views, strict=True):
            if tensor._array is not view:
                # The first step, or someone gave the tensor other values since the last one.
                arrays = [tensor._array for tensor in self.tensors]
                if not all(map(is_numpys, arrays)):
                    return False
                # Nothing has ever been a part of the values, so they may be written over.
                is_first = all(one is None for one in self._views)
                own = self._values if is_first else None
                self._values = np.concatenate(arrays, axis=None, out=own)
                break
        if self._apart:
            for position, state in self._apart.items():
                for flat, array in zip(self._state, state, strict=True):
                    flat[self._slices[position]] = np.reshape(to_numpy(array), -1)
            self._apart.clear()
        return True

    def step_flat(
        self,
        gradient: Array,
        out: Array,
        options: Options,
        views: Sequence[Array] | None = None,
        loop: Callable[..., None] | None = None,
        places: tuple[int, ...] | None = None,
    ) -> None:
        """Update parameters, which are flat, by their gradients end to end.

        Args:
            out: takes the new values; nobody else can see it. It may be that of the gradients.
            views: the parts of `out` that become the parameters, if there are such already.
            loop: does what the kernel does, on all elements at once and without scratch; then `out`
                holds the gradients.
            places: which parameters have a gradient; None for all.
        """
        self.steps += 1
        if places is None and not any(self.missed):
            if loop is None:
                self._run(out, self._values, gradient, options(self.steps))
            else:
                loop(out, self._values, *self._state, *options(self.steps))
        else:
            self._run_parts(out, gradient, options, loop, places)
        self._values, self.spare = out, self._values
        self._views = new = self.parts(out) if views is None else views
        for tensor, view in zip(self.tensors, new, strict=True):
            tensor._array = view

    def _step_rows(self, gradient: RowSparse, options: Options) -> None:
        """Update some rows of the only parameter, in place if nobody else can see that."""
        (tensor,), (shape,) = self.tensors, self._shapes
        if tensor._array is not self._views[0] or is_shared(self._values, tensor):
            if tensor._array is self._views[0]:
                self._values = self._values.copy()
            self._views = self.parts(self._values)
            tensor._array = self._views[0]
        self.steps += 1
        taken = options(self.steps - self.missed[0])
        tables = [flat.reshape(shape) for flat in (self._values, *self._state)]
        ids, rows = gradient.summed()
        before, *state = [table[ids].reshape(-1) for table in tables]
        after = np.empty_like(before)
        self._run(after, before, rows.reshape(-1), taken, state)
        for table, changed in zip(tables, (after, *state), strict=True):
            table[ids] = changed.reshape(rows.shape)

    def _run_parts(
        self,
        out: Array,
        gradient: Array,
        options: Options,
        loop: Callable[..., None] | None,
        places: tuple[int, ...] | None,
    ) -> None:
        """Update each stretch of parameters that have taken as many steps; copy those without."""
        used = range(len(self.tensors)) if places is None else places
        for place in set(range(len(self.tensors))).difference(used):
            self.missed[place] += 1
            part = self._slices[place]
            out[part] = self._values[part]
        for missed, stretch in groupby(used, lambda place: self.missed[place]):
            for first, last in _unbroken(stretch):
                part = slice(self._slices[first].start, self._slices[last].stop)
                taken = options(self.steps - missed)
                new, old, flow = out[part], self._values[part], gradient[part]
                state = [flat[part] for flat in self._state]
                if loop is None:
                    self._run(new, old, flow, taken, state)
                else:
                    loop(new, old, *state, *taken)

    def miss(self) -> None:
        """Count a step in which no parameter has a gradient."""
        self.steps += 1
        self.missed = [one + 1 for one in self.missed]

    def parts(self, flat: Array) -> list[Array]:
        """Return the part of each parameter in a flat array, in its shape."""
        places = zip(self._slices, self._shapes, strict=True)
        return [flat[part].reshape(shape) for part, shape in places]

    def saved(self) -> Callable[[], None]:
        """Return what puts parameters and state back to what they are now."""
        held = {name: getattr(self, name) for name in ("_values", "spare", "steps")}
        missed = list(self.missed)
        arrays = [tensor._array for tensor in self.tensors]
        views, apart = list(self._views), dict(self._apart)
        state = [flat.copy() for flat in self._state]

        def put_back() -> None:
            for name, value in held.items():
                setattr(self, name, value)
            for tensor, array in zip(self.tensors, arrays, strict=True):
                tensor._array = array
            self._views, self._apart, self.missed = views, apart, missed
            for flat, before in zip(self._state, state, strict=True):
                flat[:] = before

        return put_back

    def buffer(self) -> Array:
        """Return memory for the values of all parameters that nobody else can see."""
        if self.spare is None or getrefcount(self.spare) != _REFERENCES_OF_UNSHARED:
            return np.empty_like(self._values)
        spare, self.spare = self.spare, None
        return spare

    def _run(
        self,
        out: Array,
        values: Array,
        gradient: Array,
        options: tuple[Any, ...],
        state: Sequence[Array] | None = None,
    ) -> None:
        """Run the kernel on flat arrays, block by block; without `state` on the whole of it."""
        flats = self._state if state is None else state
        one, other = self._scratch
        if out.size == one.size:
            self.kernel(out, values, gradient, *flats, self._scratch, *options)
            return
        for start in range(0, out.size, BLOCK):
            block = slice(start, min(start + BLOCK, out.size))
            self.kernel(
                out[block],
                values[block],
                gradient[block],
                *[flat[block] for flat in flats],
                (one[: block.stop - start], other[: block.stop - start]),
                *options,
            )

    def _step_each(self, gradients: list[Any], options: Options) -> None:
        """Update the parameters one by one."""
        self.steps += 1
        for position, tensor in enumerate(self.tensors):
            if gradients[position] is None:
                self.missed[position] += 1
                continue
            # To where the parameter is: it may have been moved since the last step.
            values = tensor._array
            state = [beside(array, values).copy() for array in self._state_of(position)]
            out, *scratch = [np.empty_like(values) for _ in range(3)]
            taken = options(self.steps - self.missed[position])
            self.kernel(out, values, gradients[position], *state, scratch, *taken)
            tensor._array, self._apart[position] = out, state

    def _state_of(self, position: int) -> list[Array]:
        """Return the arrays of state of one parameter."""
        return self._apart.get(position) or [
            flat[self._slices[position]].reshape(self._shapes[position]) for flat in self._state
        ]

    def state_arrays(self) -> dict[str, Array]:
        """Return the state by the first name of each parameter, ``weight.velocity``, say."""
        arrays: dict[str, Array] = {}
        for position, (name, *_) in enumerate(self._names):
            for one, array in zip(self.states, self._state_of(position), strict=True):
                if one.is_used:
                    arrays[f"{name}.{one.name}"] = array
            arrays[f"{name}.step"] = np.array(self.steps - self.missed[position])
        return arrays

    def counts(self, arrays: Mapping[str, Array]) -> dict[str, int]:
        """Return how many steps each parameter took, of what `state_arrays` returned."""
        return {name: int(arrays[f"{name}.step"]) for name, *_ in self._names}

    def restore_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Take over what `state_arrays` returned, names, shapes and dtypes having been checked."""
        self._apart.clear()
        self.steps = int(arrays["steps"])
        self.missed = [self.steps - one for one in self.counts(arrays).values()]
        for position, (name, *_) in enumerate(self._names):
            for one, flat in zip(self.states, self._state, strict=True):
                if one.is_used:
                    flat[self._slices[position]] = np.reshape(arrays[f"{name}.{one.name}"], -1)


class Update:
    """The step of a group, to be run again with other gradients for the same parameters."""

    def __init__(
        self, group: Group, options: Options, places: tuple[int, ...] | None = None
    ) -> None:
        self.group = group
        self.options = options
        self._places = range(len(group.tensors)) if places is None else places
        self.tensors = [group.tensors[place] for place in self._places]

    def parts(self, flat: Array) -> list[Array]:
        """Return the parts of a flat array for the parameters that have a gradient."""
        parts = self.group.parts(flat)
        return [parts[place] for place in self._places]

    def __call__(
        self,
        buffer: Array,
        parts: Sequence[Array],
        gradient: Array | None = None,
        loop: Callable[..., None] | None = None,
    ) -> None:
        """Update the parameters by gradients in the group's buffer, or in that of the only one."""
        group = self.group
        captured = group.captured()
        if captured is not None:
            # Another thread traces with these parameters, which refuses this one.
            captured.capture_update(self, [])
        # A plan is only for numpy's arrays, of which a group is always flat.
        group.is_flat()
        flat = buffer if gradient is None else np.reshape(gradient, -1)
        if len(parts) == len(group.tensors):
            group.step_flat(flat, buffer, self.options, parts, loop)
        elif parts:
            places = tuple(self._places)
            group.step_flat(flat, buffer, self.options, loop=loop, places=places)
        else:
            group.miss()

    @staticmethod
    def saved(*updates: Update) -> Callable[[], None]:
        """Return what puts back all that calls of `updates` change from now on."""
        actions = [group.saved() for group in {update.group: None for update in updates}]

        def put_back() -> None:
            for action in actions:
                action()

        return put_back


def _unbroken(places: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of places that follow one another."""
    for _, stretch in groupby(enumerate(places), lambda pair: pair[1] - pair[0]):
        listed = [place for _, place in stretch]
        yield listed[0], listed[-1]


def _references_of_unshared() -> int:
    """Return the reference count of an array that only one attribute holds, as Python gives it."""
    probe = Group.__new__(Group)
    probe.spare = np.empty(0)
    return getrefcount(probe.spare)


_REFERENCES_OF_UNSHARED = _references_of_unshared()


def misfit(
    gradient: Any, parameter: Any, shape: tuple[int, ...], dtype: np.dtype[Any], takes: Takes
) -> str:
    """Return why a gradient does not fit a parameter; empty if it does."""
    if gradient is None:
        return NO_GRADIENT
    if gradient.shape != shape:
        return f"a gradient of shape {gradient.shape} for a parameter of shape {shape}"
    if gradient.dtype != dtype:
        return f"a gradient of dtype {gradient.dtype} for a parameter of dtype {dtype}"
    if takes == "rows" and not isinstance(gradient, RowSparse):
        return _WHOLE
    values = values_of(gradient)
    if isinstance(parameter, CapturedArray) or (is_numpys(values) and is_numpys(parameter)):
        return ""
    theirs, ours = library_of(values), library_of(parameter)
    return "" if theirs == ours else f"a gradient of {theirs} for a parameter of {ours}"


def refuse_not_finite(gradient: Array, op: str, names: Names) -> None:
    """Raise NumericalInstabilityError if a gradient holds a NaN or an infinity."""
    # The sum of squares takes half the time; one that overflows says nothing.
    if type(gradient) is np.ndarray and math.isfinite(np.vdot(gradient, gradient)):
        return
    finite = np.isfinite(gradient)
    if not finite.all():
        name, count = " = ".join(names), int(finite.size - finite.sum())
        raise NumericalInstabilityError(
            f"{op}: nothing was updated, for the gradient of {name} is not finite: {count} of "
            f"{finite.size} elements are NaN or infinite; loss.backward(check_finite=True) names "
            "the op that makes them"
        )


def places_of(gradients: Sequence[Any]) -> tuple[int, ...] | None:
    """Return which of the gradients there are; None for all."""
    places = tuple([place for place, one in enumerate(gradients) if one is not None])
    return None if len(places) == len(gradients) else places


def is_shared(flat: Array, tensor: Tensor[Any, Any, Any]) -> bool:
    """Tell whether a tape, a view or a handle holds on to the values that a parameter shows."""
    return (getrefcount(flat), getrefcount(tensor._array)) != _UNSHARED


def _references_of_an_unshared_parameter() -> tuple[int, int]:
    """Return the reference counts of what nobody else holds, as `is_shared` sees them."""
    probe = SimpleNamespace(flat=np.empty(1))
    probe.views = [probe.flat.reshape(1, 1)]
    tensor: Tensor[Any, Any, Any] = wrap(Tensor, probe.views[0], 0, None)
    found: list[tuple[int, int]] = []

    def note(flat: Array, tensor: Tensor[Any, Any, Any]) -> None:
        found.append((getrefcount(flat), getrefcount(tensor._array)))

    note(probe.flat, tensor)
    return found[0]


_UNSHARED = _references_of_an_unshared_parameter()
