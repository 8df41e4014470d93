"""The methods of numpy's arrays, for tracers: most by way of numpy's functions."""

from __future__ import annotations

import operator
import sys
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Never

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import Home, Library
from tapetensor.arrays.stand_ins import CapturedArray
from tapetensor.compiler.trace.functions import METHODS
from tapetensor.compiler.trace.node import Kind, Node, Shape
from tapetensor.compiler.trace.number import NumberTracer, dummy
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import NoAttributeError, is_users_call, trace_error

# What numpy's operator takes some powers by, which its function takes by logarithms.
_POWERS: dict[float, Any] = {2: np.square, 1: np.positive, -1: np.reciprocal, 0.5: np.sqrt}
# Before numpy 2.3 the operator takes these of numpy's scalars, too, and then keeps the dtype.
_CHOOSES_BY_SCALARS = (np.ones(1, np.float32) ** np.float64(2)).dtype == np.float32


class ArrayMethods(CapturedArray):
    """The methods of numpy's arrays that need no memory and no nodes."""

    __slots__ = ()

    is_scalar: bool
    program: Program

    @override
    def __init_subclass__(cls) -> None:
        """Refuse that numpy's attributes are set."""

        def refuse(self: ArrayMethods, value: object) -> Never:
            raise self.refusal(
                "an attribute of an array is set; write reshape or astype for another array"
            )

        for name in ("dtype", "flat", "imag", "real", "shape", "strides"):
            setattr(cls, name, property(getattr(cls, name).fget, refuse))

    @property
    @override
    def prefers_steps(self) -> bool:
        return self.program.prefers_steps

    @property
    @override
    def may_run_natively(self) -> bool:
        return self.program.backend != "numpy"

    @property
    @abstractmethod
    def node(self) -> Node:
        """The value that it stands for at the moment."""

    def __getattr__(self, name: str) -> Any:
        """Return a method that numpy has a function for as well; refuse what is not here."""
        if not hasattr(self.dtype.type if self.is_scalar else np.ndarray, name):
            # This raises what numpy raises.
            return getattr(dummy(self), name)
        if name in ("itemsize", "nbytes"):
            return getattr(self.laid_out(), name)
        if name in METHODS:
            return partial(_called, METHODS[name], self)
        self.program.check_thread()
        raise trace_error(
            f"{name} of an array cannot be traced; write it with functions of numpy, or return "
            "the array and do it outside",
            NoAttributeError,
        )

    @override
    def to(self, library: Library) -> Any:
        """Return this array, for a plan runs on numpy's; refuse to move it elsewhere."""
        if getattr(library, "__name__", "") == "numpy" or isinstance(library, Home):
            return self
        raise trace_error("a tensor is moved to another library; move it outside")

    def __copy__(self, *_: object) -> Any:
        """Return a copy, which lies in memory as this array does."""
        return self.copy()

    __deepcopy__ = __copy__

    @override
    def __reduce__(self) -> Any:
        """Pickle a constant; refuse anything else, which has no values."""
        return self.read().__reduce__()

    def flatten(self, order: Any = "C") -> Any:
        """Return a copy without axes but one."""
        return np.ravel(self, order).copy()

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
        """Return the elements between bounds, of which either may be missing."""
        return _called(METHODS["clip"], self, min, max, out, **options)

    def item(self, *place: Any) -> Any:
        """Return the only element, or the one at a place, as a number of the program."""
        whole: Any = self
        if place:
            is_flat = len(place) == 1 and not isinstance(place[0], tuple)
            index = place if is_flat or len(place) > 1 else place[0]
            return (np.reshape(whole, -1) if is_flat else whole)[index].item()
        if self.node.kind is Kind.CONSTANT:
            return self.read().item()
        # This raises what numpy raises of more elements.
        return NumberTracer(whole) if self.size == 1 else dummy(self).item()

    @property
    def real(self) -> Any:
        """The real part, which is a view of the array."""
        return np.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary part, which is a view of the array."""
        return np.imag(self)

    @property
    def flat(self) -> Any:
        """Refuse: its iterator writes, too."""
        return self.__getattr__("flat")

    def __bytes__(self) -> bytes:
        """Refuse: its bytes are values."""
        found: bytes = self.__getattr__("tobytes")
        return found

    @property
    def strides(self) -> Shape:
        """The steps in memory from element to element, for the library."""
        if is_users_call():
            raise trace_error(
                "how an array lies in memory is read, which is another thing in a plan; write it "
                "without, or read it outside"
            )
        return self.laid_out().strides

    @override
    def __pow__(self, other: Any) -> Any:
        """Return powers, of the dtype that numpy's operator gives them."""
        is_number = other.__class__ in (bool, int, float) and other in _POWERS
        if is_number and (self.dtype.kind in "fc" or (other == 2 and other.__class__ is int)):
            return _POWERS[other](self)
        if _CHOOSES_BY_SCALARS and not self.is_scalar and self.dtype.kind in "fc":
            is_number = isinstance(other, np.floating | ArrayMethods) and other.shape == ()
            if is_number and np.result_type(self.dtype, other.dtype) != self.dtype:
                raise self.refusal(
                    "this version of numpy takes powers of an array by a function that depends on "
                    "the exponent; write np.power(x, y), or x ** float(y)"
                )
        return super().__pow__(other)

    def __iter__(self) -> Iterator[Any]:
        """Return the parts along the first axis, each when it is asked for."""
        if self.shape == ():
            raise TypeError("iteration over a 0-d array")
        return map(self.__getitem__, range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        """Tell whether some element equals a value, which is known of texts."""
        if self.is_scalar:
            raise TypeError(f"argument of type '{self.dtype.type.__name__}' is not iterable")
        return bool(np.any(self == value))

    def __len__(self) -> int:
        """Return the size of the first axis."""
        return self.shape[0] if self.shape else len(dummy(self))

    def __round__(self, digits: int | None = None) -> Any:
        """Return a scalar with so many digits; refuse to make a number of Python's of it."""
        if not self.is_scalar:
            round(dummy(self))
        return round(self.read()) if digits is None else np.round(self, digits)

    @override
    def __hash__(self) -> int:
        """Refuse: arrays have none, and that of a scalar depends on its value."""
        if not self.is_scalar:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return hash(self.read())

    def __bool__(self) -> bool:
        """Tell whether a constant is true; refuse to ask anything else, which has no values."""
        if self.node.kind is Kind.CONSTANT:
            return bool(self.read())
        raise self.refusal(
            "a condition depends on the values of a tensor; "
            "write tt.where(mask, a, b) to choose by value, or return the mask and decide outside"
        )

    def __array__(self, dtype: Any = None, **_: object) -> Array:
        """Return the values of a constant; refuse those of anything else."""
        error = sys.exc_info()[1]
        if sys._getframe(1).f_code.co_name == "_wrapit" and isinstance(error, TypeError):
            # What a method has refused, numpy tries again with an array, which refuses it as well.
            raise error
        if self.node.kind is Kind.CONSTANT:
            return np.array(self.node.detail, dtype)
        raise trace_error(
            "the values of a tensor are read (by printing it, float(), a numpy function without "
            "dispatch, by indexing an array of numpy's or by writing into one); write x.item() for "
            "float(x), return the tensor and read it outside, pass the array that is indexed as an "
            "argument, or make what is written into by np.where, np.stack or np.concatenate"
        )

    def read(self) -> Any:
        """Return the values of a constant as numpy has them, a scalar perhaps."""
        return self.__array__()[() if self.is_scalar else ...]


def known_place(one: Any) -> Any:
    """Return an integer of an index as Python's, where it is a constant."""
    is_one = isinstance(one, ArrayMethods) and one.node.kind is Kind.CONSTANT
    return int(one) if is_one and one.shape == () and one.dtype.kind in "iu" else one


def _reading(read: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that reads the value of a constant, or shows it."""

    def of(self: ArrayMethods, *args: Any) -> Any:
        if read is operator.index:
            # This raises what numpy raises of all but integers without axes.
            operator.index(dummy(self))
        return read(self.read(), *args)

    return of


_READS: dict[str, Callable[..., Any]] = {
    "float": float, "int": int, "index": operator.index, "complex": complex, "repr": repr,
    "str": str, "format": format,
}  # fmt: skip
for _name, _read in _READS.items():
    setattr(ArrayMethods, f"__{_name}__", _reading(_read))


def _called(method: Callable[..., Any], self: ArrayMethods, *args: Any, **options: Any) -> Any:
    """Call a method; that of a scalar gives no array without axes, but the element in it."""
    made = method(self, *args, **options)
    return made.as_scalar() if self.is_scalar and not (made.shape or made.is_scalar) else made


def _multiplying(name: str) -> Callable[..., Any]:
    """Return the operator of a name, by which an integer repeats a list or a text."""
    captured = getattr(CapturedArray, name)

    def of(self: ArrayMethods, other: Any) -> Any:
        if self.is_scalar and other.__class__ in (list, tuple, str, bytes):
            # This raises what numpy raises of other numbers than integers.
            return other * (self.read() if self.dtype.kind in "iu" else self.dtype.type(0))
        return captured(self, other)

    return of


for _name in ("__mul__", "__rmul__"):
    setattr(ArrayMethods, _name, _multiplying(_name))


def _comparing(name: str, compare: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return the operator of a name, which knows that no number equals a text, or nothing."""
    captured = getattr(CapturedArray, name)

    def of(self: ArrayMethods, other: Any) -> Any:
        is_text = isinstance(other, str | bytes) or getattr(other, "dtype", self.dtype).kind in "SU"
        if (other is None or is_text) and self.dtype.kind in "biufc":
            return compare(dummy(self), dummy(other))
        return captured(self, other)

    return of


for _name in ("eq", "ne"):
    setattr(ArrayMethods, f"__{_name}__", _comparing(f"__{_name}__", getattr(operator, _name)))
# What is registered with a class of this flag matches patterns of sequences, as numpy's arrays do
# since numpy 2.5.
_SEQUENCES: Any = ABCMeta("_Sequences", (), {"__abc_tpflags__": np.ndarray.__flags__ & (1 << 5)})
_SEQUENCES.register(ArrayMethods)
