"""What is not there: arguments that no overload takes, and names that other libraries have.

Where an argument is missing, one too many or of a wrong kind, mypy lists all overloads, and leaves
it to the reader to find the difference. Where it is wrong whatever the others are, one sentence
says so. Dims, tapes and dtypes are not compared here: nothing is said of a tensor where a tensor is
wanted.

Of what is there mypy asks plugins. So the class and the package have the names of other libraries,
for the plugin alone, and the error says what to write here. Of a function that is only handed on
mypy does not ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_not
from typing import Final, NamedTuple

from mypy import nodes, types
from mypy.argmap import map_actuals_to_formals
from mypy.errorcodes import ATTR_DEFINED
from mypy.plugin import AttributeContext, ClassDefContext, FunctionContext, MethodSigContext

from tapetensor.arguments.spellings import OF_PACKAGES, OF_TENSORS, missing_from
from tapetensor.mypy_plugin.names import TENSOR, TENSOR_ROOMS, class_named, node_of, op_called
from tapetensor.mypy_plugin.reading import (
    ANYTHING,
    accepts,
    bounded,
    described,
    is_floating,
    is_tensor,
    kinds_in_words,
    read_int,
    read_tensor,
)
from tapetensor.mypy_plugin.reporting import ARGUMENT_KIND, OPERAND_KIND, checker_of, fail
from tapetensor.mypy_plugin.shapes.broadcasting import dtype_name
from tapetensor.mypy_plugin.shapes.calls import Context, is_refused, taking_anything, type_of

_OURS: Final = "tapetensor."
# Cures by the name of an argument, and by that of an op which others know with more arguments.
_CURES: Final = {"shape": "; write (5, 3), say", "tensors": "; write ((x, y)), say"}
_LONGER: Final = {"transpose": "; permute_dims((1, 0)) takes an order of axes"}


def method_signature(fullname: str) -> Callable[[Context], types.FunctionLike] | None:
    """Return the hook for the signature of a function, a class or a method of the library."""
    name = fullname.rpartition(".")[2]

    def fitting_arguments(context: Context) -> types.FunctionLike:
        if isinstance(context, MethodSigContext):
            found = types.get_proper_type(context.type)
            if not isinstance(found, types.Instance):
                return context.default_signature
            _tell_of_dtype(context, found, name)
            called = found.type.name if name in ("forward", "__call__") else name
            return _checked(context, found.type, called, _signatures(found.type, name))
        node = node_of(fullname)
        if isinstance(node, nodes.TypeInfo):
            return _checked(context, node, name, _signatures(node, "__init__"))
        # A function whose overloads are written elsewhere is a decorated one.
        typed = node.var if isinstance(node, nodes.Decorator) else node
        items = typed.type if isinstance(typed, nodes.OverloadedFuncDef | nodes.Var) else None
        overloads = items.items if isinstance(items, types.Overloaded) else []
        return _checked(context, node, name, overloads)

    return fitting_arguments if fullname.startswith(_OURS) else None


function_signature = method_signature


def _tell_of_dtype(context: MethodSigContext, owner: types.Instance, name: str) -> None:
    """Say in a note what a method of floating tensors wants, for mypy's error is about `self`."""
    dtype = dtype_name(owner.args[2]) if is_tensor(owner) else None
    symbol = None if dtype is None or is_floating(owner.args[2]) else owner.type.get(name)
    method = types.get_proper_type(None if symbol is None else symbol.type)
    takers = method.items if isinstance(method, types.FunctionLike) else []
    taken = [read_tensor(one.arg_types[0]) for one in takers if one.arg_types]
    if taken and all(one is not None and is_floating(one.dtype) for one in taken):
        message = f"{name}: not defined for dtype {dtype}; convert first with x.astype(np.float32)"
        checker_of(context).msg.note(message, context.context)


def _signatures(info: nodes.TypeInfo, name: str) -> list[types.CallableType]:
    """Return the overloads of a method, without `self`."""
    symbol = info.get(name)
    found = None if symbol is None else types.get_proper_type(symbol.type)
    # Users of other libraries write methods of tensors with other arguments.
    is_read = isinstance(found, types.Overloaded) or info.fullname == TENSOR
    # What mypy says of one constructor names its type variables.
    # A named tuple has only that of `object`.
    is_own = name == "__init__" and not info.is_named_tuple
    is_read = is_read or (is_own and info.fullname.startswith(f"{_OURS}nn."))
    return [
        _without_self(one)
        for one in (found.items if is_read and isinstance(found, types.FunctionLike) else [])
        if one.arg_types and one.arg_kinds[0] is nodes.ARG_POS
    ]


def _without_self(method: types.CallableType) -> types.CallableType:
    """Return a method without `self`, and without what only catches the arguments of others."""
    kept = [
        place
        for place, found in enumerate(method.arg_types)
        if place and not isinstance(types.get_proper_type(found), types.UninhabitedType)
    ]
    return method.copy_modified(
        arg_types=[method.arg_types[place] for place in kept],
        arg_kinds=[method.arg_kinds[place] for place in kept],
        arg_names=[method.arg_names[place] for place in kept],
    )


class _Given(NamedTuple):
    """The arguments of a call, as they are written."""

    found: list[types.Type]
    kinds: list[nodes.ArgKind]
    names: Sequence[str | None]


# What was asked last, and the answer: mypy asks for each overload of a call.
_last_complaint: list[tuple[tuple[object, ...], str | None]] = []


def _checked(
    context: Context, owner: object, called: str, items: list[types.CallableType]
) -> types.FunctionLike:
    """Report the argument that is wrong for every overload; then the call takes anything."""
    item = context.default_signature
    is_operator = called.startswith("__")
    given = None if is_refused(item) or not items else _given(context, is_operator)
    if given is None:
        return item
    op = op_called(called)
    asked = (context.context, owner, called, *given.found)
    last = _last_complaint[0][0] if _last_complaint else ()
    # The very same: to compare types would take as long as to look at them.
    if len(asked) != len(last) or any(map(is_not, asked, last)):
        _last_complaint[:] = [(asked, _complaint(op, given, items))]
    complaint = _last_complaint[0][1]
    if complaint is None:
        return item
    code = OPERAND_KIND if is_operator else ARGUMENT_KIND
    fail(context, f"{op}: {complaint}", code)
    return taking_anything(item)


def _given(context: Context, is_operator: bool) -> _Given | None:
    """Return the arguments of a call; None if they are not written one by one.

    What an operator (`for row in f(x)`) stands at may be another call.
    """
    api, called = checker_of(context), context.context
    inner = [one for formal in context.args for one in formal]
    if isinstance(called, nodes.CallExpr) and not is_operator:
        expressions, kinds, names = called.args, called.arg_kinds, called.arg_names
    else:
        expressions, kinds, names = inner, [nodes.ARG_POS] * len(inner), [None] * len(inner)
    if nodes.ARG_STAR in kinds or nodes.ARG_STAR2 in kinds:
        return None
    return _Given([type_of(one, api) for one in expressions], kinds, names)


def _complaint(op: str, given: _Given, items: list[types.CallableType]) -> str | None:
    """Return what is wrong with the arguments whatever the overload; None if nothing is."""
    said = given.kinds, given.names
    mapped = [
        (one, map_actuals_to_formals(*said, one.arg_kinds, one.arg_names, given.found.__getitem__))
        for one in items
    ]
    taking = [pair for pair in mapped if _takes_all(given, *pair)]
    if not taking:
        return _too_many(op, given, items)
    missing = [_missing(item, formals) for item, formals in taking]
    if all(missing):
        return f"the argument {min(missing, key=len)[0]} is missing"
    complete = [pair for pair, lacking in zip(taking, missing, strict=True) if not lacking]
    for index, found in enumerate(given.found):
        places = [
            (item, place)
            for item, formals in complete
            for place, actuals in enumerate(formals)
            if index in actuals
        ]
        wanted = [item.arg_types[place] for item, place in places]
        if not any(accepts(one, found) for one in wanted):
            item, place = places[0]
            name = item.arg_names[place] or "the other operand"
            name = "an index" if op == "getitem" else name
            cure = _CURES.get(name, "")
            return f"{name} must be {kinds_in_words(wanted)}, got {described(found)}{cure}"
        if all(item.arg_names[place] == "shape" for item, place in places):
            shape = types.get_proper_type(found)
            dims = shape.items if isinstance(shape, types.TupleType) else []
            no_dim = next(filter(_is_no_dim, dims), None)
            if no_dim is not None:
                return f"a dim must be an int, got {described(no_dim)}"
    return None


def _is_no_dim(found: types.Type) -> bool:
    """Tell whether no value of a type is the size of an axis."""
    proper = bounded(found)
    if isinstance(proper, types.LiteralType):
        proper = proper.fallback
    if not isinstance(proper, types.Instance):
        return isinstance(proper, types.TypeType | types.NoneType | types.TupleType)
    is_computed = proper.type.module_name.startswith(_OURS) and not is_tensor(proper)
    return not is_computed and proper.type.get("__index__") is None


def _takes_all(given: _Given, item: types.CallableType, formals: list[list[int]]) -> bool:
    """Tell whether each argument has a parameter of its own."""
    for kind, actuals in zip(item.arg_kinds, formals, strict=True):
        if len(actuals) > 1 and not kind.is_star():
            return False
        by_place = any(given.kinds[one] is nodes.ARG_POS for one in actuals)
        if by_place and not kind.is_positional(True):
            return False
    return sum(map(len, formals)) == len(given.found)


def _too_many(op: str, given: _Given, items: list[types.CallableType]) -> str | None:
    """Return a complaint about an argument that no overload has."""
    # The names stand in the order in which they are written, each once.
    known = dict.fromkeys(name for item in items for name in item.arg_names if name is not None)
    for name in given.names:
        if name is not None and name not in known:
            *others, last = known or ["none"]
            there = f"{', '.join(others)} and {last}" if others else last
            return f"there is no argument {name}; it takes {there}"
    most = max(sum(kind.is_positional() for kind in item.arg_kinds) for item in items)
    positional = given.kinds.count(nodes.ARG_POS)
    if positional <= most:
        return None
    sizes = [read_int(found) for found in given.found]
    cure = _LONGER.get(op, "")
    if most == 1 and None not in sizes:
        cure = f"; write {op}(({', '.join(map(str, sizes))}))"
    return f"takes {most or 'no'} positional argument{'s' * (most != 1)}, got {positional}{cure}"


def _missing(item: types.CallableType, formals: list[list[int]]) -> list[str]:
    return [
        name or "operand"
        for name, kind, actuals in zip(item.arg_names, item.arg_kinds, formals, strict=True)
        if kind.is_required() and not actuals
    ]


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


def attribute(fullname: str) -> Callable[[AttributeContext], types.Type] | None:
    """Answer for an attribute that tensors have elsewhere."""
    owner, _, name = fullname.rpartition(".")
    if owner != TENSOR or name not in OF_TENSORS:
        return None

    def spelled(context: AttributeContext) -> types.Type:
        message = f"'Tensor' object has no attribute '{name}'; write {OF_TENSORS[name]}"
        context.api.fail(message, context.context, code=ATTR_DEFINED)
        of_function = context.api.named_generic_type("builtins.function", [])
        return _some_tensor() if name in _PROPERTIES else _giving(_some_tensor(), of_function)

    return spelled


def function_result(fullname: str) -> Callable[[FunctionContext], types.Type] | None:
    """Answer for a call of a function that is there elsewhere."""
    package, _, name = fullname.rpartition(".")
    if name not in OF_PACKAGES.get(package, {}):
        return None

    def spelled(context: FunctionContext) -> types.Type:
        message = str(missing_from(package, name))
        context.api.fail(message, context.context, code=ATTR_DEFINED)
        return ANYTHING if package != _MAIN or name in _OF_OTHERS else _some_tensor()

    return spelled


def _add_names(context: ClassDefContext) -> None:
    info = context.cls.info
    for name in OF_TENSORS:
        _add(info.names, nodes.MDEF, f"{info.fullname}.{name}", ANYTHING).info = info
    function = _giving(ANYTHING, context.api.named_type("builtins.function"))
    for package, spellings in OF_PACKAGES.items():
        # mypy has read the packages by now, and not yet looked at what is in them; but where it
        # takes one from its cache, with these names.
        read = context.api.modules.get(package)
        for name in spellings:
            if read is not None and name not in _NOT_CALLED:
                _add(read.names, nodes.GDEF, f"{package}.{name}", function)


def _add(table: nodes.SymbolTable, kind: int, fullname: str, found: types.Type) -> nodes.Var:
    variable = nodes.Var(fullname.rpartition(".")[2], found)
    variable._fullname = fullname
    table[variable.name] = nodes.SymbolTableNode(kind, variable, plugin_generated=True)
    return variable


def _giving(result: types.Type, of_function: types.Instance) -> types.CallableType:
    kinds = [nodes.ARG_STAR, nodes.ARG_STAR2]
    return types.CallableType([ANYTHING, ANYTHING], kinds, [None, None], result, of_function)


def _some_tensor() -> types.Type:
    """Return a tensor of which nothing is known: mypy complains of functions that return `Any`."""
    tensor = class_named(TENSOR)
    return ANYTHING if tensor is None else types.Instance(tensor, [ANYTHING] * 3)
