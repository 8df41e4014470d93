"""A `forward` for each tape: two typed overloads, one for plain inputs and one for traced ones.

What typing alone does not see: that the body for the tape returns a value that has lost it, and
that a generic `forward` around such a one is right for either tape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mypy.nodes import (
    AssignmentStmt,
    Block,
    CallExpr,
    ComparisonExpr,
    ConditionalExpr,
    Expression,
    FuncDef,
    IfStmt,
    MemberExpr,
    NameExpr,
    OverloadedFuncDef,
    RefExpr,
    ReturnStmt,
    Statement,
    TupleExpr,
    UnaryExpr,
)
from mypy.plugin import FunctionContext, MethodContext, MethodSigContext
from mypy.types import (
    CallableType,
    FunctionLike,
    Instance,
    TupleType,
    Type,
    TypeVarType,
    get_proper_type,
)

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.codes import MODULE_GRADIENT
from tapetensor.mypy_plugin.kinds import class_of
from tapetensor.mypy_plugin.names import (
    ASKS_FOR_TAPE,
    IS_TRAINING,
    MODULE,
    NONE_TAPE,
    OWNED_TAPE,
    TENSOR,
)
from tapetensor.mypy_plugin.shapes.calls import type_of
from tapetensor.mypy_plugin.symbols import member_of

_FORWARD = "forward"


def follow_tape(context: MethodSigContext) -> FunctionLike:
    """Return the overload for plain inputs as that for any, where the caller's own tape is open.

    There is one for the other tape, and each returns the tape that it takes.
    """
    item = context.default_signature
    info = class_of(context.type)
    node = None if info is None else member_of(info, _FORWARD)
    if not isinstance(node, OverloadedFuncDef) or not context.args or not context.args[0]:
        return item
    if _kept_tape(item) != NONE_TAPE or not _is_for_each_tape(node):
        return item
    tape = _tape(type_of(context.args[0][0], context.api))  # type: ignore[arg-type]  # the checker
    if not isinstance(tape, TypeVarType):
        return item
    types = [_with_tape(one, tape) for one in item.arg_types]
    return item.copy_modified(arg_types=types, ret_type=_with_tape(item.ret_type, tape))


def check_returned(context: FunctionContext | MethodContext) -> Type:
    """Report a value without a tape that a `forward` returns in its body for the owned tape."""
    made, where = context.default_return_type, context.context
    function = flow.function(context.api)
    if (
        isinstance(function, FuncDef)
        and function.name == _FORWARD
        and _is_named(_tape(_first(made)), NONE_TAPE)
        and function.info
        and function.info.has_base(MODULE)
    ):
        node = member_of(function.info, _FORWARD)
        if isinstance(node, OverloadedFuncDef) and _is_for_each_tape(node):
            inputs = {one.variable.name for one in function.arguments[1:]}
            if any(one is where for one in _returned(function.body.body, inputs, owned=None)):
                flow.report(
                    context.api,
                    f"{function.info.name}.forward: the overload for OwnedTape promises a tape, "
                    "and what its body returns here has none: no gradient flows back from it; "
                    "return what the ops on the traced input made, without detach()",
                    where,
                    MODULE_GRADIENT,
                )
    return made


def _is_for_each_tape(node: OverloadedFuncDef) -> bool:
    """Tell whether there is one overload for each tape, which returns the tape that it takes."""
    declared = get_proper_type(node.type)
    items = declared.items if isinstance(declared, FunctionLike) else []
    return sorted(map(_kept_tape, items)) == sorted([NONE_TAPE, OWNED_TAPE])


def _kept_tape(item: CallableType) -> str:
    """Return the name of the tape that the first input has and the result, too; or nothing."""
    inputs = [one for one in map(_tape, item.arg_types) if one is not None]
    result = _tape(item.ret_type)
    if not inputs or not isinstance(inputs[0], Instance) or not isinstance(result, Instance):
        return ""
    return result.type.fullname if result.type is inputs[0].type else ""


def _tape(found: Type | None) -> Type | None:
    """Return the tape of the type of a tensor."""
    proper = get_proper_type(found)
    if isinstance(proper, Instance) and proper.type.fullname == TENSOR:
        return get_proper_type(proper.args[1])
    return None


def _first(found: Type) -> Type:
    """Return the type of the first of several values, or of the only one."""
    proper = get_proper_type(found)
    return proper.items[0] if isinstance(proper, TupleType) and proper.items else proper


def _with_tape(found: Type, tape: Type) -> Type:
    proper = get_proper_type(found)
    if not isinstance(proper, Instance) or not _is_named(_tape(proper), NONE_TAPE):
        return found
    shape, _, dtype = proper.args
    return proper.copy_modified(args=[shape, tape, dtype])


def _is_named(found: Type | None, name: str) -> bool:
    return isinstance(found, Instance) and found.type.fullname == name


def _returned(
    body: Sequence[Statement], inputs: set[str], *, owned: bool | None
) -> Iterator[Expression]:
    """Yield what statements return where the input owns a tape.

    Args:
        body: the statements.
        inputs: the names of the inputs.
        owned: whether the input owns one there; None if that is not known.
    """
    values: dict[str, Expression] = {}
    for statement in body:
        match statement:
            # Of a pair (value and tape, from `split_tape`) the value comes first.
            case AssignmentStmt(
                lvalues=[NameExpr(name=name) | TupleExpr(items=[NameExpr(name=name), *_])],
                rvalue=value,
            ):
                named = value.name if isinstance(value, NameExpr) else ""
                values[name] = values.get(named, value)
            case ReturnStmt(expr=Expression() as value):
                if isinstance(value, NameExpr):
                    value = values.get(value.name, value)
                if isinstance(value, ConditionalExpr):
                    asked = _asked(value.cond, inputs)
                    if asked is not None:
                        yield value.if_expr if asked else value.else_expr
                elif owned:
                    yield value
            case IfStmt(expr=[question], body=[then], else_body=otherwise):
                asked = _asked(question, inputs)
                inside = owned if asked is None else asked
                yield from _returned(then.body, inputs, owned=inside)
                after = owned if asked is None else not asked
                if otherwise is not None:
                    yield from _returned(otherwise.body, inputs, owned=after)
                if asked is not None and _leaves(then):
                    owned = after
            case _:
                pass


def _leaves(block: Block) -> bool:
    return bool(block.body) and isinstance(block.body[-1], ReturnStmt)


def _asked(question: Expression, inputs: set[str]) -> bool | None:
    """Tell whether a condition says that an input owns a tape; None if it asks something else."""
    match question:
        case UnaryExpr(op="not", expr=inner):
            found = _asked(inner, inputs)
            return None if found is None else not found
        case MemberExpr(name="owns_tape", expr=NameExpr(name=name)) if name in inputs:
            return True
        case CallExpr(callee=RefExpr(fullname=called), args=[*_, NameExpr(name=name)]) if (
            called in (ASKS_FOR_TAPE, IS_TRAINING) and name in inputs
        ):
            # That a module does not train says nothing: it may infer from a traced input.
            return True if called == ASKS_FOR_TAPE else None
        case ComparisonExpr(
            operators=[("is" | "is not" | "==" | "!=") as operator],
            operands=[MemberExpr(name="tape_type", expr=NameExpr(name=name)), RefExpr() as tape],
        ) if name in inputs and tape.fullname in (NONE_TAPE, OWNED_TAPE):
            return (tape.fullname == OWNED_TAPE) == (operator in ("is", "=="))
    return None
