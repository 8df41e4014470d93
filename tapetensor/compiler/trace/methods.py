"""The methods of numpy's arrays, for tracers: most by way of numpy's functions."""

from __future__ import annotations

import operator
import sys
import types
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Never

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import Home, Library
from tapetensor.arrays.stand_ins import Captured, CapturedArray
from tapetensor.compiler.trace.codes import name_called
from tapetensor.compiler.trace.functions import METHODS, is_basic
from tapetensor.compiler.trace.node import Kind, Node, Shape, found_in, replaced
from tapetensor.compiler.trace.number import NumberTracer, dummy
from tapetensor.compiler.trace.operations import of_scalars
from tapetensor.compiler.trace.powers import fast_power, is_chosen_by_exponent
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import NoAttributeError, NoPlaceError, trace_error
from tapetensor.compiler.trace.ufuncs import written
from tapetensor.pictures.places import is_users_module

# What gives an array as it is, if that is one of the wanted kind.
CONVERSIONS = ("array", "asanyarray", "asarray", "ascontiguousarray", "asfortranarray")


class ArrayMethods(CapturedArray):
    """What numpy's arrays can do that needs no memory and no nodes."""

    __slots__ = ()

    is_scalar: bool
    program: Program

    @override
    def __init_subclass__(cls) -> None:
        """Refuse that numpy's attributes are set."""

        def refuse(self: ArrayMethods, value: object) -> Never:
            raise self.refusal(
                "an attribute of an array is set; write x[...] = values for elements, and "
                "reshape or astype for another array"
            )

        for name in ("dtype", "flat", "shape", "strides"):
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
        if library is np or isinstance(library, Home):
            return self
        raise trace_error("a tensor is moved to another library; move it outside")

    def __copy__(self, *_: object) -> Any:
        """Return a copy, which lies in memory as this array does."""
        whole: Any = self
        return whole.copy("K")

    __deepcopy__ = __copy__

    @override
    def __reduce__(self) -> Any:
        """Pickle a constant; refuse anything else, which has no values."""
        return self.read().__reduce__()

    def flatten(self, order: Any = "C") -> Any:
        """Return a copy without axes but one."""
        return np.ravel(self, order).copy()

    def fill(self, value: Any) -> None:
        """Write one value everywhere; numpy writes that of a scalar into a copy."""
        # This raises what numpy raises.
        np.zeros((), self.dtype).fill(dummy(value))
        if not self.is_scalar:
            self[...] = value

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **options: Any) -> Any:
        """Return the elements between bounds, of which either may be missing."""
        return _called(METHODS["clip"], self, min, max, out, **options)

    def sort(self, *args: Any, **options: Any) -> None:
        """Sort in place."""
        written(self, np.ndarray.sort, args, options, "sort")

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

    @real.setter
    def real(self, value: Any) -> None:
        self._set_part("real", np.real, value)

    @property
    def imag(self) -> Any:
        """The imaginary part, which is a view of the array."""
        return np.imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        self._set_part("imag", np.imag, value)

    def _set_part(self, name: str, view: Callable[..., Any], value: Any) -> None:
        # This raises what numpy raises.
        zeros = np.zeros(self.shape, self.dtype)[() if self.is_scalar else ...]
        with np.errstate(all="ignore"):
            setattr(zeros, name, dummy(value))
        part = getattr(value, "part", None)
        # This is the second half of ``array.real += ...``: the values are there already.
        if part is None or not part.is_of(self, view):
            values: Any = value if isinstance(value, Captured) else np.asarray(value)
            np.copyto(view(self), values, casting="unsafe")

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
        """The steps in memory from element to element."""
        return self.laid_out().strides

    def may_raise_for(self, value: Any) -> bool:
        """Tell whether a scalar is written that no element may be."""
        is_scalar = isinstance(value, ArrayMethods) and value.is_scalar
        return is_scalar and self.dtype.kind in "iu" and value.dtype.kind == "f"

    def raise_as_numpy_for(self, index: Any, value: Any) -> None:
        """Raise what numpy raises for a write that it refuses, which takes no memory to see."""
        element = np.zeros((), self.dtype)
        anything: Any = element[()]
        if not self.is_scalar:
            anything = np.lib.stride_tricks.as_strided(element, self.shape, (0,) * self.ndim)
            if is_basic(index) and isinstance(value, CapturedArray):
                into = np.shape(anything[index])
                if value.shape == into[len(into) - value.ndim :]:
                    return
        parts: Iterable[Any] = found_in(index, CapturedArray)
        try:
            anything[replaced(index, _as_known)] = replaced(value, dummy)
        except ValueError:
            if all(one.node.kind is Kind.CONSTANT or one.dtype.kind != "b" for one in parts):
                raise
            raise self.refusal(
                "how many elements a mask chooses depends on the values; write one number there, "
                "or np.where(mask, a, b)"
            ) from None

    @override
    def __pow__(self, other: Any) -> Any:
        """Return powers; numpy's operator squares what its function does not."""
        if "f" in self._kinds_of_scalars(other) or self._is_chosen_by(other):
            return self.capture_step(of_scalars(operator.pow), (self, other), {})
        fast = None if self.is_scalar else fast_power(self.dtype, other, in_place=False)
        return super().__pow__(other) if fast is None else fast(self)

    @override
    def __ipow__(self, other: Any) -> Any:
        """Take powers in place, by numpy's operator."""
        fast = fast_power(self.dtype, other, in_place=True)
        return super().__ipow__(other) if fast is None else fast(self, out=self)

    @override
    def __rpow__(self, other: Any) -> Any:
        """Return powers of a number."""
        if "f" in self._kinds_of_scalars(other):
            return self.capture_step(of_scalars(operator.pow), (other, self), {})
        return super().__rpow__(other)

    def _is_chosen_by(self, other: Any) -> bool:
        """Tell whether an exponent that is not known yet chooses the function that takes powers.

        Raises:
            TraceError: if it chooses the dtype, too.
        """
        is_number = isinstance(other, NumberTracer)
        is_array = isinstance(other, ArrayMethods) and other.shape == ()
        is_unknown = (is_number or is_array) and not self.is_scalar and self.dtype.kind in "fc"
        if not is_unknown or not is_chosen_by_exponent():
            return False
        if is_array and np.result_type(self.dtype, other.dtype) != self.dtype:
            raise self.refusal(
                "this version of numpy takes powers of an array by a function that depends on the "
                "exponent, which is not known yet; write np.power(x, np.full_like(x, y))"
            )
        return True

    @override
    def __abs__(self) -> Any:
        """Return the absolute values; that of a complex scalar is numpy's for scalars."""
        if self.is_scalar and self.dtype.kind == "c":
            return self.capture_step(of_scalars(abs), (self,), {})
        return super().__abs__()

    def _kinds_of_scalars(self, other: Any) -> str:
        """Return the kinds of dtypes of two numbers, complex ones alone; nothing of arrays."""
        is_scalar = other.__class__ in (bool, int, float, complex) or isinstance(other, np.generic)
        if isinstance(other, ArrayMethods):
            is_scalar = other.is_scalar
        if not (self.is_scalar and is_scalar):
            return ""
        kinds = self.dtype.kind + getattr(other, "dtype", np.dtype(other.__class__)).kind
        return "c" if "c" in kinds else kinds

    @override
    def __imatmul__(self, other: Any) -> Any:
        """Multiply in place, where numpy does so."""
        if self.ndim < 1 or np.ndim(dummy(other)) < 2:
            raise ValueError(
                "inplace matrix multiplication requires the first operand to have at least one "
                "and the second at least two dimensions."
            )
        return super().__imatmul__(other)

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
        frame, error = sys._getframe(1), sys.exc_info()[1]
        if frame.f_code.co_name == "_wrapit" and isinstance(error, TypeError):
            # What a method has refused, numpy tries again with an array, which refuses it as well.
            raise error
        if self.node.kind is Kind.CONSTANT and not _gives_itself(frame):
            return np.array(self.node.detail, dtype)
        raise trace_error(
            "the values of a tensor are read (by printing it, float(), a numpy function without "
            "dispatch, by indexing an array of numpy's or by writing into one); write x.item() for "
            "float(x), return the tensor and read it outside, pass the array that is indexed as an "
            "argument, or make the one that is written into of an argument, as np.zeros_like(x)",
            NoPlaceError,
        )

    def read(self) -> Any:
        """Return the values of a constant as numpy has them, a scalar perhaps."""
        return self.__array__()[() if self.is_scalar else ...]


def _gives_itself(frame: types.FrameType) -> bool:
    """Tell whether a frame asks for an array that is to be the very same, and may be written to."""
    module: str = frame.f_globals.get("__name__") or ""
    is_asked = is_users_module(module) and name_called(frame.f_code, frame.f_lasti) in CONVERSIONS
    return is_asked or module.startswith("numpy.")


def _as_known(one: Any) -> Any:
    """Return a constant, or what looks like another value."""
    is_known = isinstance(one, ArrayMethods) and one.node.kind is Kind.CONSTANT
    return one.read() if is_known else dummy(one)


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


def _rebinding(name: str) -> Callable[..., Any]:
    """Return the operator of a name, which leaves a scalar as it is and gives another."""
    operator = getattr(ArrayMethods, name)

    def in_place(self: ArrayMethods, other: Any) -> Any:
        return NotImplemented if self.is_scalar else operator(self, other)

    return in_place


def _multiplying(name: str) -> Callable[..., Any]:
    """Return the operator of a name, by which a scalar repeats a list or a text."""
    captured = getattr(CapturedArray, name)

    def of(self: ArrayMethods, other: Any) -> Any:
        if not self.is_scalar:
            return captured(self, other)
        if other.__class__ in (list, tuple, str, bytes):
            # This raises what numpy raises of other numbers than integers.
            return other * (self.read() if self.dtype.kind in "iu" else self.dtype.type(0))
        if self._kinds_of_scalars(other) == "c":
            factors = (self, other) if name == "__mul__" else (other, self)
            return self.capture_step(of_scalars(operator.mul), factors, {})
        return captured(self, other)

    return of


for _name in ("__mul__", "__rmul__"):
    setattr(ArrayMethods, _name, _multiplying(_name))


def _reflected(name: str) -> Callable[..., Any]:
    """Return the operator of a name, which leaves to Python what Python does by itself."""
    operator = getattr(ArrayMethods, name)

    def of(self: ArrayMethods, other: Any) -> Any:
        if other.__class__ is complex and self.is_scalar and self.dtype == np.float64:
            raise self.refusal(
                "a complex number before a float64 is computed by Python, which takes that for "
                "a float of its own; write np.complex128(...) for the complex number"
            )
        return operator(self, other)

    return of


for _name in ("add", "sub", "mul", "truediv", "pow"):
    setattr(ArrayMethods, f"__r{_name}__", _reflected(f"__r{_name}__"))


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
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul",
              "and", "or", "xor", "lshift", "rshift"):  # fmt: skip
    setattr(ArrayMethods, f"__i{_name}__", _rebinding(f"__i{_name}__"))


# What is registered with a class of this flag matches patterns of sequences, as numpy's arrays do
# since numpy 2.5.
_SEQUENCES: Any = ABCMeta("_Sequences", (), {"__abc_tpflags__": np.ndarray.__flags__ & (1 << 5)})
_SEQUENCES.register(ArrayMethods)
