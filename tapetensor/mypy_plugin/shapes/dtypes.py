"""Dtypes that an op refuses, where they are known: `Any` and what is abstract fit everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mypy.types import Instance, Type, get_proper_type

from tapetensor.errors import DTypeError
from tapetensor.mypy_plugin.shapes.reading import Operand, read_int

_KINDS: Final = {
    "numpy.floating": "float",
    "numpy.signedinteger": "int",
    "numpy.unsignedinteger": "uint",
}
_ALONE: Final = {"numpy.float64": "float64", "numpy.bool": "bool", "numpy.bool_": "bool"}


def check_same(op: str, operands: Sequence[Operand]) -> None:
    """Raise DTypeError if the dtypes of operands differ."""
    found = [dtype_name(one.dtype) for one in operands]
    if len({one for one in found if one is not None}) > 1:
        raise DTypeError(
            f"{op}: dtypes differ: {' and '.join([one or '?' for one in found])}; "
            "convert one with astype(...), nothing is promoted"
        )


def check_floating(op: str, operand: Operand) -> None:
    """Raise DTypeError if an operand that must be floating is not."""
    found = dtype_name(operand.dtype)
    if found is not None and not found.startswith("float"):
        raise DTypeError(
            f"{op}: not defined for dtype {found}; convert first with x.astype(np.float32)"
        )


def check_number(op: str, operand: Operand, number: Type) -> None:
    """Raise DTypeError if a number beside integers or truth values would make another dtype."""
    dtype, found = dtype_name(operand.dtype), get_proper_type(number)
    kind = found.type.name if isinstance(found, Instance) else ""
    if dtype is None or dtype.startswith("float") or kind not in ("int", "float"):
        return
    cure = "convert first with x.astype(np.float32)"
    exponent = read_int(number)
    if op == "power" and (kind == "float" or (exponent is not None and exponent < 0)):
        raise DTypeError(f"{op}: not defined for dtype {dtype}; {cure}")
    if kind == "float" or op == "divide" or dtype == "bool":
        result = "int64" if (kind, dtype) == ("int", "bool") and op != "divide" else "float64"
        raise DTypeError(
            f"{op}: not defined for dtype {dtype}, the result would be {result}; {cure}"
        )


def check_integers(
    op: str, name: str, operand: Operand, cure: str = "", kind: str = "integers"
) -> None:
    """Raise DTypeError if an operand that must hold integers does not."""
    found = dtype_name(operand.dtype)
    if found is not None and found.startswith(("float", "bool")):
        raise DTypeError(f"{op}: {name} must be {kind}, got {found}{cure}")


def is_bool(operand: Operand) -> bool:
    """Tell whether an operand is known to hold truth values."""
    return dtype_name(operand.dtype) == "bool"


def dtype_name(dtype: Type) -> str | None:
    """Return what numpy calls a dtype; None for one that is not known, or abstract."""
    found = get_proper_type(dtype)
    if not isinstance(found, Instance):
        return None
    kind = _KINDS.get(found.type.fullname)
    bits = get_proper_type(found.args[0]) if found.args else None
    if kind is None or not isinstance(bits, Instance):
        return _ALONE.get(found.type.fullname)
    size = bits.type.name.removeprefix("_").removesuffix("Bit")
    return f"{kind}{size}" if size.isdigit() else None
