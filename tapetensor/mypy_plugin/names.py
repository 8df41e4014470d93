"""The full names by which mypy knows our classes and functions, and what it has read under them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from mypy.lookup import lookup_fully_qualified
from mypy.nodes import MypyFile, SymbolNode, TypeInfo, Var
from mypy.types import Type

TENSOR = "tapetensor.tensor.tensor.Tensor"
TENSOR_BASE = "tapetensor.tensor.base.TensorBase"
NONE_TAPE = "tapetensor.tape.tape.NoneTape"
OWNED_TAPE = "tapetensor.tape.tape.OwnedTape"
MODULE = "tapetensor.nn.module.Module"
SEQUENTIAL = "tapetensor.nn.containers.Sequential"
BUILD = "tapetensor.nn.build.build"
# The functions that make tensors are defined here.
CREATED = "tapetensor.tensor.creation."
# `parameter`, `buffer`, `options` and `repeat` are defined here.
FIELDS = "tapetensor.nn.fields"

# `Mul` and the like are defined in the first, and the plugin takes them for the second.
TYPING = "tapetensor.typing"
COMPUTED = "tapetensor.typing._Computed"

# Arguments of windows that may be 0, which sizes may not.
MAY_BE_0: Final = ("padding", "output_padding")

# The names by which the errors at run time know the operators.
OPERATORS: Final = {
    "add": "add",
    "matmul": "matmul",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "sub": "subtract",
    "neg": "negative",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}

# Packages whose functions return neither tensors nor modules.
ELSEWHERE = ("builtins.", "typing.", "typing_extensions.", "numpy.", "math.", "collections.")
HookT = TypeVar("HookT")


def but_elsewhere(hook: HookT) -> Callable[[str], HookT | None]:
    """Return what answers with a hook for all full names but those of such packages."""
    return lambda fullname: None if fullname.startswith(ELSEWHERE) else hook


# Every method of Tensor is defined in a room of this package.
TENSOR_ROOMS = "tapetensor.tensor."


def op_called(name: str) -> str:
    """Return the name of an op, as errors say it, of a method, operator or function."""
    plain = name.removeprefix("__").removesuffix("__")
    return OPERATORS.get(plain.removeprefix("r"), plain) if plain != name else name


# mypy fills this, by full name, while it runs.
_modules: dict[str, MypyFile] = {}


def set_modules(modules: dict[str, MypyFile]) -> None:
    """Take note of the modules of a run."""
    global _modules  # mypy hands them to its plugins once per run
    _modules = modules


def node_of(fullname: str) -> SymbolNode | None:
    """Return what a full name stands for; None for a local one, and one that is not known yet."""
    found = lookup_fully_qualified(fullname, _modules)
    return None if found is None else found.node


def class_named(fullname: str) -> TypeInfo | None:
    """Return the class with a full name."""
    node = node_of(fullname)
    return node if isinstance(node, TypeInfo) else None


def member_of(info: TypeInfo, name: str) -> SymbolNode | None:
    """Return what a class has under a name, be it inherited."""
    found = info.get(name)
    return None if found is None else found.node


def type_of_field(info: TypeInfo, name: str) -> Type | None:
    """Return the type that a variable of a class is declared with; None if there is none."""
    node = member_of(info, name)
    return node.type if isinstance(node, Var) else None
