"""One question of mypy's about a call, in the terms of the rooms.

mypy asks for the signature of a call before it has checked the arguments, once for each overload.
A rule reads the operands' types, and answers with the type of the result, with None or an
`UndecidedError` (plain typing decides), or by raising what the run time raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final, TypeAlias

from mypy import nodes, types
from mypy.checker import TypeChecker
from mypy.erasetype import erase_typevars
from mypy.maptype import map_instance_to_supertype
from mypy.plugin import FunctionSigContext, MethodSigContext

from tapetensor.errors import ArgumentTypeError, AxisError, DTypeError, TapeTensorError
from tapetensor.mypy_plugin import reporting
from tapetensor.mypy_plugin.names import TENSOR, class_named
from tapetensor.mypy_plugin.reading import (
    ANYTHING,
    Operand,
    UndecidedError,
    all_known,
    has_dims,
    instance_of,
    is_computed,
    is_int,
    known,
    may_have_any_shape,
    members,
    merged,
    read_int,
    read_tensor,
    write_tensor,
)
from tapetensor.mypy_plugin.reporting import checker_of, wanted_by
from tapetensor.mypy_plugin.statements import displayed_in
from tapetensor.rules.dims import Dims

_REFUSED: Final = types.AnyType(types.TypeOfAny.from_error)


# A rule raises what the run time raises. Where no class says more, the shapes do not fit.
_CODES: Final = {
    AxisError: reporting.AXIS_RANGE,
    DTypeError: reporting.DTYPE_MISMATCH,
    ArgumentTypeError: reporting.ARGUMENT_KIND,
    TapeTensorError: reporting.SHAPE_MISMATCH,
}


# The last call of which an error was reported, when, the error and the result: mypy asks for each
# overload, and again after ``x += y`` has stored a result.
_last_refusal: list[tuple[nodes.Context, object, TapeTensorError, types.Type]] = []


# The type of the result, the signature of the whole call, or None: plain typing decides.
Answer: TypeAlias = types.Type | None
Context: TypeAlias = MethodSigContext | FunctionSigContext


class Call:
    """A call, for one of the overloads of what is called.

    What a rule asks for raises `UndecidedError` where it is not known, unless it says otherwise.
    Errors call the op `op`, if there may be any.
    """

    def __init__(self, context: Context, op: str = "") -> None:
        self._context = context
        self._item = context.default_signature
        self.op = op
        # The types of the arguments that were read, by the places of their formals.
        self._read: dict[int, types.Type] = {}

    @property
    def api(self) -> TypeChecker:
        """The type checker."""
        return checker_of(self._context)

    @property
    def node(self) -> nodes.Context:
        """The called expression of the program."""
        return self._context.context

    @property
    def receiver(self) -> Operand:
        """The tensor whose method is called."""
        return known(self._receiver)

    @cached_property
    def _receiver(self) -> Operand | None:
        context = self._context
        return read_tensor(context.type) if isinstance(context, MethodSigContext) else None

    @property
    def fits_all(self) -> bool:
        """Whether an operand may be a tensor whose shape fits whatever is wanted."""
        if self._receiver is not None and self._receiver.fits_all:
            return True
        return any(
            may_have_any_shape(one) for index in range(self.formals) for one in self.given(index)
        )

    @property
    def layer(self) -> tuple[types.Type, ...]:
        """The type arguments of the layer whose `forward` is called, as its own class has them."""
        if not isinstance(self._context, MethodSigContext):
            raise UndecidedError
        found = types.get_proper_type(self._context.type)
        owner: object = getattr(self._item.definition, "info", None)
        if not isinstance(found, types.Instance) or not isinstance(owner, nodes.TypeInfo):
            raise UndecidedError
        return tuple(map_instance_to_supertype(found, owner).args)

    def operand(self, place: int | str) -> Operand:
        """Return the tensor that is the argument for a formal, by its place or name."""
        return known(read_tensor(self.argument(place)))

    @property
    def tensors(self) -> dict[str, Operand]:
        """The tensors that have to be given, by the names of the formals."""
        item = self._item
        formals = zip(item.arg_names, item.arg_kinds, item.arg_types, strict=True)
        return {
            name: self.operand(name)
            for name, kind, formal in formals
            if name and kind is nodes.ARG_POS and any(map(has_dims, members(formal)))
        }

    def argument(self, place: int | str) -> types.Type | None:
        """Return the type of the argument for a formal; None where the default holds."""
        index, expression = self._index(place), self.expression(place)
        if expression is None:
            return None
        self._read[index] = type_of(expression, self.api)
        return self._read[index]

    def expression(self, place: int | str) -> nodes.Expression | None:
        """Return the expression for a formal; None where the default holds."""
        index = self._index(place)
        found = self._context.args[index] if index < len(self._context.args) else []
        return found[0] if len(found) == 1 else None

    def _index(self, place: int | str) -> int:
        """Return the place of a formal; of a name that there is none of, one behind the last."""
        if isinstance(place, int):
            return place
        names = self._item.arg_names
        return names.index(place) if place in names else len(names)

    @property
    def owner(self) -> nodes.Expression | None:
        """The operand whose operator is asked; None where it is called by its name."""
        found, other = self._context.context, self.expression(0)
        pairs = [(found.left, found.right)] if isinstance(found, nodes.OpExpr) else []
        if isinstance(found, nodes.ComparisonExpr):
            pairs = [*pairwise(found.operands)]
        return next((one for one, two in pairs if two is other), None)

    @property
    def wanted(self) -> types.Type | None:
        """The type that the place of the call expects."""
        return wanted_by(self.api)

    def given(self, index: int) -> list[types.Type]:
        """Return the types of all arguments for a formal (``*operands``) by its place."""
        self._read[index] = ANYTHING
        return [type_of(one, self.api) for one in self._context.args[index]]

    def items(self, name: str) -> list[types.Type]:
        """Return the types in the tuple, or the list display, that is the argument for a formal."""
        expression = self.expression(name)
        if isinstance(expression, nodes.ListExpr):
            if any(isinstance(item, nodes.StarExpr) for item in expression.items):
                raise UndecidedError
            # The list itself is one of `object`, if its tensors have several shapes.
            self._read[self._index(name)] = ANYTHING
            return [type_of(item, self.api) for item in expression.items]
        found = types.get_proper_type(self.argument(name))
        return known(found.items if isinstance(found, types.TupleType) else None)

    def tensor(self, shape: Dims | None, tape: types.Type, dtype: types.Type) -> types.Type:
        """Return a result; of an open shape for None."""
        info = known(class_named(TENSOR))
        return fitted(write_tensor(info, shape, tape, dtype, self.api), self.api)

    def tuple_of(self, items: list[types.Type]) -> types.Type:
        """Return several results."""
        return types.TupleType(items, self.api.named_generic_type("builtins.tuple", [items[0]]))

    def like(self, operand: Operand, shape: Dims | None) -> types.Type:
        """Return a result with the tape state and dtype of an operand."""
        return self.tensor(shape, operand.tape, operand.dtype)

    def merging(self, operands: Sequence[Operand], shape: Dims | None) -> types.Type:
        """Return a result of operands that have to share a tape state and a dtype."""
        return self.tensor(known(shape), *merged(operands))

    @property
    def formals(self) -> int:
        """How many parameters there are."""
        return len(self._item.arg_types)

    @property
    def result(self) -> Operand:
        """The type of the result by plain typing."""
        return known(read_tensor(self._item.ret_type))

    @property
    def results(self) -> tuple[Operand, ...]:
        """The types of several results by plain typing."""
        found = types.get_proper_type(self._item.ret_type)
        return known(
            all_known(map(read_tensor, found.items if isinstance(found, types.TupleType) else []))
        )

    def returning(self, result: types.Type) -> types.CallableType:
        """Return the signature that takes the arguments that were read, and gives `result`."""
        formals = [self._read.get(at, one) for at, one in enumerate(self._item.arg_types)]
        return self._item.copy_modified(arg_types=formals, ret_type=result)

    def opened(self) -> types.CallableType:
        """Return the signature of plain typing, with an open shape in its result."""
        opened = _with_arguments(self._item.ret_type, lambda args: [ANYTHING, *args[1:]])
        return self._item.copy_modified(ret_type=opened)

    def refused(self, error: TapeTensorError) -> types.CallableType:
        """Report an error; return a signature that takes everything, so that it is the only one."""
        refusal = taking_anything(self._item)
        _last_refusal[:] = [(self.node, _now(self.api), error, refusal.ret_type)]
        code = next(code for kind, code in _CODES.items() if isinstance(error, kind))
        reporting.fail(self._context, str(error), code)
        return refusal


def refused_result(item: types.CallableType) -> types.Type:
    """Return what is known of the result of a call of which an error was reported.

    That is a tensor where it would have been one: mypy complains of functions that return `Any`.
    """
    return _with_arguments(item.ret_type, lambda args: [_REFUSED] * len(args), _REFUSED)


def _with_arguments(
    result: types.Type,
    change: Callable[[Sequence[types.Type]], list[types.Type]],
    other: types.Type | None = None,
) -> types.Type:
    """Return a result, or several, with other arguments of the tensors, or the other type."""
    proper = types.get_proper_type(result)
    if isinstance(proper, types.TupleType):
        items = [_with_arguments(one, change, other) for one in proper.items]
        return proper.copy_modified(items=items)
    tensor = instance_of(proper, TENSOR)
    if tensor is not None:
        return tensor.copy_modified(args=change(tensor.args))
    return result if other is None else other


def taking_anything(item: types.CallableType) -> types.CallableType:
    """Return the signature of a call of which an error was reported, whatever its arguments."""
    return item.copy_modified(
        arg_types=[_REFUSED, _REFUSED],
        arg_kinds=[nodes.ARG_STAR, nodes.ARG_STAR2],
        arg_names=[None, None],
        ret_type=erase_typevars(item.ret_type) if item.is_type_obj() else refused_result(item),
        variables=[],
    )


def is_refused(item: types.CallableType) -> bool:
    """Tell whether an error was reported of a call that has this signature."""
    return any(one is _REFUSED for one in item.arg_types)


Rule: TypeAlias = Callable[[Call], Answer]


def opening(is_open: Callable[[Call], bool]) -> Callable[[Rule], Rule]:
    """Return a decorator for rules: an open shape where it `is_open`, and not what typing says."""

    def decorated(rule: Rule) -> Rule:
        def opened(call: Call) -> Answer:
            answer = _answer(rule, call)
            return call.opened() if answer is None and is_open(call) else answer

        return opened

    return decorated


# A rule that claims no shape where one of the operands, which all have a say, is open. Where an
# `Any` stands for a whole shape, plain typing takes the shape of the other operand, and the result
# may have more axes than that; where one stands for the rest of a shape, mypy takes the dims beside
# it for other ones than those that an overload names.
of_all_shapes = opening(lambda call: call.fits_all)


def _answer(rule: Rule, call: Call) -> Answer:
    try:
        return rule(call)
    except UndecidedError:
        return None


def of_receiver(
    rule: Callable[..., Dims | None], *readers: Callable[[Call], object], opens: bool = False
) -> Rule:
    """Return the rule of a method whose result is its tensor in another shape.

    Args:
        rule: what the op makes of the shape and of what is read; None where plain typing decides.
        readers: each reads what an argument says.
        opens: whether the result is open where an operand is.
    """

    def ruled(call: Call) -> Answer:
        x = call.receiver
        given = [read(call) for read in readers]
        return call.like(x, known(rule(call.op, x.dims, *given)))

    return of_all_shapes(ruled) if opens else ruled


Hook: TypeAlias = Callable[[Context], types.FunctionLike]


def hook(op: str, rule: Rule, *, opens_in_displays: bool = True) -> Hook:
    """Return the signature hook of a rule.

    Args:
        opens_in_displays: whether plain typing leaves dims open, so that results of several shapes
            may stand in one list.
    """

    def signature(context: Context) -> types.FunctionLike:
        item = context.default_signature
        if not is_readable(context):
            return item
        call = Call(context, op)
        for node, when, error, found in _last_refusal:
            if node is call.node and when == _now(call.api):
                if not isinstance(call.expression(0), nodes.TempNode):
                    return call.refused(error)
                # mypy asks the right operand, too. Of two methods that are both wrong it takes no
                # result, and then complains first that a function returns `Any`.
                with reporting.unheard(call.api):
                    return call.refused(error).copy_modified(ret_type=found)
        try:
            result = _answer(rule, call)
        except TapeTensorError as error:
            return call.refused(error)
        if isinstance(result, types.CallableType):
            return result
        if result is None or (opens_in_displays and context.context in displayed_in(call.api.tree)):
            return item
        return call.returning(result)

    return signature


def fitted(exact: types.Instance, api: TypeChecker) -> types.Instance:
    """Return a tensor type with an open size wherever what the place wants says `int` for one.

    All parameters are invariant, so a place that wants ``Tensor1D[int]`` refuses a literal. And
    what has a computed dim for plain typing has an open one, which an `int` fits.
    """
    shape = types.get_proper_type(exact.args[0])
    if not isinstance(shape, types.TupleType):
        return exact
    for one in members(wanted_by(api)):
        if not isinstance(one, types.Instance) or one.type is not exact.type:
            continue
        target = types.get_proper_type(one.args[0])
        if not isinstance(target, types.TupleType) or len(target.items) != len(shape.items):
            continue
        items = [
            goal if _is_open_int(goal) or (is_computed(goal) and _is_open_int(item)) else item
            for item, goal in zip(shape.items, target.items, strict=True)
        ]
        return exact.copy_modified(args=[shape.copy_modified(items=items), *exact.args[1:]])
    return exact


def is_readable(context: Context) -> bool:
    """Tell whether each argument has a parameter of its own in this overload."""
    called = context.context
    if not isinstance(called, nodes.CallExpr):
        return True
    if nodes.ARG_STAR in called.arg_kinds or nodes.ARG_STAR2 in called.arg_kinds:
        return False
    kinds = zip(called.args, called.arg_kinds, strict=True)
    positional = [one for one, kind in kinds if kind is nodes.ARG_POS]
    # mypy counts one too many for the next parameter, which may be one by name alone.
    for kind, given in zip(context.default_signature.arg_kinds, context.args, strict=True):
        if kind.is_named() and any(one in positional for one in given):
            return False
    return sum(map(len, context.args)) == len(called.args)


# The types of the last expressions, and when they were read.
_last_read: list[tuple[object, dict[nodes.Expression, types.Type]]] = []


def type_of(expression: nodes.Expression, api: TypeChecker) -> types.Type:
    """Return the type of an expression, evaluated as if on its own."""
    if isinstance(expression, nodes.TempNode):
        return expression.type
    now, checker = _now(api), api.expr_checker
    # Nothing is kept where the types of names come from outside.
    if not _last_read or _last_read[0][0] != now or checker.in_lambda_expr:
        _last_read[:] = [(now, {})]
    read = _last_read[0][1]
    if expression not in read:
        with api.msg.filter_errors(), api.local_type_map:
            read[expression] = checker.accept(expression)
    return read[expression]


def _now(api: TypeChecker) -> object:
    """Return what is another one as soon as mypy learns of an assignment or a condition.

    Each check of a file has a binder of its own, in the daemon, too.
    """
    return api.binder, api.binder.version, api.current_node_deferred


def _is_open_int(dim: types.Type) -> bool:
    return is_int(dim) and read_int(dim) is None
