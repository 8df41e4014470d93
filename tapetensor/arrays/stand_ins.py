"""Stand-ins: arrays that are none, and all that the library may ask of them.

A stand-in answers numpy's protocols, so that a kernel runs on it as on any array. Those of one kind
have values, and *record* what is done with them: a derivative of higher order follows. Those of the
other have none: the compiler *captures* what is done with them, and makes a program of it. Who must
know tells them apart by these classes.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import partial
from inspect import unwrap
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tapetensor.arrays.array import Array
from tapetensor.errors import TapeTensorError, cut_traceback

# Whether this thread runs a function on arrays that capture what is done with them.
IS_TRACING: ContextVar[bool] = ContextVar("IS_TRACING", default=False)


class UnrecordedError(TypeError):
    """An array was used in a way whose derivative is not known; the op is named further up."""


# None of these classes has the metaclass of `abc`, with which `isinstance` takes several times as
# long. mypy refuses to instantiate what lacks a method all the same, and a test does.
class StandIn(NDArrayOperatorsMixin):
    """An array that is none."""

    __slots__ = ()

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def T(self) -> Any:  # noqa: N802  # numpy's name
        """The axes in reverse order."""
        transpose: Any = np.transpose
        return transpose(self)

    @abstractmethod
    def copy(self) -> Any:
        """Return the same elements; a write into either is not seen in the other."""

    @abstractmethod
    def astype(self, dtype: Any, *, copy: bool = True) -> Any:
        """Return the elements converted."""

    @abstractmethod
    def to(self, library: Any) -> Any:
        """Return the elements as an array of another library, or refuse."""

    @abstractmethod
    def write(self, function: Callable[..., None], *args: Any) -> None:
        """Let a function write into this array, which is its first argument, before `args`."""


class Level:
    """One derivative of higher order on its way: what its recorded arrays share.

    Levels nest, one per order beyond the first; where arrays of two meet, the inner one records and
    the outer one sees, inside it, a value. The inner one has the greater depth.
    """

    __slots__ = ()

    depth: int

    @abstractmethod
    def array(self, value: Any, unique_id: int | None = None) -> Any:
        """Return `value` as an array of this level that nothing produced."""

    @abstractmethod
    def operand(self, value: Any, unique_id: int) -> Any:
        """Return the value of a tensor as an array of this level, if it is floating.

        That of one that took no part so far becomes a leaf, which gradients of the outer order flow
        to.
        """

    @abstractmethod
    def lift(self, array: Any) -> Any:
        """Return an array of this level, a constant in it unless it is of this level already."""

    @abstractmethod
    def run(self, kernel: Callable[..., Any], operands: tuple[Any, ...], *options: Any) -> Any:
        """Run a kernel on the values of `operands`, and record it."""


class Recorded(StandIn):
    """An array with a value, which its level records; that of an outer level, perhaps."""

    __slots__ = ()

    level: Level
    value: Any


def plain(array: Any) -> Any:
    """Return the value of a recorded array, however many levels deep; another array itself."""
    while isinstance(array, Recorded):
        array = array.value
    return array


class Captured:
    """An array or a number that a program will compute."""

    __slots__ = ()

    @property
    @abstractmethod
    def array(self) -> CapturedArray:
        """Itself, or the array without axes whose element a number is."""


class CapturedArray(StandIn, Captured):
    """An array that a program will compute; what is captured becomes a part of that."""

    __slots__ = ()

    @property
    @abstractmethod
    def prefers_steps(self) -> bool:
        """Whether what can be captured as one step is to be, though its parts are as fast."""

    @property
    @abstractmethod
    def may_run_natively(self) -> bool:
        """Whether a step that is captured whole may be run by machine code of its own."""

    @abstractmethod
    def capture_step(
        self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        """Capture a call of `function` as one step, whatever it does inside."""

    @abstractmethod
    def capture_kernel(
        self, kernel: Callable[..., Any], args: tuple[Any, ...], shape: tuple[int, ...]
    ) -> Any:
        """Capture a kernel as one step, and all of its pullbacks as another; return both.

        The output has the given shape, and the dtype of the first argument. There is one pullback
        per floating array among the arguments, which come before the options.
        """

    @abstractmethod
    def capture_elementwise(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Capture a call of ``function(*arrays, out)``, which works element by element."""

    @abstractmethod
    def capture_by_rows(self, ufunc: np.ufunc, axes: tuple[int, ...]) -> Any:
        """Capture a reduction over the last axes, which stay with size 1, as kernels take it.

        Sums are products with ones, and extremes are what is at the places that a search finds.
        """

    @abstractmethod
    def read_only(self) -> Any:
        """Return a view that cannot be written to, as `tapetensor.Tensor.numpy` gives."""

    @abstractmethod
    def laid_out(self) -> Array:
        """Return an array that lies in memory as numpy's own would in the place of this one."""

    @abstractmethod
    def capture_number(self, function: Callable[..., float], args: tuple[Any, ...]) -> Any:
        """Capture a call of a function that returns a Python float."""

    @abstractmethod
    def capture_check(self, function: Callable[..., None], args: tuple[Any, ...]) -> None:
        """Capture a call of `function`, which may raise, to be repeated at every replay."""

    @abstractmethod
    def capture_checkpoint(self, run: Callable[[], Any]) -> Any:
        """Capture a call that returns a tensor; what else it computes is not to be kept."""

    @abstractmethod
    def capture_update(self, update: Any, gradients: Sequence[Any]) -> list[Any]:
        """Capture the step of an optimizer's group; return its parameters after it."""

    @abstractmethod
    def refusal(self, what: str) -> Exception:
        """Return the error for what cannot be captured."""


class CapturedGenerator:
    """A random generator whose draws a program will make."""

    @abstractmethod
    def undropping(self) -> Any:
        """Return what stands for a copy with which nothing is dropped."""


def is_captured(x: object) -> bool:
    """Tell whether `x` is an array or a number that a program will compute."""
    return isinstance(x, Captured)


def captured_among(args: Iterable[object]) -> CapturedArray | None:
    """Return an array to capture a call with these arguments by, if one of them is captured."""
    # A generator would take most of the time of it.
    for one in args:
        if isinstance(one, Captured):
            return one.array
    return None


def run_check(function: Callable[..., None], first: Any, *args: Any) -> None:
    """Run a function that raises where values are wrong; a program runs it at each replay."""
    try:
        value = plain(first)
        if type(value) is not np.ndarray and isinstance(value, Captured):
            value.array.capture_check(function, (value, *map(plain, args)))
        else:
            function(first, *args)
    except TapeTensorError as error:
        cut_traceback(error)
        raise


def shadow(x: Any) -> Any:
    """Return an array of the shape and the dtype of another, which takes no memory."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape)


def _turned(turn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives the axes another order, by the one that numpy has for all."""

    def turned(a: Any, *args: Any, **options: Any) -> Any:
        # Each axis has its own number as its size.
        return np.transpose(a, turn(np.empty(range(a.ndim)), *args, **options).shape)

    return turned


def _expand_dims(a: Any, axis: Any) -> Any:
    return np.reshape(a, np.expand_dims(shadow(a), axis).shape)


def _squeeze(a: Any, axis: Any = None) -> Any:
    shape = np.squeeze(shadow(a), axis).shape
    # Where there is nothing to leave out, numpy returns the very same array.
    return a if shape == a.shape else np.reshape(a, shape)


def _parts(split: Callable[..., Any], ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    # Places may be captured, too, which would lead here again.
    places = unwrap(split)(np.arange(ary.shape[axis]), indices_or_sections)
    before = (slice(None),) * (axis % ary.ndim)
    ends = [(one[0], one[-1] + 1) if one.size else (0, 0) for one in places]
    return [ary[(*before, slice(int(start), int(end)))] for start, end in ends]


REARRANGED: dict[Callable[..., Any], Callable[..., Any]] = {
    np.array_split: partial(_parts, np.array_split),
    np.expand_dims: _expand_dims,
    np.moveaxis: _turned(np.moveaxis),
    np.split: partial(_parts, np.split),
    np.squeeze: _squeeze,
    np.swapaxes: _turned(np.swapaxes),
}
