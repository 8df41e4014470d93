"""Names of methods and functions in other libraries: the error says what to write here.

mypy asks plugins about what is there. So the class and the package have these, for the plugin
alone. It asks about functions where they are called: one that is only handed on is not found.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.errorcodes import ATTR_DEFINED
from mypy.nodes import ARG_STAR, ARG_STAR2, GDEF, MDEF, SymbolTableNode, Var
from mypy.plugin import AttributeContext, ClassDefContext, FunctionContext
from mypy.types import CallableType, Instance, Type

from tapetensor.arguments.spellings import OF_PACKAGES, OF_TENSORS, missing_from
from tapetensor.mypy_plugin import names
from tapetensor.mypy_plugin.names import TENSOR, TENSOR_ROOMS
from tapetensor.mypy_plugin.reading import ANYTHING

_MAIN = TENSOR_ROOMS.partition(".")[0]
# A base of Tensor, and of no other class.
_BASE = f"{TENSOR_ROOMS}habits.Habits"
# What no call stands behind elsewhere.
_PROPERTIES = ("T", "mT", "data", "grad", "grad_fn", "requires_grad")
_NOT_CALLED = (
    *("float32", "float64", "int64", "long", "jit", "autograd", "functional", "utils"),
    "lr_scheduler",
)
# What makes no tensor.
_OF_OTHERS = ("no_grad", "inference_mode", "enable_grad", "manual_seed", "save", "load")


def base_class(fullname: str) -> Callable[[ClassDefContext], None] | None:
    """Answer for the class Tensor."""
    return _add_names if fullname == _BASE else None


def attribute(fullname: str) -> Callable[[AttributeContext], Type] | None:
    """Answer for an attribute that tensors have elsewhere."""
    owner, _, name = fullname.rpartition(".")
    if owner != TENSOR or name not in OF_TENSORS:
        return None

    def spelled(context: AttributeContext) -> Type:
        message = f"'Tensor' object has no attribute '{name}'; write {OF_TENSORS[name]}"
        context.api.fail(message, context.context, code=ATTR_DEFINED)
        of_function = context.api.named_generic_type("builtins.function", [])
        return _some_tensor() if name in _PROPERTIES else _giving(_some_tensor(), of_function)

    return spelled


def function_result(fullname: str) -> Callable[[FunctionContext], Type] | None:
    """Answer for a call of a function that is there elsewhere."""
    package, _, name = fullname.rpartition(".")
    if name not in OF_PACKAGES.get(package, {}):
        return None

    def spelled(context: FunctionContext) -> Type:
        message = str(missing_from(package, name))
        context.api.fail(message, context.context, code=ATTR_DEFINED)
        return ANYTHING if package != _MAIN or name in _OF_OTHERS else _some_tensor()

    return spelled


def _add_names(context: ClassDefContext) -> None:
    _add_functions(context)
    info = context.cls.info
    for name in OF_TENSORS:
        variable = Var(name, ANYTHING)
        variable.info = info
        variable._fullname = f"{info.fullname}.{name}"
        info.names[name] = SymbolTableNode(MDEF, variable, plugin_generated=True)


def _add_functions(context: ClassDefContext) -> None:
    function = _giving(ANYTHING, context.api.named_type("builtins.function"))
    for package, spellings in OF_PACKAGES.items():
        # mypy has read the packages by now, and not yet looked at what is in them; but where it
        # takes one from its cache, with these names.
        read = context.api.modules.get(package)
        if read is None:
            continue
        for name in spellings:
            if name not in _NOT_CALLED:
                variable = Var(name, function)
                variable._fullname = f"{package}.{name}"
                read.names[name] = SymbolTableNode(GDEF, variable, plugin_generated=True)


def _giving(result: Type, of_function: Instance) -> CallableType:
    kinds = [ARG_STAR, ARG_STAR2]
    return CallableType([ANYTHING, ANYTHING], kinds, [None, None], result, of_function)


def _some_tensor() -> Type:
    """Return a tensor of which nothing is known: mypy complains of functions that return `Any`."""
    tensor = names.class_named(TENSOR)
    return ANYTHING if tensor is None else Instance(tensor, [ANYTHING] * len(tensor.type_vars))
