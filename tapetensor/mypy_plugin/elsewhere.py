"""What other libraries call the methods of a tensor: the error says what to write here.

mypy asks plugins about attributes that are there. So the class has these, for the plugin alone.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.errorcodes import ATTR_DEFINED
from mypy.nodes import MDEF, SymbolTableNode, Var
from mypy.plugin import AttributeContext, ClassDefContext
from mypy.types import AnyType, Type, TypeOfAny

from tapetensor.arguments.spellings import OF_TENSORS
from tapetensor.mypy_plugin.kinds import ANYTHING
from tapetensor.mypy_plugin.names import TENSOR, TENSOR_ROOMS

# A base of Tensor, and of no other class.
_BASE = f"{TENSOR_ROOMS}pictures.Pictures"


def base_class(fullname: str) -> Callable[[ClassDefContext], None] | None:
    """Answer for the class Tensor."""
    return _add_names if fullname == _BASE else None


def attribute(fullname: str) -> Callable[[AttributeContext], Type] | None:
    """Answer for an attribute that tensors have elsewhere."""
    owner, _, name = fullname.rpartition(".")
    if owner != TENSOR or name not in OF_TENSORS:
        return None

    def spelled(context: AttributeContext) -> Type:
        cure = f"write x.{OF_TENSORS[name]}"
        message = f"'Tensor' object has no attribute '{name}'; {cure}"
        context.api.fail(message, context.context, code=ATTR_DEFINED)
        return AnyType(TypeOfAny.from_error)

    return spelled


def _add_names(context: ClassDefContext) -> None:
    info = context.cls.info
    for name in OF_TENSORS:
        variable = Var(name, ANYTHING)
        variable.info = info
        variable._fullname = f"{info.fullname}.{name}"
        info.names[name] = SymbolTableNode(MDEF, variable, plugin_generated=True)
