"""Numbers of a program: `item()` and norms while a function is captured."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Never

import numpy as np
from typing_extensions import override

from tapetensor.arrays.stand_ins import Captured, CapturedArray
from tapetensor.compiler.trace.refusals import NoAttributeError, trace_error

if TYPE_CHECKING:
    from tapetensor.compiler.trace.tracer import ArrayTracer

_INTEGER, _FLOATING = np.dtype(np.int64), np.dtype(np.float64)
_TRUTH = np.dtype(np.bool_)
COMPARISONS: dict[np.ufunc, Callable[..., Any]] = {
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
}
# Python's integers do not overflow, nor become floats beside one to be compared, and some operators
# of its numbers raise errors.
_IN_PYTHON: dict[np.ufunc, Callable[..., Any]] = COMPARISONS | {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.power: operator.pow,
    np.negative: operator.neg,
    np.absolute: operator.abs,
}
_RAISING = {np.divide, np.power}
_READ = (
    "the value of a number is read that is not known yet (by printing it, int(), float() or a "
    "function of the math module); return the number and read it outside, leave out float() of a "
    "float, or compute with np.exp and its like in place of math.exp"
)


def _operator(ufunc: np.ufunc, *, is_reflected: bool = False) -> Callable[..., Any]:
    """Return the method of an operator, which captures a ufunc where that has Python's answer."""
    in_python = _IN_PYTHON.get(ufunc)

    def captured(*operands: Any) -> Any:
        if any(isinstance(one, complex) for one in operands):
            raise trace_error(
                "a complex number and a number that is not known yet cannot be computed; return "
                "the number and compute it outside"
            )
        # numpy's scalars are numbers of Python's, too, but compute by their own rules.
        is_numpys = any(isinstance(one, CapturedArray | np.generic) for one in operands)
        if is_numpys or not all(isinstance(one, NumberTracer | int | float) for one in operands):
            return NotImplemented
        ordered = operands[::-1] if is_reflected else operands
        is_floating = ufunc is np.divide or any(isinstance(one, float) for one in operands)
        is_compared = ufunc in COMPARISONS and not all(isinstance(one, float) for one in operands)
        if in_python is not None and (ufunc in _RAISING or is_compared or not is_floating):
            kind = _TRUTH if is_compared else _FLOATING if is_floating else _INTEGER
            return _computed(in_python, kind, ordered)
        arrays = [one.array if isinstance(one, NumberTracer) else one for one in ordered]
        return NumberTracer(ufunc(*arrays))

    return captured


def _computed(function: Callable[..., Any], dtype: np.dtype[Any], operands: Any) -> NumberTracer:
    """Capture what Python computes of numbers, some of which are not known yet."""
    first = next(one.array for one in operands if isinstance(one, NumberTracer))
    made = first.capture_step(_step(function, dtype), operands, {}, np.zeros((), dtype))
    return NumberTracer(made)


@cache
def _step(function: Callable[..., Any], dtype: np.dtype[Any]) -> Callable[..., Any]:
    """Return an operator whose result is of a dtype, and which raises for what that cannot hold."""

    def step(*numbers: Any) -> Any:
        made = function(*numbers)
        return dtype.type(operator.index(made) if dtype == _INTEGER else made)

    step.__name__, step.__module__ = function.__name__, function.__module__
    return step


_power_of = _operator(np.power, is_reflected=True)


class NumberTracer(Captured):
    """Stands for a Python number that the program computes: sums and comparisons are steps.

    As a Python number does, it takes the dtype of the array beside it. Its own array becomes
    float64, int64 or bool.
    """

    __slots__ = ("array",)

    array: ArrayTracer

    def __init__(self, array: ArrayTracer) -> None:
        kind = array.dtype.kind
        wide = _FLOATING if kind == "f" else _INTEGER if kind in "iu" else array.dtype
        if kind not in "biuf" or not np.can_cast(array.dtype, wide):
            raise array.refusal(
                f"no number of Python's is traced that is made of {array.dtype}; return the array, "
                "and make it outside"
            )
        self.array = array.reshape(()).astype(wide)

    @property  # type: ignore[misc]  # a class is an attribute to mypy
    @override
    def __class__(self) -> type[Any]:
        """The class that it stands for, for programs that ask ``isinstance(x, float)``."""
        return type(self.array.dtype.type().item())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Capture a ufunc."""
        return self.array.__array_ufunc__(ufunc, method, *inputs, **options)

    def __array_function__(self, *args: Any) -> Any:
        """Capture one of numpy's functions that are no ufuncs."""
        return self.array.__array_function__(*args)

    __add__, __radd__ = _operator(np.add), _operator(np.add, is_reflected=True)
    __sub__, __rsub__ = _operator(np.subtract), _operator(np.subtract, is_reflected=True)
    __mul__, __rmul__ = _operator(np.multiply), _operator(np.multiply, is_reflected=True)
    __truediv__, __rtruediv__ = _operator(np.divide), _operator(np.divide, is_reflected=True)
    __pow__ = _operator(np.power)
    __neg__ = _operator(np.negative)
    __abs__ = _operator(np.absolute)
    __lt__ = _operator(np.less)
    __le__ = _operator(np.less_equal)
    __gt__ = _operator(np.greater)
    __ge__ = _operator(np.greater_equal)
    __eq__ = _operator(np.equal)
    __ne__ = _operator(np.not_equal)

    def __rpow__(self, base: Any) -> Any:
        # A negative base gives complex numbers, too, and two integers give integers and floats.
        if isinstance(base, int | float) and base >= 0 and float in (type(base), self.__class__):
            return _power_of(self, base)
        return self._refuse_operator()

    def __pos__(self) -> NumberTracer:
        # That of a bool is an int.
        number: NumberTracer = self + 0 if self.array.dtype == np.bool_ else self
        return number

    def __bool__(self) -> Never:
        raise self.array.refusal(
            "a condition depends on a number that is not known yet; write np.where(mask, a, b), "
            "np.maximum or np.minimum to choose by value, or return the number and decide outside"
        )

    def _refuse_to_be_read(self, *_: object, **__: object) -> Never:
        raise trace_error(_READ)

    __float__ = __int__ = __index__ = __str__ = __format__ = _refuse_to_be_read
    __array__ = __complex__ = __trunc__ = __floor__ = __ceil__ = __repr__ = __hash__ = (
        _refuse_to_be_read
    )

    def __getattr__(self, name: str) -> Never:
        # numpy asks every object for attributes of names like these.
        if name.startswith("__") or not hasattr(self.__class__, name):
            raise AttributeError(name)
        raise trace_error(_READ, NoAttributeError)

    def _refuse_operator(self, *_: object) -> Never:
        raise self.array.refusal(
            "round(), //, %, divmod(), operators of bits, and ** of integers or a negative base to "
            "a number that is not known yet cannot be traced; return it and compute it outside"
        )

    __round__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse_operator
    __divmod__ = __rdivmod__ = __invert__ = _refuse_operator
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse_operator
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse_operator


def dummy(value: Any) -> Any:
    """Return the array or scalar that numpy would have, with zeros for its elements."""
    if isinstance(value, NumberTracer):
        return value.__class__()
    if not isinstance(value, CapturedArray):
        return value
    array: Any = value
    is_scalar = issubclass(array.__class__, np.generic)
    # Of a date, its class makes none without a unit.
    return np.zeros((), array.dtype)[()] if is_scalar else array.laid_out()
