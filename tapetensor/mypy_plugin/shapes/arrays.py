"""The shapes of numpy arrays and lists that are written down: ``np.zeros((2, 3))``, ``[[1.0]]``.

numpy's types do not know sizes. So the expression is read, and that of a local array that is
assigned once.
"""

from __future__ import annotations

from typing import Final

from mypy.checker import TypeChecker
from mypy.nodes import (
    ARG_POS,
    CallExpr,
    Expression,
    FloatExpr,
    IntExpr,
    ListExpr,
    MemberExpr,
    NameExpr,
    RefExpr,
    TupleExpr,
    UnaryExpr,
)
from mypy.types import Instance, get_proper_type

from tapetensor.errors import ShapeError
from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.assignments import assignments_of
from tapetensor.mypy_plugin.shapes.calls import Call, type_of
from tapetensor.mypy_plugin.shapes.reading import read_dim, read_shape
from tapetensor.mypy_plugin.shapes.sizes import value_of
from tapetensor.rules.dims import Dims, Open, Size, are_other_numbers, written

_MAKERS: Final = ("zeros", "ones", "empty", "full")
# The methods of numpy's generators, and the place of the size among their arguments.
_GENERATOR: Final = "numpy.random._generator.Generator"
_DRAWN: Final = {"random": 0, "standard_normal": 0, "integers": 2, "normal": 2, "uniform": 2}


def check_values(call: Call) -> None:
    """Raise ShapeError if an array that is written down has another shape than is asked for."""
    values, target = call.expression("array"), read_shape(call.argument("shape"))
    found = None if values is None or target is None else _shape_of(values, call.api)
    if found is None or target is None:
        return
    if len(found) != len(target) or any(map(are_other_numbers, found, target)):
        raise ShapeError(
            f"{call.op}: the array has shape {written(found)}, the annotation says "
            f"{written(target)}"
        )


def _shape_of(values: Expression, api: TypeChecker) -> Dims | None:
    """Return the shape of an array or of nested lists; None where it is not written down."""
    if isinstance(values, ListExpr | TupleExpr):
        return _shape_of_display(values)
    if isinstance(values, CallExpr):
        return _shape_of_call(values, api)
    made = value_of(values, api)
    if not isinstance(values, NameExpr) or not isinstance(made, CallExpr):
        # A list in a variable may grow.
        return None
    return None if _is_reshaped(values, api) else _shape_of_call(made, api)


def _shape_of_display(values: Expression) -> Dims | None:
    if isinstance(values, UnaryExpr):
        values = values.expr
    if isinstance(values, IntExpr | FloatExpr):
        return ()
    if not isinstance(values, ListExpr | TupleExpr) or not values.items:
        return None
    shapes = [_shape_of_display(item) for item in values.items]
    first = shapes[0]
    if first is None or any(one != first for one in shapes):
        return None
    return (Size.of(len(shapes)), *first)


def _shape_of_call(call: CallExpr, api: TypeChecker) -> Dims | None:
    callee = call.callee
    if isinstance(callee, MemberExpr) and callee.name == "astype":
        return _shape_of(callee.expr, api)
    if isinstance(callee, MemberExpr) and callee.name in _DRAWN:
        return _shape_of_drawn(call, callee, api)
    if not isinstance(callee, RefExpr) or not callee.fullname.startswith("numpy."):
        return None
    name = callee.fullname.rpartition(".")[2]
    if not call.args or call.arg_kinds[0].is_star():
        return None
    if name in ("array", "asarray") and isinstance(call.args[0], ListExpr):
        return None if "ndmin" in call.arg_names else _shape_of_display(call.args[0])
    if name not in _MAKERS or call.arg_names[0] not in (None, "shape"):
        return None
    return _asked(call.args[0], api)


def _shape_of_drawn(call: CallExpr, method: MemberExpr, api: TypeChecker) -> Dims | None:
    generator = get_proper_type(type_of(method.expr, api))
    if not isinstance(generator, Instance) or generator.type.fullname != _GENERATOR:
        return None
    place = _DRAWN[method.name]
    named = dict(zip(call.arg_names, call.args, strict=True)).get("size")
    if named is None and len(call.args) > place:
        is_plain = all(kind is ARG_POS for kind in call.arg_kinds[: place + 1])
        named = call.args[place] if is_plain else None
    return None if named is None else _asked(named, api)


def _asked(size: Expression, api: TypeChecker) -> Dims | None:
    asked = type_of(size, api)
    one = read_dim(asked)
    if one is None:
        return read_shape(asked)
    return None if isinstance(one, Open) else (one,)


def _is_reshaped(name: NameExpr, api: TypeChecker) -> bool:
    """Tell whether something in the file may put another shape into an array."""
    known = assignments_of(flow.tree(api))
    return known.is_changed(name.node) or (name.node, "resize") in known.asked
