"""Tensors that are made: the sizes that are computed where their shape is given."""

from __future__ import annotations

from typing import Final

from mypy.checker import TypeChecker
from mypy.nodes import ListExpr
from mypy.plugin import FunctionContext, MethodContext
from mypy.subtypes import is_subtype
from mypy.types import (
    AnyType,
    CallableType,
    FunctionLike,
    Instance,
    Type,
    TypeVarType,
    get_proper_type,
)

from tapetensor.errors import ShapeError
from tapetensor.mypy_plugin.kinds import ANYTHING, members
from tapetensor.mypy_plugin.names import TENSOR
from tapetensor.mypy_plugin.shapes.arrays import check_values, dtype_of
from tapetensor.mypy_plugin.shapes.calls import Answer, Call, Context, Hook, type_of
from tapetensor.mypy_plugin.shapes.computed import mentions
from tapetensor.mypy_plugin.shapes.reading import known, read_dim, read_shape
from tapetensor.mypy_plugin.shapes.signatures import settled
from tapetensor.mypy_plugin.shapes.sizes import sharpened
from tapetensor.rules.dims import INT, Size, is_negative

NAMES: Final = ("zeros", "ones", "full", "normal", "uniform", "from_array")


def from_numpy(call: Call) -> Answer:
    """Return what `from_numpy` makes; the array has to have the shape, where both are known."""
    check_values(call)
    return made(call)


def made(call: Call) -> Answer:
    """Return what is made, with the sizes that are computed from names."""
    asked, listed = call.argument("shape"), call.expression("shape")
    if isinstance(listed, ListExpr):
        items = [read_dim(type_of(one, call.api)) for one in listed.items]
        listed_dims = tuple([one for one in items if one is not None])
        return call.like(call.result, listed_dims) if len(listed_dims) == len(items) else None
    dims = known(read_shape(asked))
    negative = [dim for dim in dims if is_negative(dim)]
    if negative:
        raise ShapeError(f"{call.op}: a dim must not be negative, got {negative[0]}")
    if INT not in dims:
        return None
    sizes = sharpened(dims, call.expression("shape"), call.api)
    named = tuple(
        size if isinstance(size, Size) and size.atoms else dim
        for dim, size in zip(dims, sizes, strict=True)
    )
    wanted = call.api.expr_checker.type_context[-1]
    if named == dims and (wanted is None or not mentions(wanted)):
        return None
    return call.like(call.result, named)


def of_own_dtype(rule: Hook) -> Hook:
    """Return the hook for the signature of a function that makes a tensor with an array's dtype.

    Of ``np.zeros(3, np.int32)`` mypy takes the dtype that the place of the call wants, if it can:
    an overload of numpy's, which gives arrays of any dtype, is right as well.
    """

    def signature(context: Context) -> FunctionLike:
        item = rule(context)
        assert isinstance(item, CallableType)
        assert isinstance(context.api, TypeChecker)
        match get_proper_type(item.arg_types[0]), context.args[0]:
            case (
                Instance(args=[_, Instance(args=[TypeVarType() as wanted])])
                | Instance(args=[TypeVarType() as wanted]),
                [array],
            ):
                match get_proper_type(type_of(array, context.api)):
                    case Instance(args=[_, Instance(args=[Instance() as dtype])]):
                        is_fitting = _may_be_of(dtype, context.api.expr_checker.type_context[-1])
                        return item if is_fitting else settled(item, {wanted.id: dtype})
        return item

    return signature


def _may_be_of(dtype: Type, wanted: Type | None) -> bool:
    """Tell whether a place takes tensors of a dtype, as one of any numbers does."""
    tensors = [one for one in members(wanted) if isinstance(one, Instance) and len(one.args) > 2]
    return not tensors or any(is_subtype(dtype, one.args[2]) for one in tensors)


def of_unknown_dtype(context: FunctionContext | MethodContext) -> Type:
    """Return the result of `from_numpy`, or `astype`, with an open dtype for an argument of `Any`.

    It may be an array or a list, a dtype or a name, whose results have other dtypes. So overloads
    would not agree, and mypy would give up shape and tape with the dtype. Open is also what numpy's
    types call some float, as the dtype of `np.cumprod` and `np.linalg.inv`.
    """
    result, dtypes = get_proper_type(context.default_return_type), context.arg_types[2:]
    if not isinstance(result, Instance) or result.type.fullname != TENSOR or any(dtypes):
        return context.default_return_type
    found = [*context.arg_types[0], result.args[2]]
    is_unknown = any(isinstance(get_proper_type(one), AnyType) for one in found)
    if not is_unknown and not _is_some_float(result.args[2]):
        return result
    assert isinstance(context.api, TypeChecker)
    dtype = dtype_of(context.args[0][0], context.api) if context.args[0] else None
    return result.copy_modified(args=[*result.args[:2], dtype or ANYTHING])


def _is_some_float(dtype: Type) -> bool:
    found = get_proper_type(dtype)
    if not isinstance(found, Instance) or found.type.fullname != "numpy.floating":
        return False
    return isinstance(get_proper_type(found.args[0]), AnyType)
