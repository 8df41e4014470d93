"""Stand-ins for objects that are not on the closed list: they may be passed on, but not used.

Other threads may find a stand-in meanwhile, such as in a global of a module. For them it acts as
the object itself.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any, Never

from typing_extensions import override

from tapetensor.compiler.trace.refusals import trace_error

# What reads or computes with an object by the syntax of Python, but for ``is``.
_USES = (
    "call", "bool", "len", "iter", "next", "contains", "getitem", "setitem", "delitem", "enter",
    "exit", "eq", "ne", "lt", "le", "gt", "ge", "hash", "str", "repr", "format", "int", "float",
    "index", "complex", "neg", "pos", "abs", "invert", "add", "radd", "sub", "rsub", "mul",
    "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "pow", "rpow",
    "matmul", "rmatmul", "and", "rand", "or", "ror", "xor", "rxor", "lshift", "rlshift", "rshift",
    "rrshift", "setattr", "delattr",
)  # fmt: skip
_PARTS = ("_cure", "_thread", "_value", "_where")


class Placeholder:
    """Stands for a value that no replay can repeat.

    Args:
        value: the object.
        where: its name in the user's program.
        cure: what to do about it.
    """

    __slots__ = _PARTS

    def __init__(self, value: Any, where: str, cure: str) -> None:
        for name, held in zip(_PARTS, (cure, get_ident(), value, where), strict=True):
            object.__setattr__(self, name, held)

    @override
    def __getattribute__(self, name: str) -> Any:
        """Refuse to read an attribute; the class is known, as `isinstance` asks for it."""
        value = _of(self, "_value")
        if get_ident() != _of(self, "_thread"):
            return getattr(value, name)
        if name == "__class__":
            return type(value)
        if name.startswith("__"):
            # numpy and Python themselves ask any object for these.
            raise AttributeError(name)
        return refuse_use(self, f".{name}")


_of: Any = object.__getattribute__


def refuse_use(placeholder: Placeholder, part: str = "") -> Never:
    """Refuse to use an object, or a part of it, whose use no replay can repeat."""
    where, cure = _of(placeholder, "_where"), _of(placeholder, "_cure")
    raise trace_error(f"{where}{part} is used inside, which a replay would not repeat; {cure}")


def value_of(value: Any) -> Any:
    """Return the object of a placeholder, and any other value as it is."""
    return _of(value, "_value") if type(value) is Placeholder else value


def _use(name: str) -> Callable[..., Any]:
    def used(self: Placeholder, *args: Any, **options: Any) -> Any:
        if get_ident() == _of(self, "_thread"):
            return refuse_use(self)
        value = _of(self, "_value")
        return getattr(type(value), name)(value, *args, **options)

    return used


for _name in _USES:
    setattr(Placeholder, f"__{_name}__", _use(f"__{_name}__"))
