"""Stand-ins for objects that are not on the closed list: they may be passed on, but not used.

Other threads may find a stand-in meanwhile, such as in a global of a module. For them it acts as
the object itself.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection
from functools import partial
from threading import get_ident
from typing import Any, Never

import numpy as np
from typing_extensions import override

from tapetensor.compiler.trace.closed_list import Trusted, cure_for, is_refused, trusted_module
from tapetensor.compiler.trace.conversions import converting
from tapetensor.compiler.trace.refusals import trace_error

# What reads or computes with an object by the syntax of Python, but for ``is``.
_USES = [
    "call",
    "bool",
    "len",
    "iter",
    "next",
    "contains",
    "getitem",
    "setitem",
    "delitem",
    "enter",
    "exit",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "hash",
    "str",
    "repr",
    "format",
    "int",
    "float",
    "index",
    "complex",
    "neg",
    "pos",
    "abs",
    "invert",
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "floordiv",
    "rfloordiv",
    "mod",
    "rmod",
    "pow",
    "rpow",
    "matmul",
    "rmatmul",
    "and",
    "rand",
    "or",
    "ror",
    "xor",
    "rxor",
    "lshift",
    "rlshift",
    "rshift",
    "rrshift",
    "setattr",
    "delattr",
]
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


class ModuleView(types.ModuleType):
    """Stands for a module of the closed list, of which some names are refused.

    Args:
        module: the module.
        row: its row in the list.
        trusts: the names of modules that the user trusts besides.
    """

    def __init__(self, module: types.ModuleType, row: Trusted, trusts: Collection[str]) -> None:
        super().__init__(module.__name__)
        own = types.ModuleType.__getattribute__(self, "__dict__")
        own.update(_module=module, _row=row, _trusts=trusts, _thread=get_ident())

    @override
    def __getattribute__(self, name: str) -> Any:
        """Return what the module has by a name, or what stands for it."""
        own = types.ModuleType.__getattribute__(self, "__dict__")
        if name == "__class__":
            return types.ModuleType
        found = getattr(own["_module"], name)
        if own["_thread"] != get_ident() or name.startswith("__"):
            return found
        where = f"{own['_module'].__name__}.{name}"
        if is_refused(own["_row"], name):
            return Placeholder(found, where, cure_for(name, own["_module"].__name__))
        if isinstance(found, types.ModuleType):
            return view_of(found, where, own["_trusts"])
        return converting(seeded(found))

    @override
    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse to change a module, of which there is one for all."""
        own = types.ModuleType.__getattribute__(self, "__dict__")
        if own["_thread"] == get_ident():
            raise trace_error(
                f"{own['_module'].__name__}.{name} is set, which a replay would not repeat; "
                "set it outside"
            )
        setattr(own["_module"], name, value)


def view_of(module: types.ModuleType, where: str, trusts: Collection[str] = ()) -> Any:
    """Return the stand-in for a module that is not the user's."""
    row = trusted_module(module.__name__, trusts)
    if row is None:
        root = module.__name__.partition(".")[0]
        return Placeholder(module, where, cure_for(module.__name__, root))
    return ModuleView(module, row, trusts)


# What makes a generator, or the beginning of one, from a seed.
_SEEDED = {
    id(getattr(np.random, name)): getattr(np.random, name)
    for name in ("default_rng", "SeedSequence", "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
}


def seeded(value: Any) -> Any:
    """Return the stand-in for a function that makes a generator: it refuses to without a seed."""
    return partial(_with_seed, value) if id(value) in _SEEDED else value


def _with_seed(make: Callable[..., Any], seed: Any = None, *others: Any) -> Any:
    if seed is None:
        raise trace_error(
            "a random generator without a seed is made, which would be another one at every call; "
            "make it outside, and pass it as an argument"
        )
    return make(value_of(seed), *others)
