"""The truth of many elements, and many elements as one number: ``if x > 0.0``, ``float(x)``.

No type keeps a tensor out of a condition, and mypy asks no plugin about one. So the conditions of a
file are read, and what mypy asks about all the same is looked up there: the results of calls and
operators, attributes, and the parameters of the function in which it asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from mypy import nodes
from mypy.plugin import AttributeContext, FunctionContext, MethodContext
from mypy.server.subexpr import get_subexpressions
from mypy.types import Instance, NoneType, TupleType, Type, get_proper_type

from tapetensor.errors import refusal
from tapetensor.mypy_plugin import reporting
from tapetensor.mypy_plugin.names import ELSEWHERE, TENSOR, but_elsewhere, type_of_field
from tapetensor.mypy_plugin.reading import (
    all_known,
    instance_of,
    is_endless,
    members,
    read_tensor,
    shape_of,
)
from tapetensor.mypy_plugin.reporting import SHAPE_MISMATCH, checker_of
from tapetensor.mypy_plugin.statements import assignments_of, function_of, once_a_file, statements
from tapetensor.rules.dims import Dims
from tapetensor.rules.indexing import check_single, check_truth, has_several

_Context: TypeAlias = FunctionContext | MethodContext | AttributeContext
_NUMBERS: Final = tuple(f"builtins.{name}" for name in ("float", "int", "complex", "round", "bool"))
_COMPARING: Final = tuple(f"builtins.{name}" for name in ("max", "min", "sorted"))
_PARTED: Final = ("builtins.list", "builtins.tuple")
_CURES: Final = {
    "max": "tt.maximum(x, y) takes the larger of each",
    "min": "tt.minimum(x, y) takes the smaller of each",
    "sorted": "give it a key",
}
_CONTAINERS: Final = tuple(
    f"{owner}.__contains__"
    for owner in ("builtins.list", "builtins.tuple", "typing.Sequence", "collections.deque")
)


def function_result(fullname: str) -> Callable[[FunctionContext], Type] | None:
    """Answer for the result of a function, and for functions that want one number or one truth."""
    if fullname in _NUMBERS or fullname.startswith("math."):
        return take_one
    if fullname in _COMPARING:
        return compare_items
    return None if fullname.startswith(ELSEWHERE) else ask


def method_result(fullname: str) -> Callable[[MethodContext], Type] | None:
    """Answer for the result of a method, and for methods that ask whether two are equal."""
    owner, _, name = fullname.rpartition(".")
    is_known = owner in _PARTED or not fullname.startswith(ELSEWHERE)
    if name in ("__eq__", "__ne__") and owner != TENSOR and is_known:
        return compare_parts
    if fullname in _CONTAINERS:
        return look_for
    return None if fullname.startswith(ELSEWHERE) else ask


def take_one(context: FunctionContext) -> Type:
    """Report many elements where one number, or one truth, is wanted."""
    for found in context.arg_types[0] if context.arg_types else []:
        if _name(context.context) == "bool":
            _report_truth(context, context.context, "bool", found)
            continue
        for shape in _shapes_of_many(found):
            _report(context, context.context, check_single, _name(context.context), shape)
    return context.default_return_type


def compare_items(context: FunctionContext) -> Type:
    """Report many elements that `max`, `min` or `sorted` compare; a key is what is compared."""
    called, made = context.context, context.default_return_type
    if not isinstance(called, nodes.CallExpr) or "key" in called.arg_names:
        return made
    op, given = _name(called), [one for each in context.arg_types for one in each]
    compared = [*_items(given[0])] if len(given) == 1 else given
    _report_parts(context, op, compared, _CURES.get(op, ""))
    return made


def compare_parts(context: MethodContext) -> Type:
    """Report ``==`` of data classes, tuples and lists that hold many elements."""
    sides = [context.type, *(one for each in context.arg_types for one in each)]
    parts = [[*_compared(side, checker_of(context).tree)] for side in sides]
    if all(parts):
        cure = "compare the parts one by one, with (x == y).all()"
        _report_parts(context, "==", parts[0], cure)
    return ask(context)


def look_for(context: MethodContext) -> Type:
    """Report ``x in items`` of many elements."""
    cure = "any(one is x for one in items) asks for the object"
    given = [one for each in context.arg_types for one in each]
    _report_parts(context, "in", given, cure)
    return context.default_return_type


def ask(context: _Context) -> Type:
    """Report the truth of a result or an attribute, and of parameters of the function around it."""
    if isinstance(context, AttributeContext):
        found = context.default_attr_type
    else:
        found = context.default_return_type
    api = checker_of(context)
    if reporting.is_heard(api):
        conditions = _conditions_of(api.tree)
        for condition in conditions.of_value(context.context):
            _report_truth(context, condition.node, condition.op, found)
        for condition in conditions.of_parameters(reporting.unit(api)):
            _report_truth(context, condition.node, condition.op, condition.declared)
    return found


attribute = but_elsewhere(ask)


class _Condition(NamedTuple):
    """A place where the truth of something is asked.

    Attributes:
        node: what is asked.
        op: what asks: "if", "not", ...
        declared: the type of a parameter, if it is one.
    """

    node: nodes.Expression
    op: str
    declared: Type | None = None


class _Conditions:
    """The conditions of a file, by what is asked or assigned to the name that is asked."""

    def __init__(self, tree: nodes.MypyFile) -> None:
        known = assignments_of(tree)
        self._values: dict[nodes.Context, list[_Condition]] = {}
        self._parameters: list[_Condition] = []
        functions = filter(None, map(function_of, statements(tree.defs)))
        parameters = {one.variable for function in functions for one in function.arguments}
        for node, op in _asked(tree):
            self._values.setdefault(known.value(node), []).append(_Condition(node, op))
            match node:
                case nodes.NameExpr(node=nodes.Var(type=declared) as variable):
                    if variable in parameters and not known.is_stored(variable):
                        self._parameters.append(_Condition(node, op, declared))

    def of_value(self, value: nodes.Context) -> list[_Condition]:
        """Return where the truth of a value is asked."""
        return self._values.get(value, [])

    def of_parameters(self, unit: nodes.Node) -> list[_Condition]:
        """Return where the truth of a parameter of a function, or of one in it, is asked."""
        last = unit.end_line or unit.line
        return [one for one in self._parameters if unit.line <= one.node.line <= last]


_conditions_of = once_a_file(_Conditions)


def _asked(tree: nodes.MypyFile) -> Iterator[tuple[nodes.Expression, str]]:
    """Yield what the truth of is asked in a file, and by what."""
    for place in (*statements(tree.defs), *get_subexpressions(tree)):
        match place:
            case nodes.IfStmt(expr=tests):
                for test in tests:
                    yield from _within(test, "if")
            case nodes.WhileStmt(expr=test):
                yield from _within(test, "while")
            case nodes.AssertStmt(expr=test):
                yield from _within(test, "assert")
            case nodes.MatchStmt(guards=guards):
                for guard in filter(None, guards):
                    yield from _within(guard, "if")
            case nodes.ConditionalExpr(cond=test):
                yield from _within(test, "if")
            case nodes.GeneratorExpr(condlists=lists):
                for test in (one for each in lists for one in each):
                    yield from _within(test, "if")
            case nodes.CallExpr(
                callee=nodes.NameExpr(fullname="builtins.any" | "builtins.all", name=op),
                args=[nodes.GeneratorExpr(left_expr=test)],
            ):
                yield from _within(test, op)
            case nodes.OpExpr(op="and" | "or" as op, left=left):
                yield from _within(left, op)
            case nodes.UnaryExpr(op="not", expr=inner):
                yield from _within(inner, "not")
            case nodes.ComparisonExpr(operands=[_, _, _, *_]) as expression:
                # ``0 < x < 1`` asks whether the first of the two holds.
                yield expression, "a chain of comparisons"


def _within(test: nodes.Expression, op: str) -> Iterator[tuple[nodes.Expression, str]]:
    """Yield what a condition asks the truth of; the left side of ``and`` is asked by that."""
    match test:
        case nodes.OpExpr(op="and" | "or", right=right):
            yield from _within(right, op)
        case nodes.UnaryExpr(op="not") | nodes.ComparisonExpr(operands=[_, _, _, *_]):
            pass
        case _:
            yield test, op


def _shapes_of_many(found: Type) -> Iterator[Dims]:
    """Yield the shape of a tensor of many elements, if nothing else but None may be there."""
    shapes = all_known(shape_of(one) for one in members(found) if not isinstance(one, NoneType))
    if shapes and all(map(has_several, shapes)):
        yield shapes[0]


def _items(found: Type) -> Iterator[Type]:
    """Yield what an iterable holds."""
    proper = get_proper_type(found)
    if isinstance(proper, TupleType):
        yield from proper.items
    elif isinstance(proper, Instance) and read_tensor(proper) is None and proper.args:
        yield proper.args[-1]


def _parts(found: Type) -> Iterator[Type]:
    """Yield a value, or what the tuple or list that it is holds."""
    if is_endless(found) or not _is_parted(found):
        yield found
    else:
        for item in _items(found):
            yield from _parts(item)


def _compared(found: Type, tree: nodes.MypyFile) -> Iterator[Type]:
    """Yield what ``==`` compares of a value that is compared by its parts."""
    proper = get_proper_type(found)
    if _is_parted(found):
        yield from _parts(found)
    elif isinstance(proper, Instance) and proper.type.module_name == tree.fullname:
        # Of a class of another file it is not known whether it says ``eq=False``.
        fields = proper.type.metadata.get("dataclass", {}).get("attributes", ())
        method = proper.type.get_method("__eq__")
        is_own = method is not None and method.info.fullname != "builtins.object"
        options = [one for one in proper.type.defn.decorators if isinstance(one, nodes.CallExpr)]
        if not is_own and not any("eq" in one.arg_names for one in options):
            for one in fields:
                declared = type_of_field(proper.type, one["name"])
                if declared is not None:
                    yield from _parts(declared)


def _is_parted(found: Type) -> bool:
    is_tuple = isinstance(get_proper_type(found), TupleType)
    return is_tuple or instance_of(found, *_PARTED) is not None


def _name(called: nodes.Context) -> str:
    callee = called.callee if isinstance(called, nodes.CallExpr) else None
    return callee.name if isinstance(callee, nodes.NameExpr | nodes.MemberExpr) else "a number"


def _report_parts(context: _Context, op: str, found: list[Type], cure: str) -> None:
    for one in found:
        for shape in [shape for part in _parts(one) for shape in _shapes_of_many(part)][:1]:
            _report(context, context.context, check_truth, op, shape, cure)


def _report_truth(context: _Context, where: nodes.Context, op: str, found: Type | None) -> None:
    may_be_none = any(isinstance(one, NoneType) for one in members(found))
    cure = "`is not None` asks whether there is one" if may_be_none else ""
    for shape in _shapes_of_many(found) if found is not None else ():
        _report(context, where, check_truth, op, shape, cure)


def _report(
    context: _Context, where: nodes.Context, check: Callable[..., None], *of: object
) -> None:
    reporting.report(context, str(refusal(partial(check, *of))), SHAPE_MISMATCH, where)
