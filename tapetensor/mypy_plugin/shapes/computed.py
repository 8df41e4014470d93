"""Dims that are computed: ``Mul[H, K]`` in types, ``c // h`` in a shape, the length of a list.

What plain typing takes for `Any` in an annotation becomes a dim with a spelling of its own for
equal dims. mypy replaces type variables without asking, so the types of calls and attributes are
spelled anew.

For mypy the result of arithmetic on ints is `int`, and a list has no length. So expressions are
read, names that are assigned once for what they were assigned, and for a local list what the
function does with it: one that is built in plain sight has as many items as were put into it.

Functions may have a name of their own for the size of what they return. ``def halved(x:
Tensor1D[M]) -> Tensor1D[N]`` says that the result has some other size, which plain typing cannot
compute. What is computed there from `M` would not fit `N`, so it stays open. A name of a class may
be one, too, unless it is a size that a layer of the class makes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import cache, reduce
from typing import Final

from mypy import nodes, types
from mypy.checker import TypeChecker
from mypy.expandtype import expand_type_by_instance
from mypy.maptype import map_instance_to_supertype
from mypy.plugin import AnalyzeTypeContext, FunctionContext, MethodContext
from mypy.server.subexpr import get_subexpressions
from mypy.typevars import fill_typevars

from tapetensor.mypy_plugin import reporting
from tapetensor.mypy_plugin.names import COMPUTED, TENSOR, TYPING, class_named, node_of
from tapetensor.mypy_plugin.reading import (
    ANYTHING,
    OPERATIONS,
    has_dims,
    instance_of,
    is_computed,
    is_endless,
    is_int,
    read_dim,
    shape_of,
    write_known,
)
from tapetensor.mypy_plugin.shapes.calls import fitted, type_of
from tapetensor.mypy_plugin.statements import assignments_of, statements
from tapetensor.rules.dims import ANY, INT, Atom, Dim, Dims, Open, Size, computed, differ, total

# Most names of annotations come from here, and none is an alias of dims: the library writes none.
_WITHOUT_ALIASES: Final = (
    "builtins.",
    "typing",
    "collections.",
    "_typeshed.",
    "numpy.",
    "tapetensor.",
)


# The alias that is being expanded, which asks for the hook of the same name again.
_expanding: list[types.Type] = []


@cache
def is_plain(fullname: str) -> bool:
    """Tell whether a name in an annotation is neither ``Mul`` nor an alias of what speaks of it."""
    return fullname.startswith(_WITHOUT_ALIASES) and fullname not in _SPELLED


def annotation(fullname: str) -> Callable[[AnalyzeTypeContext], types.Type] | None:
    """Return the hook for ``Mul`` and its like, and for aliases that speak of them."""
    if fullname in _SPELLED:
        return _SPELLED[fullname]
    node = None if _expanding else node_of(fullname)
    if isinstance(node, nodes.TypeAlias) and COMPUTED in str(node.target):
        return _expanded
    return None


def _spelling(name: str) -> Callable[[AnalyzeTypeContext], types.Type]:
    def spelled(context: AnalyzeTypeContext) -> types.Type:
        found = context.type
        assert isinstance(found, types.UnboundType)
        if len(found.args) != 2:
            context.api.fail(f"{name} takes two dims: {name}[M, N]", context.context)
            return types.AnyType(types.TypeOfAny.from_error)
        info = class_named(f"{COMPUTED}.{name}")
        if info is None:
            return ANYTHING
        dims = [context.api.analyze_type(one) for one in found.args]
        return respelled(types.Instance(info, dims, found.line, found.column))

    return spelled


_SPELLED = {f"{TYPING}.{name}": _spelling(name) for name in OPERATIONS}


def _expanded(context: AnalyzeTypeContext) -> types.Type:
    _expanding.append(context.type)
    try:
        found = context.api.analyze_type(context.type)
    finally:
        _expanding.pop()
    return found if is_endless(found) else respelled(found)


def respell_result(context: FunctionContext | MethodContext) -> types.Type:
    """Return the result of a call with its dims spelled anew."""
    found = context.default_return_type
    if not mentions(found):
        return found
    result = respelled(found)
    tensor = instance_of(result, TENSOR)
    return result if tensor is None else fitted(tensor, reporting.checker_of(context))


def type_in(module: types.Instance, field: nodes.Var) -> types.ProperType | None:
    """Return the type that a field has in a module; None if that is not known."""
    if field.type is None:
        return None
    holder = map_instance_to_supertype(module, field.info)
    return types.get_proper_type(respelled(expand_type_by_instance(field.type, holder)))


def respelled(found: types.Type) -> types.Type:
    """Return a type with every computed dim in the one spelling for its value."""
    return replaced(found, _respelled)


def _respelled(found: types.Instance) -> types.Type:
    dim = read_dim(found)
    return found if dim is None else write_known(dim, integer_of(found))


def integer_of(computed: types.Instance) -> types.Instance:
    """Return the type `int`, which every computed dim has for a base."""
    return types.Instance(
        next(one for one in computed.type.mro if one.fullname == "builtins.int"), []
    )


def mentions(found: types.Type) -> bool:
    """Tell whether a type has a computed dim in it."""
    if isinstance(found, types.TypeAliasType):
        if found.alias is None or found.is_recursive:
            return False
        # An alias of the library has one in its arguments, or none.
        if found.alias.fullname.startswith("tapetensor."):
            return any(mentions(one) for one in found.args)
    proper = types.get_proper_type(found)
    return is_computed(proper) or any(map(mentions, parts(proper)))


def replaced(found: types.Type, replace: Callable[[types.Instance], types.Type]) -> types.Type:
    """Return a type with its computed dims replaced."""

    def changed(one: types.ProperType) -> types.Type | None:
        return replace(one) if isinstance(one, types.Instance) and is_computed(one) else None

    return rebuilt(found, changed) if mentions(found) else found


def rebuilt(
    found: types.Type, changed: Callable[[types.ProperType], types.Type | None]
) -> types.Type:
    """Return a type with other ones in it; what is not changed as a whole may be in its parts."""
    proper = types.get_proper_type(found)
    if is_endless(found):
        return found
    other = changed(proper)
    if other is not None:
        return found if other is proper else other
    inner = [rebuilt(one, changed) for one in parts(proper)]
    if all(one is two for one, two in zip(inner, parts(proper), strict=True)):
        return found
    if isinstance(proper, types.Instance):
        return proper.copy_modified(args=inner)
    if isinstance(proper, types.TupleType):
        return proper.copy_modified(items=inner)
    if isinstance(proper, types.UnionType):
        return types.UnionType(inner, proper.line, proper.column)
    if isinstance(proper, types.TypeType):
        return types.TypeType.make_normalized(inner[0])
    if isinstance(proper, types.CallableType):
        return proper.copy_modified(arg_types=inner[:-1], ret_type=inner[-1])
    return types.Overloaded([one for one in inner if isinstance(one, types.CallableType)])


def opened(
    known: types.Type, new: types.Type, is_open: Callable[[types.Type, types.Type], bool]
) -> types.Type:
    """Return a type with open parts wherever that is said of its part and that of another one."""
    one, two = types.get_proper_type(known), types.get_proper_type(new)
    match one, two:
        case types.Instance(), types.Instance() if has_dims(one) and one.type is two.type:
            pairs = zip(one.args, two.args, strict=True)
            return one.copy_modified(args=[opened(*pair, is_open) for pair in pairs])
        case types.TupleType(), types.TupleType() if len(one.items) == len(two.items):
            pairs = zip(one.items, two.items, strict=True)
            return one.copy_modified(items=[opened(*pair, is_open) for pair in pairs])
    return ANYTHING if is_open(one, two) else known


def are_other_dims(one: types.Type, two: types.Type) -> bool:
    """Tell whether two types are dims, and not the same."""
    lhs, rhs = read_dim(one), read_dim(two)
    return lhs is not None and rhs is not None and differ(lhs, rhs)


def leaves(found: types.Type) -> Iterator[types.ProperType]:
    """Yield what a type is made of and is not made of other types: names, computed dims, ..."""
    proper = types.get_proper_type(found)
    inner = () if is_computed(proper) else parts(proper)
    if not inner:
        yield proper
    for one in () if is_endless(found) else inner:
        yield from leaves(one)


def parts(proper: types.ProperType) -> Sequence[types.Type]:
    """Return the types that a type is made of."""
    if isinstance(proper, types.Instance):
        return proper.args
    if isinstance(proper, types.TupleType | types.UnionType):
        return proper.items
    if isinstance(proper, types.TypeType):
        return [proper.item]
    if isinstance(proper, types.CallableType):
        return [*proper.arg_types, proper.ret_type]
    return proper.items if isinstance(proper, types.Overloaded) else ()


_WRITTEN: Final = {"+": "Add", "-": "Sub", "*": "Mul", "//": "Div"}
# So many names are followed: `n = m`, `m = k`, ...
_MOST_NAMES = 10


def sharpened(shape: Dims, asked: nodes.Expression | None, api: TypeChecker) -> Dims:
    """Return a shape with sizes in the place of ints that are computed from known ones."""
    if INT not in shape or asked is None:
        return shape
    display = value_of(asked, api) or asked
    if not isinstance(display, nodes.TupleExpr) or len(display.items) != len(shape):
        return shape
    if any(isinstance(item, nodes.StarExpr) for item in display.items):
        return shape
    return tuple(
        size_of(item, api) if dim is INT else dim
        for dim, item in zip(shape, display.items, strict=True)
    )


def size_of(expression: nodes.Expression, api: TypeChecker) -> Dim:
    """Return the size that an expression stands for; INT for one that is not known."""
    return _computed(expression, api, _MOST_NAMES)


def _computed(expression: nodes.Expression, api: TypeChecker, names: int) -> Dim:
    dim = read_dim(api.lookup_type_or_none(expression) or type_of(expression, api))
    if dim is not INT:
        return INT if dim is None or dim is ANY else dim
    if isinstance(expression, nodes.OpExpr):
        lhs, rhs = [_computed(one, api, names) for one in (expression.left, expression.right)]
        if isinstance(lhs, Open) or isinstance(rhs, Open):
            return INT
        return _result(expression.op, lhs, rhs) or INT
    value = value_of(expression, api) if names else None
    return INT if value is None else _computed(value, api, names - 1)


def _result(op: str, lhs: Size, rhs: Size) -> Size | None:
    if op == "//" and lhs.literal is not None and rhs.literal:
        return Size.of(lhs.literal // rhs.literal)
    return OPERATIONS[_WRITTEN[op]](lhs, rhs) if op in _WRITTEN else None


def value_of(expression: nodes.Expression, api: TypeChecker) -> nodes.Expression | None:
    """Return what a name is assigned, if it is assigned once."""
    value = assignments_of(api.tree).value(expression)
    return None if value is expression else value


# What looks at the items of a list, and leaves it as it is.
_LOOKING = (
    *[f"builtins.{name}" for name in ("len", "zip", "enumerate", "sum", "reversed", "tuple")],
    *[f"tapetensor.tensor.joining.{name}" for name in ("concat", "stack")],
)
# What has as many items as its first argument.
_AS_LONG = [f"builtins.{name}" for name in ("enumerate", "reversed", "list", "sorted")]


def length_of(found: nodes.Expression, used: nodes.Context, api: TypeChecker) -> Dim:
    """Return how many items an iterable has in an expression behind what builds it, or ANY."""
    known = types.get_proper_type(type_of(found, api))
    if isinstance(known, types.TupleType):
        is_open = any(isinstance(item, types.UnpackType) for item in known.items)
        return ANY if is_open else Size.of(len(known.items))
    shape = shape_of(known)
    if shape:
        return shape[0]
    match found:
        case nodes.ListExpr(items=items):
            is_open = any(isinstance(item, nodes.StarExpr) for item in items)
            return ANY if is_open else Size.of(len(items))
        case nodes.ListComprehension(
            generator=nodes.GeneratorExpr(sequences=[walked], condlists=[[]], is_async=[False])
        ):
            return length_of(walked, used, api)
        case nodes.CallExpr(callee=nodes.RefExpr(fullname="builtins.zip"), args=args):
            kinds = zip(args, found.arg_kinds, strict=True)
            lengths = [length_of(one, used, api) for one, kind in kinds if kind is nodes.ARG_POS]
            return lengths[0] if len({*lengths}) == 1 else ANY
        case nodes.CallExpr(callee=nodes.RefExpr(fullname="builtins.range"), args=[*ends]) if (
            len(ends) < 3
        ):
            sizes = [size_of(one, api) for one in ends]
            return computed(lambda *known: reduce(operator.sub, reversed(known)), *sizes)
        case nodes.CallExpr(callee=nodes.RefExpr(fullname=name), args=[walked, *_]) if (
            name in _AS_LONG and found.arg_kinds[0] is nodes.ARG_POS
        ):
            return length_of(walked, used, api)
        case nodes.NameExpr():
            return _length_of_name(found, used, api)
    return ANY


def _length_of_name(name: nodes.NameExpr, used: nodes.Context, api: TypeChecker) -> Dim:
    """Return the length of a local list; ANY where more is done with it than to build it."""
    unit = reporting.unit(api)
    if name.kind != nodes.LDEF or not isinstance(unit, nodes.FuncItem):
        return ANY
    loops = [one for one in statements(unit.body.body) if isinstance(one, nodes.ForStmt)]
    for block in (unit.body, *[one.body for one in loops]):
        for place, statement in enumerate(block.body):
            match statement:
                case nodes.AssignmentStmt(lvalues=[nodes.NameExpr(node=node)], rvalue=made):
                    if node is not name.node:
                        continue
                case _:
                    continue
            later = block.body[place + 1 :]
            ends = [at for at, one in enumerate(later) if used in get_subexpressions(one)]
            if not ends or isinstance(made, nodes.NameExpr):
                return ANY
            appends = [_appended(one, name, used, api) for one in later[: ends[0]]]
            counts = [count for found, count in appends if found]
            uses = 1 + sum(found for found, _ in appends)
            if _count_uses(unit.body, name) != uses:
                return ANY
            return total([length_of(made, used, api), *counts])
    return ANY


def _appended(
    statement: nodes.Statement, name: nodes.NameExpr, used: nodes.Context, api: TypeChecker
) -> tuple[int, Dim]:
    """Return how many appends a statement has, and how many items they add."""
    if isinstance(statement, nodes.ExpressionStmt):
        return (1, Size.of(1)) if _is_append(statement.expr, name) else (0, ANY)
    if not isinstance(statement, nodes.ForStmt):
        return 0, ANY
    inner = [one.expr for one in statement.body.body if isinstance(one, nodes.ExpressionStmt)]
    appends = sum(_is_append(one, name) for one in inner)
    if not appends:
        return 0, ANY
    leaves = any(
        isinstance(one, nodes.BreakStmt | nodes.ContinueStmt)
        for one in statements(statement.body.body)
    )
    turns = ANY if leaves else length_of(statement.expr, used, api)
    return appends, computed(operator.mul, Size.of(appends), turns)


def _is_append(expression: nodes.Expression, name: nodes.NameExpr) -> bool:
    match expression:
        case nodes.CallExpr(callee=nodes.MemberExpr(name="append", expr=nodes.NameExpr(node=node))):
            return node is name.node
    return False


def _count_uses(body: nodes.Block, name: nodes.NameExpr) -> int:
    """Return how often a function speaks of a list, other than to look at its items."""
    looks: list[nodes.Expression] = [
        one.expr for one in statements(body.body) if isinstance(one, nodes.ForStmt)
    ]
    uses = 0
    deletes = any(isinstance(one, nodes.DelStmt) for one in statements(body.body))
    for one in get_subexpressions(body):
        match one:
            case nodes.NameExpr(node=node) if node is name.node:
                uses += 1
            case nodes.CallExpr(callee=nodes.RefExpr(fullname=called), args=args) if (
                called in _LOOKING
            ):
                looks += args
            case nodes.RevealExpr(expr=base) if base is not None:
                looks.append(base)
            case nodes.GeneratorExpr(sequences=sequences):
                looks += sequences
            case nodes.IndexExpr(base=base, index=index) if not isinstance(index, nodes.SliceExpr):
                looks += [] if deletes else [base]
    return uses - sum(isinstance(one, nodes.NameExpr) and one.node is name.node for one in looks)


def settled_dims(found: Dims, given: Dims, api: TypeChecker) -> Dims:
    """Return the dims of a result, open where they are computed and nobody could say them."""
    computed = [dim for dim in found if isinstance(dim, Size) and dim.atoms and dim not in given]
    if not computed or not _has_own_names(api):
        return found
    return tuple(ANY if dim in computed else dim for dim in found)


def _has_own_names(api: TypeChecker) -> bool:
    function = reporting.function(api)
    signature = None if function is None else types.get_proper_type(function.type)
    if not isinstance(signature, types.CallableType) or function is None:
        return False
    # The names of a class are no names of what a method is given: see below.
    first = 1 if function.info and signature.arg_kinds[:1] == [nodes.ARG_POS] else 0
    given = {name for one in signature.arg_types[first:] for name in _names(one)}
    own = {name for name in _names(signature.ret_type) if name not in given}
    return bool(own) and not own <= {*_made_in(function.info)}


def _made_in(info: nodes.TypeInfo) -> Iterator[Atom]:
    """Yield the names of sizes that the library's layers make in a class."""
    whole = fill_typevars(info) if info else None
    if not isinstance(whole, types.Instance):
        return
    for base in info.mro:
        for symbol in base.names.values():
            if isinstance(symbol.node, nodes.Var):
                yield from _made_by(type_in(whole, symbol.node))


def _made_by(layer: types.Type | None) -> Iterator[Atom]:
    """Yield the names of sizes of a layer of the library but the first: that is what it takes."""
    proper = types.get_proper_type(layer)
    if not isinstance(proper, types.Instance) or not proper.type.fullname.startswith(
        "tapetensor.nn."
    ):
        return
    for number, one in enumerate(proper.args):
        if not isinstance(types.get_proper_type(one), types.TypeVarType):
            yield from _made_by(one)
        elif number:
            yield from _names(one)


def _names(found: types.Type) -> Iterator[Atom]:
    """Yield the names of sizes in a type."""
    for one in leaves(found):
        dim = read_dim(one)
        is_other = isinstance(one, types.TypeVarType) and not is_int(one.upper_bound)
        if isinstance(dim, Size) and not is_other:
            yield from dim.atoms
