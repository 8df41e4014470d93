"""The room of modules: `model(x)`, what `build` can build, `Sequential` from end to end.

==================  =========================================================================
``calling``         `model(x)` typed as `forward`; a `forward` for each tape
``classes``         which classes are modules, how they are made, and the fields they declare
``constructing``    layers that nothing can be, where they are made
``building``        fields that nothing can be, and what `build` cannot make of annotations
``sequential``      layers one after another, side by side, and beside their input
``declaring``       what is made, given or declared in vain
``training``        gradients that reach no parameter
==================  =========================================================================

The last two are rooms of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mypy.plugin import (
    ClassDefContext,
    FunctionContext,
    FunctionSigContext,
    MethodContext,
    MethodSigContext,
)
from mypy.types import FunctionLike, Type

from tapetensor.mypy_plugin import names, reporting
from tapetensor.mypy_plugin.modules import (
    building,
    calling,
    classes,
    constructing,
    declaring,
    sequential,
)


def base_class(fullname: str) -> Callable[[ClassDefContext], None] | None:
    """Answer for a class whose base is `Module`, or is derived from it."""
    return _module_defined if classes.derives(fullname, names.MODULE) else None


def function_signature(fullname: str) -> Callable[[FunctionSigContext], FunctionLike] | None:
    """Answer for the constructors of layers."""
    return constructing.check_constructed if classes.derives(fullname, names.MODULE) else None


def function_result(fullname: str) -> Callable[[FunctionContext], Type] | None:
    """Answer for `build`, for the constructor of `Sequential`."""
    if fullname == names.BUILD:
        return building.check_build
    return sequential.check_layers if fullname == names.SEQUENTIAL else None


def method_signature(fullname: str) -> Callable[[MethodSigContext], FunctionLike] | None:
    """Answer for the call of a module."""
    owner, _, method = fullname.rpartition(".")
    is_call = method in ("forward", "__call__") and classes.derives(owner, names.MODULE)
    return calling.follow_tape if is_call else None


def method_result(fullname: str) -> Callable[[MethodContext], Type] | None:
    """Answer for the call of a `Sequential` or a class derived from it."""
    owner, _, method = fullname.rpartition(".")
    if method not in ("forward", "__call__"):
        return None
    if owner in sequential.BRANCHES:
        return sequential.apply_branches
    return sequential.apply_layers if classes.derives(owner, names.SEQUENTIAL) else None


def _module_defined(context: Any) -> None:
    classes.keep_kinds(context)
    calling.add_call(context)
    if not reporting.is_heard(context.api):
        return
    calling.check_forward(context)
    building.check_fields(context)
    declaring.check_declared(context)
