"""Tensors that are made, of a shape, of lists and of arrays that are written down.

numpy's types do not know sizes. So the expression is read, and that of an array that is assigned
once.
"""

from __future__ import annotations

from typing import Final

from mypy import nodes, types
from mypy.checker import TypeChecker
from mypy.plugin import FunctionContext, MethodContext
from mypy.subtypes import is_subtype
from mypy.typeops import tuple_fallback

from tapetensor.arguments import as_size
from tapetensor.errors import ShapeError
from tapetensor.mypy_plugin.names import TENSOR, node_of
from tapetensor.mypy_plugin.reading import (
    ANYTHING,
    all_known,
    instance_of,
    is_any,
    known,
    members,
    read_dim,
    read_shape,
    remembered,
)
from tapetensor.mypy_plugin.reporting import checker_of, wanted_by
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, Context, Hook, type_of
from tapetensor.mypy_plugin.shapes.computed import mentions, sharpened, value_of
from tapetensor.mypy_plugin.shapes.signatures import settled
from tapetensor.mypy_plugin.statements import assignments_of
from tapetensor.rules.dims import INT, Dims, Open, Size, are_other_numbers, written

_MAKERS: Final = ("zeros", "ones", "empty", "full")
_OF_LISTS: Final = ("array", "asarray")
_OF_NUMBERS: Final = {"builtins.int": "numpy.int64", "builtins.float": "numpy.float64"}
# The methods of numpy's generators, and the place of the size among their arguments.
_GENERATOR: Final = "numpy.random._generator.Generator"
_DRAWN: Final = {"random": 0, "standard_normal": 0, "integers": 2, "normal": 2, "uniform": 2}


def dtype_of(values: nodes.Expression, api: TypeChecker) -> types.Type | None:
    """Return the dtype of ``np.array([0, 1])``, which numpy's types leave open; None if it is."""
    match value_of(values, api) or values:
        case nodes.CallExpr(
            callee=nodes.RefExpr(fullname=name), args=[nodes.ListExpr() as listed], arg_names=[None]
        ):
            if name.rpartition(".")[2] in _OF_LISTS and name.startswith("numpy."):
                alias = node_of(_OF_NUMBERS.get(_item_of(type_of(listed, api)), ""))
                if isinstance(alias, nodes.TypeInfo):
                    return types.Instance(alias, [])
                return alias.target if isinstance(alias, nodes.TypeAlias) else None
    return None


def _item_of(listed: types.Type) -> str:
    """Return the name of the class of what is in nested lists."""
    found = types.get_proper_type(listed)
    if isinstance(found, types.TupleType):
        found = tuple_fallback(found)
    if not isinstance(found, types.Instance):
        return ""
    name = found.type.fullname
    return _item_of(found.args[0]) if name in ("builtins.list", "builtins.tuple") else name


def _shape_of(values: nodes.Expression, api: TypeChecker) -> Dims | None:
    """Return the shape of an array or of nested lists; None where it is not written down."""
    match values:
        case nodes.ListExpr() | nodes.TupleExpr():
            return _shape_of_display(values)
        case nodes.CallExpr(callee=nodes.MemberExpr(name="astype", expr=array)):
            return _shape_of(array, api)
        case nodes.CallExpr(callee=nodes.MemberExpr(name=name, expr=owner)) if name in _DRAWN:
            is_numpys = instance_of(type_of(owner, api), _GENERATOR) is not None
            size = _argument(values, "size", _DRAWN[name]) if is_numpys else None
            return None if size is None else _asked(size, api)
        case nodes.CallExpr(callee=nodes.RefExpr(fullname=name)) if name.startswith("numpy."):
            made, shape = name.rpartition(".")[2], _argument(values, "shape", 0)
            if made in _OF_LISTS and "ndmin" not in values.arg_names:
                listed = _argument(values, "object", 0)
                return _shape_of_display(listed) if isinstance(listed, nodes.ListExpr) else None
            return _asked(shape, api) if made in _MAKERS and shape is not None else None
        case nodes.NameExpr():
            value = value_of(values, api)
            # A list in a variable may grow.
            is_kept = isinstance(value, nodes.CallExpr) and not _is_reshaped(values, api)
            return _shape_of(value, api) if is_kept and value is not None else None
    return None


def _argument(call: nodes.CallExpr, name: str, place: int) -> nodes.Expression | None:
    """Return what a call gives by a name, or by its place."""
    named = dict(zip(call.arg_names, call.args, strict=True)).get(name)
    is_placed = call.arg_kinds[: place + 1] == [nodes.ARG_POS] * (place + 1)
    return call.args[place] if named is None and is_placed else named


def _shape_of_display(values: nodes.Expression) -> Dims | None:
    if isinstance(values, nodes.UnaryExpr):
        values = values.expr
    if isinstance(values, nodes.IntExpr | nodes.FloatExpr):
        return ()
    if not isinstance(values, nodes.ListExpr | nodes.TupleExpr) or not values.items:
        return None
    shapes = [_shape_of_display(item) for item in values.items]
    first = shapes[0]
    if first is None or any(one != first for one in shapes):
        return None
    return (Size.of(len(shapes)), *first)


def _asked(size: nodes.Expression, api: TypeChecker) -> Dims | None:
    asked = type_of(size, api)
    one = read_dim(asked)
    if one is None:
        return read_shape(asked)
    return None if isinstance(one, Open) else (one,)


def _is_reshaped(name: nodes.NameExpr, api: TypeChecker) -> bool:
    """Tell whether something in the file may put another shape into an array."""
    known = assignments_of(api.tree)
    return known.is_changed(name.node) or (name.node, "resize") in known.asked


NAMES: Final = ("zeros", "ones", "full", "normal", "uniform", "from_array")


def from_numpy(call: Call) -> Answer:
    """Return what `from_numpy` makes; the array has to have the shape, where both are known."""
    values, target = call.expression("array"), read_shape(call.argument("shape"))
    found = None if values is None or target is None else _shape_of(values, call.api)
    if found is None or target is None:
        return made(call)
    if len(found) != len(target) or any(map(are_other_numbers, found, target)):
        raise ShapeError(
            f"{call.op}: the array has shape {written(found)}, the annotation says "
            f"{written(target)}"
        )
    return made(call)


def made(call: Call) -> Answer:
    """Return what is made, with the sizes that are computed from names."""
    asked, listed = call.argument("shape"), call.expression("shape")
    if isinstance(listed, nodes.ListExpr):
        sizes: Dims | None = all_known(read_dim(type_of(one, call.api)) for one in listed.items)
        return call.like(call.result, known(sizes))
    dims = known(read_shape(asked))
    for dim in dims:
        as_size(call.op, "a dim", dim.literal or 0)
    proper = types.get_proper_type(asked)
    if INT not in dims and isinstance(proper, types.TupleType):
        # mypy takes the member of an `IntEnum` for no literal int, which the result has.
        return call.like(call.result, dims) if any(map(_is_member, proper.items)) else None
    sizes = sharpened(dims, listed, call.api)
    named = tuple(
        size if isinstance(size, Size) and size.atoms else dim
        for dim, size in zip(dims, sizes, strict=True)
    )
    wanted = call.wanted
    if named == dims and (wanted is None or not mentions(wanted)):
        return None
    return call.like(call.result, named)


def _is_member(size: types.Type) -> bool:
    """Tell whether a size is the member of an `IntEnum`."""
    proper = remembered(size)
    return isinstance(proper, types.LiteralType) and proper.is_enum_literal()


def of_own_dtype(rule: Hook) -> Hook:
    """Return the hook for the signature of a function that makes a tensor with an array's dtype.

    Of ``np.zeros(3, np.int32)`` mypy takes the dtype that the place of the call wants, if it can:
    an overload of numpy's, which gives arrays of any dtype, is right as well.
    """

    def signature(context: Context) -> types.FunctionLike:
        item, api = rule(context), checker_of(context)
        assert isinstance(item, types.CallableType)
        match types.get_proper_type(item.arg_types[0]), context.args[0]:
            case (
                types.Instance(args=[_, types.Instance(args=[types.TypeVarType() as wanted])])
                | types.Instance(args=[types.TypeVarType() as wanted]),
                [array],
            ):
                match types.get_proper_type(type_of(array, api)):
                    case types.Instance(args=[_, types.Instance(args=[types.Instance() as dtype])]):
                        is_fitting = _may_be_of(dtype, wanted_by(api))
                        return item if is_fitting else settled(item, {wanted.id: dtype})
        return item

    return signature


def _may_be_of(dtype: types.Type, wanted: types.Type | None) -> bool:
    """Tell whether a place takes tensors of a dtype, as one of any numbers does."""
    tensors = [
        one for one in members(wanted) if isinstance(one, types.Instance) and len(one.args) > 2
    ]
    return not tensors or any(is_subtype(dtype, one.args[2]) for one in tensors)


def of_unknown_dtype(context: FunctionContext | MethodContext) -> types.Type:
    """Return the result of `from_numpy`, or `astype`, with an open dtype for an argument of `Any`.

    It may be an array or a list, a dtype or a name, whose results have other dtypes. So overloads
    would not agree, and mypy would give up shape and tape with the dtype. Open is also what numpy's
    types call some float, as the dtype of `np.cumprod` and `np.linalg.inv`.
    """
    result = instance_of(context.default_return_type, TENSOR)
    if result is None or any(context.arg_types[2:]):
        return context.default_return_type
    some_float = instance_of(result.args[2], "numpy.floating")
    found = [*context.arg_types[0], result.args[2], *(some_float.args if some_float else ())]
    if not any(map(is_any, found)):
        return result
    dtype = dtype_of(context.args[0][0], checker_of(context)) if context.args[0] else None
    return result.copy_modified(args=[*result.args[:2], dtype or ANYTHING])
