"""The array that stands in for numpy's while a derivative of higher order is computed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Never
from weakref import ref

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import Library, like
from tapetensor.arrays.stand_ins import (
    REARRANGED,
    Level,
    Recorded,
    UnrecordedError,
    captured_among,
    plain,
)
from tapetensor.higher_order import kernels
from tapetensor.higher_order.functions import (
    AT,
    FLAT,
    FUNCTIONS,
    REDUCTIONS,
    UFUNCS,
    UnsupportedError,
    answer,
    with_numbers,
)
from tapetensor.higher_order.kernels import PUT_BACK, WRITERS
from tapetensor.kernels import arithmetic, indexing
from tapetensor.tape.history import Recording, next_id, reached_from
from tapetensor.tape.pullbacks import Kernel

_next_depth = count(1).__next__


class MissingAttributeError(UnrecordedError, AttributeError):
    """An array was asked for a method that it does not have."""


def _refused(what: str) -> Callable[..., Never]:
    def refuse(*_: object, **__: object) -> Never:
        raise UnrecordedError(what)

    return refuse


class RecordingLevel(Level):
    """The recording that the arrays of one derivative share.

    Args:
        outer: that of the derivative which this one is computed in; None without one.
    """

    __slots__ = ("behind", "depth", "leafs", "outer", "recording")

    def __init__(self, outer: Level | None) -> None:
        self.depth = _next_depth()
        self.outer = outer
        self.recording = Recording()
        # The ids of the tensors that came in beside the input: parameters, constants.
        self.leafs: dict[int, Array] = {}
        # By the id of a derivative within this one the leafs that are behind its function.
        self.behind: dict[int, set[int]] = {}

    @override
    def array(self, value: Any, unique_id: int | None = None) -> RecordedArray:
        return RecordedArray(self, value, next_id() if unique_id is None else unique_id)

    @override
    def operand(self, value: Any, unique_id: int) -> Any:
        if value.dtype.kind != "f" or (isinstance(value, RecordedArray) and value.level is self):
            return value
        if self.outer is not None and not isinstance(value, RecordedArray):
            # What is constant here is a leaf there: this derivative depends on it, too.
            value = self.outer.operand(value, unique_id)
        self.leafs[unique_id] = value
        leaf = self.array(value, unique_id)
        leaf.is_operand = True
        return leaf

    def used_by(self, results: list[RecordedArray]) -> dict[int, Array]:
        """Return the leafs that are behind results, or behind a function whose derivative is.

        The others the function has read for what it has dropped.
        """
        reached = reached_from(self.recording, [one.id for one in results])
        for derived, leafs in self.behind.items():
            if derived in reached:
                reached |= leafs
        used = {key: array for key, array in self.leafs.items() if key in reached}
        for one in results:
            if isinstance(one.value, RecordedArray):
                one.value.level.behind[one.value.id] = {*used}
        return used

    @override
    def lift(self, array: Any) -> RecordedArray:
        if isinstance(array, RecordedArray) and array.level is self:
            return array
        return self.array(array)

    @override
    def run(self, kernel: Kernel, operands: tuple[Any, ...], *options: Any) -> RecordedArray:
        ours = [isinstance(x, RecordedArray) and x.level is self for x in operands]
        values = [x.value if own else x for x, own in zip(operands, ours, strict=True)]
        # Constants are numpy's to begin with, whatever library the values are of, and so are
        # arrays that are made of constants, beside what is captured.
        near = captured_among(values)
        if near is None:
            near = next((value for value, own in zip(values, ours, strict=True) if own), None)
        output, pullbacks = kernel(*[like(value, near) for value in values], *options)
        result = self.array(output)
        kept = tuple([p if own else None for p, own in zip(pullbacks, ours, strict=True)])
        parents = tuple([x.id if own else -1 for x, own in zip(operands, ours, strict=True)])
        self.recording.append([result.id, kernel, kept, parents, None, 0])
        return result


class RecordedArray(Recorded):
    """An array that numpy reaches through its protocols, and that records what they ask for.

    It is a handle: written to in place, it takes over the value and the id of the result. A part of
    another array writes that as well. What else may share memory cannot be written to, for the
    other would not change with it.
    """

    __slots__ = ("__weakref__", "_sharers", "id", "is_operand", "level", "source_of", "value")

    level: RecordingLevel  # type: ignore[mutable-override]  # one of another kind is never set

    # Before ndarray's, so that a mix of both comes here.
    __array_priority__ = 1000

    def __init__(self, level: RecordingLevel, value: Any, unique_id: int) -> None:
        self.level = level
        self.value = value
        self.id = unique_id
        self.is_operand = False
        # Those that may share its memory, itself among them, as long as they live.
        self._sharers: list[ref[RecordedArray]] = []
        # What it is a part of, and by which kernel and options.
        self.source_of: tuple[RecordedArray, Kernel, tuple[Any, ...]] | None = None

    @property
    @override
    def shape(self) -> tuple[int, ...]:
        found: tuple[int, ...] = self.value.shape
        return found

    @property
    @override
    def dtype(self) -> np.dtype[Any]:
        found: np.dtype[Any] = self.value.dtype
        return found

    def view(self, kernel: Kernel | None = None, *options: Any) -> RecordedArray:
        """Run a kernel whose output may share the memory of its operand.

        Raises:
            UnrecordedError: if it is called as numpy's method of this name is.
        """
        if kernel is None or isinstance(kernel, type | np.dtype | str):
            raise UnrecordedError("uses array.view, which only numpy's arrays have")
        result = self.level.run(kernel, (self,), *options)
        self.share_with(result)
        # One element is a number to numpy, and not a part.
        if kernel in PUT_BACK and result.ndim:
            result.source_of = self, kernel, options
        return result

    def share_with(self, view: RecordedArray) -> None:
        """Note that a new array may share the memory of this one."""
        self._sharers = self._sharers or [ref(self)]
        self._sharers.append(ref(view))
        view._sharers = self._sharers

    def reshape(self, *shape: Any) -> Any:
        """As numpy's."""
        function: Any = np.reshape
        return function(self, shape[0] if len(shape) == 1 else shape)

    @override
    def copy(self) -> RecordedArray:
        return self.level.run(kernels.copy, (self,))

    @override
    def to(self, library: Library) -> Any:
        return self.level.run(indexing.to, (self,), library)

    @override
    def astype(self, dtype: Any, copy: bool = True) -> Any:
        kind = np.dtype(dtype).kind
        if kind == "f":
            return self.level.run(indexing.astype, (self,), np.dtype(dtype))
        if kind not in "biu":
            raise UnrecordedError(f"converts an array to {np.dtype(dtype)}")
        # Whole numbers and truths have no derivative: a constant.
        return plain(self).astype(dtype)

    def __len__(self) -> int:
        """As numpy's: the size of the first axis."""
        if not self.shape:
            raise UnrecordedError("asks for the length of an array without axes")
        return self.shape[0]

    def __getitem__(self, index: Any) -> RecordedArray:
        """As numpy's."""
        _check_index(index)
        if kernels.has_arrays(index):
            return self.level.run(indexing.getitem, (self,), index)
        return self.view(indexing.getitem, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        """As numpy's, if nothing else shares the memory."""
        _check_index(index)
        if isinstance(value, RecordedArray) and value.source_of is not None:
            source, kernel, options = value.source_of
            if source is self and kernel is indexing.getitem and options == (index,):
                # The end of ``x[index] += y``, which has written it already.
                return
        self.check_writable("item assignment")
        (written,) = with_numbers((value,), self.dtype)
        if written.dtype != self.dtype:
            raise UnrecordedError(f"assigns {written.dtype} to elements of {self.dtype}")
        kernels.check_written_once(self.shape, index)
        level = _deepest((self, written))
        self.take_over(level.run(kernels.setitem, (level.lift(self), written), index))

    @override
    def write(self, function: Callable[..., None], *args: Any) -> None:
        self.check_writable(function.__name__)
        kernel = WRITERS[inspect.unwrap(function)]
        self.take_over(_deepest((self, *args)).run(kernel, (self, *args)))

    # A kernel works on whole arrays, and of a value the derivative would be lost without a word.
    __iter__ = _refused("iterates over an array")
    __array__ = _refused("reads the values of an array (np.asarray, or a function like it)")
    __bool__ = _refused("asks for the truth of an array")
    __float__ = _refused("reads an element as a number")
    __int__ = _refused("reads an element as a number")
    __index__ = _refused("reads an element as a number")

    def __getattr__(self, name: str) -> Never:
        """Say which attribute is missing, in the words of this room."""
        raise MissingAttributeError(
            f"uses array.{name}, which only numpy's arrays have (numpy.{name} may do)"
        )

    @override
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Answer a ufunc by a kernel of ours."""
        written = options.pop("out", None)
        result = _answer_ufunc(ufunc, method, inputs, options)
        if written is None:
            return result
        (target,) = written
        if not isinstance(target, RecordedArray):
            raise UnrecordedError(f"writes the result of numpy.{ufunc.__name__} to a given array")
        target.check_writable(f"numpy.{ufunc.__name__} with out=")
        if (result.shape, result.dtype) != (target.shape, target.dtype):
            raise UnrecordedError(f"writes numpy.{ufunc.__name__} to an array of another kind")
        target.take_over(result)
        return target

    def __array_function__(
        self,
        function: Callable[..., Any],
        _types: Any,
        arguments: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        """Answer a function of numpy by a kernel of ours."""
        if function is np.asarray:
            (constant,) = arguments
            return like(constant, plain(self))
        if function in FLAT:
            return function(*_plain(arguments), **_plain(options))
        if function in REARRANGED:
            return REARRANGED[function](*arguments, **options)
        if function not in FUNCTIONS:
            raise UnrecordedError(f"uses numpy.{function.__name__}, whose derivative is not known")
        try:
            return answer(function, _deepest(arguments), *arguments, **options)
        except UnsupportedError as error:
            raise UnrecordedError(f"uses numpy.{function.__name__} with {error}") from None

    def check_writable(self, what: str) -> None:
        """Raise UnrecordedError if memory that another array may share would be written to."""
        written = [self]
        while written[-1].source_of is not None:
            written.append(written[-1].source_of[0])
        sharing = [one() for one in self._sharers]
        others = [one for one in sharing if one is not None and not any(one is w for w in written)]
        if others or any(one.is_operand for one in written):
            raise UnrecordedError(f"writes ({what}) to memory that another array may share")

    def take_over(self, result: Any) -> None:
        """Take over the value and the id of `result`, and so for what this is a part of."""
        if not isinstance(result, RecordedArray):
            result = self.level.array(result)
        self.level, self.value, self.id = result.level, result.value, result.id
        if self.source_of is not None:
            whole, kernel, options = self.source_of
            level = _deepest((whole, result))
            put_back = PUT_BACK[kernel]
            whole.take_over(level.run(put_back, (level.lift(whole), level.lift(result)), *options))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_plain(one) for one in value)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return plain(value)


def _recorded(value: Any) -> Iterator[RecordedArray]:
    if isinstance(value, RecordedArray):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _recorded(one)


def _deepest(arguments: Any) -> RecordingLevel:
    """Return the innermost of the levels that meet."""
    return max([array.level for array in _recorded(arguments)], key=lambda level: level.depth)


def _check_index(index: Any) -> None:
    if next(_recorded(index), None) is not None:
        raise UnrecordedError("uses an array as an index of itself")


def _answer_ufunc(
    ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    name = f"numpy.{ufunc.__name__}"
    if method == "__call__" and not options:
        if ufunc in FLAT:
            return ufunc(*_plain(inputs))
        if ufunc is np.power and isinstance(inputs[1], int | float):
            return inputs[0].level.run(arithmetic.power_number, inputs[:1], inputs[1])
        kernel = UFUNCS.get(ufunc)
        if kernel is not None:
            arrays = with_numbers(inputs, next(_recorded(inputs)).dtype)
            return _deepest(arrays).run(kernel, arrays)
    elif method == "reduce" and ufunc in REDUCTIONS:
        try:
            taken = {"axis": 0, **options}
            return answer(REDUCTIONS[ufunc], _deepest(inputs), *inputs, **taken)
        except UnsupportedError as error:
            raise UnrecordedError(f"uses {name}.reduce with {error}") from None
    elif method == "reduceat" and ufunc is np.add and set(options) <= {"axis"}:
        x, starts = inputs
        if isinstance(x, RecordedArray):
            axis = options.get("axis", 0)
            move = REARRANGED[np.moveaxis]
            sums = x.level.run(kernels.sum_runs, (move(x, axis, 0),), starts)
            return move(sums, 0, axis)
    elif method == "at" and ufunc in AT:
        x, index, added = inputs
        if isinstance(x, RecordedArray):
            _check_index(index)
            x.check_writable(f"{name}.at")
            level = _deepest((x, added))
            x.take_over(level.run(AT[ufunc], (level.lift(x), added), index))
            return None
    suffix = "" if method == "__call__" else f".{method}"
    given = f" with {', '.join(options)}" if options else ""
    raise UnrecordedError(f"uses {name}{suffix}{given}, whose derivative is not known")
