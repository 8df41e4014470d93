"""Checks of the fields of a module class against its constructor and its `forward`.

====================  ===================================================================
made in `__init__`    a tensor or a layer that is set there and is no field of the class
``nn.options(pp=1)``  an argument that the layer has not, or that its annotation says otherwise
never read            a layer or a parameter that the class declares and nobody reads: a note
unchecked             the body behind an overloaded `forward` takes `Any`: a note
====================  ===================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mypy import nodes, types
from mypy.constant_fold import ConstantValue, constant_fold_expr
from mypy.plugin import ClassDefContext, FunctionContext, MethodContext

from tapetensor.mypy_plugin import reporting
from tapetensor.mypy_plugin.modules.calling import METHODS
from tapetensor.mypy_plugin.modules.classes import (
    LISTS,
    assignments,
    declared,
    kinds_of_fields,
    signature_of_constructor,
    with_constructor,
)
from tapetensor.mypy_plugin.modules.constructing import LIBRARY
from tapetensor.mypy_plugin.names import MODULE, but_elsewhere, member_of, type_of_field
from tapetensor.mypy_plugin.reading import is_any, is_module, is_tensor, members, read_int
from tapetensor.mypy_plugin.reporting import MODULE_DIMS, checker_of
from tapetensor.mypy_plugin.shapes.computed import respelled, type_in
from tapetensor.mypy_plugin.statements import READ_ALL, attributes_of, statements

# Options that are a share of something.
_SHARES: Final = ("p", "dropout", "momentum")
# Where one of these is used, any field may be read.
_READ_ALL: Final = frozenset({"modules", "parameters", "fields_of_class", "__dict__", *READ_ALL})


def check_made(context: FunctionContext | MethodContext) -> types.Type:
    """Report a tensor or a layer that an `__init__` makes and that is no field."""
    made, where = context.default_return_type, context.context
    function = reporting.function(checker_of(context))
    if not isinstance(function, nodes.FuncDef) or function.name != "__init__" or not function.info:
        return made
    info = function.info
    if not info.has_base(MODULE) or not (is_module(made) or is_tensor(made)):
        return made
    fields = kinds_of_fields(info)
    if fields is None:
        return made
    for name, value in _set_on_self(function):
        node = member_of(info, name)
        if name in fields or (isinstance(node, nodes.Var) and node.is_classvar):
            continue
        if any(one is where for one in _made_by(value)):
            kind = types.get_proper_type(made)
            called = kind.type.name if isinstance(kind, types.Instance) else "..."
            reporting.report(
                context,
                f"{info.name}.{name}: annotate {name} in the class body ({name}: {called}[...]), "
                "so that parameters() and build() find it",
                MODULE_DIMS,
            )
    return made


function_result = method_result = but_elsewhere(check_made)


def check_declared(context: ClassDefContext) -> None:
    """Report options that a layer has not, and note what is declared in vain."""
    cls, info = context.cls, context.cls.info
    for name, statement in assignments(cls).items():
        kind, given = declared(statement.rvalue)
        if kind in ("options", "repeat") and "*" not in given:
            _check_options(context, name, statement.rvalue)
    node = info.names.get("forward")
    if node is not None and isinstance(node.node, METHODS):
        if isinstance(node.node, nodes.OverloadedFuncDef):
            _check_body(context, node.node)
        _check_read(context)


def _check_options(context: ClassDefContext, name: str, call: nodes.Expression) -> None:
    info = context.cls.info
    annotation = type_of_field(info, name)
    layer = types.get_proper_type(respelled(annotation)) if annotation is not None else None
    path = name
    if isinstance(layer, types.Instance) and layer.type.fullname in LISTS and layer.args:
        path, layer = f"{name}.0", types.get_proper_type(layer.args[0])
    if not isinstance(layer, types.Instance) or not is_module(layer):
        return
    assert isinstance(call, nodes.CallExpr)
    given = {
        option: constant_fold_expr(value, info.module_name)
        for option, value in zip(call.arg_names, call.args, strict=True)
        if option is not None and option != "count"
    }
    taken = _arguments(layer.type)
    unknown = [one for one in given if taken is not None and one not in taken]
    if unknown:
        message = f"{info.name}.{name}: {layer.type.name} has no argument {', '.join(unknown)}"
        message = f"{message}; it has {', '.join(taken or ['none'])}"
        reporting.fail(context, message, MODULE_DIMS, call)
    for option, value in given.items():
        refused = _refused(layer, name, option, value)
        if refused is not None:
            reporting.fail(context, f"{info.name}: {path}.{option} {refused}", MODULE_DIMS, call)


def _refused(
    layer: types.Instance, name: str, option: str, value: ConstantValue | None
) -> str | None:
    """Return why a layer does not take a value of an option, or its type denies it."""
    node = member_of(layer.type, option)
    if not isinstance(node, nodes.Var):
        return None
    # An alias of a union may be one of a union.
    declared = [item for one in members(node.type) for item in members(one)]
    choices = [one.value for one in declared if isinstance(one, types.LiteralType)]
    said = type_in(layer, node)
    if isinstance(value, str) and choices and value not in choices:
        return f"must be {' or '.join(map(repr, choices))}, got {value!r}"
    if option == "eps" and isinstance(value, int | float) and value < 0:
        return f"must be >= 0, got {value}"
    if option in _SHARES and isinstance(value, int | float) and not 0 <= value <= 1:
        return f"must be from 0 to 1, got {value}"
    if isinstance(value, int) and isinstance(said, types.LiteralType) and said.value != value:
        return (
            f"is {value}, the annotation of {name} says {said.value}; "
            f"write {_annotation(layer, node, value)}"
        )
    return None


def _annotation(layer: types.Instance, field: nodes.Var, value: int) -> str:
    """Return the annotation of a layer with another value for a field, up to that."""
    variable = types.get_proper_type(field.type)
    names = [one.name for one in layer.type.defn.type_vars]
    name = variable.name if isinstance(variable, types.TypeVarType) else ""
    place = names.index(name) if name in names else len(names)
    sizes = [read_int(one) for one in layer.args[:place]]
    before = [f"L[{size}]" if size is not None else "..." for size in sizes]
    return f"nn.{layer.type.name}[{', '.join([*before, f'L[{value}]'])}]"


def _arguments(info: nodes.TypeInfo) -> list[str] | None:
    """Return the names that the constructor of a module takes; None if it takes any."""
    owner = with_constructor(info)
    if owner is None:
        kinds = kinds_of_fields(info)
        return None if kinds is None else [*kinds]
    signature = signature_of_constructor(owner)
    if signature is None or any(kind.is_star() for kind in signature.arg_kinds):
        return None
    return [one for one in signature.arg_names[1:] if one is not None]


def _check_body(context: ClassDefContext, node: nodes.OverloadedFuncDef) -> None:
    """Note a body that mypy does not check, for its input is `Any`."""
    # The body comes last, and mypy has not told it from the overloads yet.
    body = next(reversed(node.unanalyzed_items or node.items), None)
    is_ours = context.cls.fullname.startswith(LIBRARY)
    if is_ours or not isinstance(body, nodes.FuncDef):
        return
    signature = types.get_proper_type(body.type)
    takes = signature.arg_types[1:] if isinstance(signature, types.CallableType) else []
    if not takes or any(map(_is_any, takes)):
        reporting.note(
            context.api,
            f"{context.cls.name}.forward: mypy does not check this body, which takes Any; annotate "
            "its input with the union of what the overloads take, and ask tt.owns_tape(x)",
            body,
        )


def _is_any(found: types.Type) -> bool:
    proper = types.get_proper_type(found)
    # mypy may not have looked up the name yet.
    name = proper.name.rpartition(".")[2] if isinstance(proper, types.UnboundType) else ""
    return is_any(proper) or name == "Any"


def _check_read(context: ClassDefContext) -> None:
    """Note the layers and parameters of a class that nobody in the file reads."""
    cls, used = context.cls, attributes_of(reporting.tree_of_classes(context.api))
    if used & _READ_ALL:
        return
    for name, statement in assignments(cls).items():
        kind, _ = declared(statement.rvalue)
        is_trained = is_module(type_of_field(cls.info, name)) or kind in ("parameter", "repeat")
        if is_trained and name not in used:
            reporting.note(
                context.api,
                f"{cls.name}.{name}: forward() does not read this field, nor does anything else in "
                "this file: it is saved and counted, and gets no gradient",
                statement,
            )


def _set_on_self(function: nodes.FuncDef) -> Iterator[tuple[str, nodes.Expression]]:
    """Yield the attributes that a method sets on `self`, and to what."""
    if not function.arguments:
        return
    own = function.arguments[0].variable
    for statement in statements(function.body.body):
        if isinstance(statement, nodes.AssignmentStmt):
            for target in statement.lvalues:
                match target:
                    case nodes.MemberExpr(expr=nodes.NameExpr(node=node), name=name) if node is own:
                        yield name, statement.rvalue


def _made_by(value: nodes.Expression) -> Iterator[nodes.Context]:
    """Yield the calls whose results a value holds."""
    match value:
        case nodes.CallExpr():
            yield value
        case nodes.ListExpr(items=items) | nodes.TupleExpr(items=items):
            for one in items:
                yield from _made_by(one)
        case nodes.ListComprehension(generator=generator):
            yield from _made_by(generator.left_expr)
