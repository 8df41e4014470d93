"""The room of copies: `copy.copy` of a tensor that owns a tape, whose type asks nothing of it."""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import FunctionContext
from mypy.types import Instance, Type, get_proper_type

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.codes import ARGUMENT_KIND
from tapetensor.mypy_plugin.names import OWNED_TAPE, TENSOR


def function_result(fullname: str) -> Callable[[FunctionContext], Type] | None:
    """Answer for `copy.copy` and `copy.deepcopy`."""
    return _check_copied if fullname in ("copy.copy", "copy.deepcopy") else None


def _check_copied(context: FunctionContext) -> Type:
    """Report the copy of a tensor that owns a tape, as the run would."""
    copied = get_proper_type(context.default_return_type)
    tape = None
    if isinstance(copied, Instance) and copied.type.fullname == TENSOR:
        tape = get_proper_type(copied.args[1])
    if isinstance(tape, Instance) and tape.type.fullname == OWNED_TAPE:
        flow.fail(
            context.api,
            "copy: a tensor that owns a tape cannot be copied, its tape has exactly one owner; "
            "write x.detach() for the value, or x.share() for a second traced handle",
            context.context,
            ARGUMENT_KIND,
        )
    return context.default_return_type
