"""The values of expressions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from mypy.nodes import (
    AssignmentExpr,
    CallExpr,
    ComparisonExpr,
    ConditionalExpr,
    Context,
    Decorator,
    DictExpr,
    DictionaryComprehension,
    Expression,
    FuncDef,
    FuncItem,
    GeneratorExpr,
    IndexExpr,
    IntExpr,
    LambdaExpr,
    ListComprehension,
    ListExpr,
    MemberExpr,
    MypyFile,
    NameExpr,
    OpExpr,
    OverloadedFuncDef,
    RefExpr,
    SetComprehension,
    SetExpr,
    StarExpr,
    StrExpr,
    SuperExpr,
    SymbolNode,
    TupleExpr,
    TypeInfo,
    UnaryExpr,
    Var,
    YieldExpr,
    YieldFromExpr,
)
from mypy.operators import op_methods
from mypy.types import Instance
from mypy.typevars import fill_typevars

from tapetensor.mypy_plugin.blocks import function_of
from tapetensor.mypy_plugin.gradients.fields import (
    declared,
    field,
    is_gradients,
    is_model,
    method_of,
)
from tapetensor.mypy_plugin.gradients.ledger import Ledger, Operand
from tapetensor.mypy_plugin.gradients.places import SOME_ITEM, Place
from tapetensor.mypy_plugin.gradients.values import (
    NOTHING,
    Function,
    Value,
    called,
    content,
    flattened,
    joined,
)
from tapetensor.mypy_plugin.moves.keys import children, key_of, spelled
from tapetensor.mypy_plugin.moves.owners import signatures
from tapetensor.mypy_plugin.names import NONE_TAPE, op_called

# What a function has in its variables.
Variables = dict[Hashable, Value]
_ARITHMETIC: Final = frozenset({"+", "-", "*", "/", "//", "%", "**", "@"})
# A loop over a display of so many items is gone through item by item.
_SHORT: Final = 6
# What is trained in most layers.
_TRAINED: Final = ("weight", "bias")
_FACTS: Final = frozenset({"shape", "dtype", "id", "ndim", "size", "owns_tape"})


class Expressions(Ledger, ABC):
    """Works out the values of expressions, in the order in which Python does."""

    def __init__(self, unit: FuncItem | MypyFile, tree: MypyFile) -> None:
        super().__init__(unit)
        self.tree = tree
        self.variables: Variables = {}
        # What the generator that is gone through has yielded.
        self.yielded: list[Value] = []
        # By object and name, attributes that were assigned to.
        self._held: dict[tuple[Place, str], Value] = {}

    @abstractmethod
    def call(self, call: CallExpr) -> Value:
        """Return what a call returns."""

    @abstractmethod
    def run(self, node: Context, function: Function, arguments: dict[int, Value]) -> Value | None:
        """Return what a function whose body is known returns; None if it is not looked into."""

    @abstractmethod
    def define(self, function: FuncItem) -> Value:
        """Take note of a function that is defined here."""

    def value(self, expression: Expression | None) -> Value:
        """Return the value of an expression."""
        match expression:
            case None:
                return NOTHING
            case NameExpr():
                return self._reference(expression)
            case MemberExpr():
                return self._member(expression)
            case CallExpr(analyzed=Expression() as meant):
                return self.value(getattr(meant, "expr", None))
            case CallExpr():
                return self.call(expression)
            case IndexExpr():
                return self._item(expression)
            case OpExpr(op="and" | "or", left=left, right=right):
                return joined([self.value(left), self.value(right)])
            case OpExpr(op=symbol, left=left, right=right) if symbol in _ARITHMETIC:
                return self.arithmetic(expression, symbol, left, right)
            case UnaryExpr(op="-", expr=inner):
                value = self.value(inner)
                operand = Operand(value, inner)
                return self.operate(expression, "negative", [operand]) if value.is_tensor else value
            case ComparisonExpr() | OpExpr() | UnaryExpr():
                for part in children(expression):
                    self.value(part)
                return NOTHING
            case ConditionalExpr(cond=test, if_expr=yes, else_expr=no):
                ways = {True: [yes], False: [no], None: [yes, no]}[self.truth(test)]
                return joined([self.value(one) for one in ways])
            case TupleExpr(items=parts) | ListExpr(items=parts) | SetExpr(items=parts):
                return self._display(parts, kept=not isinstance(expression, TupleExpr))
            case DictExpr(items=pairs):
                values = [self.value(one) for _, one in pairs]
                for one in values:
                    self.use(one)
                return Value(item=joined(values)) if values else NOTHING
            case ListComprehension(generator=inner) | SetComprehension(generator=inner):
                return self.value(inner)
            case GeneratorExpr(left_expr=element) | DictionaryComprehension(value=element):
                return self._comprehension(expression, element)
            case LambdaExpr():
                return self.define(expression)
            case AssignmentExpr(target=target, value=inner):
                value = self.value(inner)
                self.bind(target, value)
                return value
            case YieldExpr(expr=inner) | YieldFromExpr(expr=inner):
                value = self.value(inner)
                self.use(value)
                self.yielded.append(value)
                return NOTHING
        return self.value(getattr(expression, "expr", None))

    def arithmetic(self, node: Context, symbol: str, left: Expression, right: Expression) -> Value:
        """Return the result of an operator."""
        operands = [Operand(self.value(one), one) for one in (left, right)]
        values = [one.value for one in operands]
        if any(one.is_tensor for one in values):
            tensors = [one for one in operands if one.value.is_tensor]
            return self.operate(node, op_called(op_methods[symbol]), tensors)
        contents = [one for each in values if (one := content(each)) is not None]
        return Value(item=joined(contents)) if contents else NOTHING

    def truth(self, test: Expression) -> bool | None:
        """Return what a test of the tape gives, if that is known; None for others."""
        match test:
            case MemberExpr(expr=tensor, name="owns_tape"):
                state = self.value(tensor).ownership
                return None if state == "open" else state == "owned"
            case UnaryExpr(op="not", expr=inner):
                known = self.truth(inner)
                return None if known is None else not known
            case NameExpr(name="TYPE_CHECKING" | "MYPY"):
                return False
        self.value(test)
        return None

    def bind(self, target: Expression, value: Value) -> None:
        """Assign a value to a target."""
        match target:
            case NameExpr(node=Var() as variable):
                self.variables[variable] = called(value, variable.name)
            case TupleExpr(items=parts) | ListExpr(items=parts):
                self._unpack(parts, value)
            case StarExpr(expr=inner):
                self.bind(inner, value)
            case MemberExpr(expr=owner, name=name):
                self.hold(self.value(owner), name, value)
                # Elsewhere a gradient may be asked for.
                self.ask(value, None)
            case IndexExpr(base=NameExpr(node=Var() as variable)) if self._is_container(variable):
                self.use(value)
                held = self.variables[variable]
                several = joined([*(one for one in (content(held),) if one is not None), value])
                self.variables[variable] = Value(item=several)
            case IndexExpr(base=owner):
                self.value(owner)
                self.ask(value, None)

    def _is_container(self, variable: Var) -> bool:
        held = self.variables.get(variable)
        return held is not None and not held.is_tensor and held.type is None

    def hold(self, owner: Value, name: str, value: Value) -> None:
        """Take note of what an attribute is; a module's parts and parameters stay its own."""
        if owner.place is not None and not (is_model(owner.type) and value.place is not None):
            self._held[owner.place, name] = called(value, f"{owner.name}.{name}")

    def _unpack(self, targets: list[Expression], value: Value) -> None:
        items = value.items
        starred = any(isinstance(one, StarExpr) for one in targets)
        for number, target in enumerate(targets):
            if items is not None and len(items) == len(targets) and not starred:
                self.bind(target, items[number])
            else:
                self.bind(target, self.part(value, target, number))

    def part(self, container: Value, node: Context, step: Hashable | None = None) -> Value:
        """Return an item of a container, whichever it is.

        Args:
            container: a container, or a tensor, of which it is a slice, or one of the results.
            node: where it is taken out.
            step: which one; by default another one each time.
        """
        if container.is_tensor:
            return replace(container, name="")
        found = content(container)
        if found is None:
            return NOTHING
        return _placed(found, (*self.trail, node) if step is None else step)

    def _reference(self, name: RefExpr) -> Value:
        """Return what a name stands for, local or not."""
        node = name.node
        if node in self.variables:
            return self.variables[node]
        match node:
            case Var(type=type_):
                # A variable of the file, or of a function around this one.
                return declared(type_, Place(node), node.name)
            case FuncDef() | Decorator() | OverloadedFuncDef():
                known = self.method(node, None)
                return known or (Value(library=name) if name.fullname else NOTHING)
            case TypeInfo(fullname=fullname) if fullname == NONE_TAPE:
                return Value(is_kind=True)
        return NOTHING

    def method(self, node: SymbolNode | None, receiver: Value | None) -> Value | None:
        """Return a function or method as a value; None if it is none of this file."""
        known = node if isinstance(node, FuncDef | Decorator | OverloadedFuncDef) else None
        function = function_of(known)
        if function is None or not self._is_here(function):
            return None
        if function.is_static:
            receiver = None
        return Value(function=Function(function, receiver, self._around(function)))

    def _around(self, function: FuncItem) -> Variables | None:
        return None

    def _is_here(self, function: FuncDef) -> bool:
        module = function.info.module_name if function.info else ""
        if not module:
            module = function.fullname.rpartition(".")[0]
        return module in ("", self.tree.fullname)

    def _member(self, member: MemberExpr) -> Value:
        if isinstance(member.expr, RefExpr) and isinstance(member.expr.node, MypyFile):
            return self._reference(member)
        return self.attribute(self.value(member.expr), member.name, member)

    def attribute(self, owner: Value, name: str, node: Context) -> Value:
        """Return an attribute of a value."""
        if owner.is_tensor:
            if name == "tape_type":
                # Of its type only the tape is of interest.
                return Value(ownership=owner.ownership, is_kind=True)
            return NOTHING if name in _FACTS else replace(owner, name="")
        found = method_of(owner, name)
        match found:
            case Var():
                declared_ = field(owner, name, found)
                if owner.place is None or declared_.is_parameter:
                    return declared_
                return self._held.get((owner.place, name), declared_)
            case Decorator(func=function, var=Var(is_property=True)):
                # That of another file may come from the cache, without its body.
                is_here = self._is_here(function)
                result = self.run(node, Function(function, owner), {0: owner}) if is_here else None
                known = signatures(function.type)
                return (
                    declared(known[0].ret_type) if result is None and known else result or NOTHING
                )
            case FuncDef() | Decorator() | OverloadedFuncDef():
                method = self.method(found, owner)
                # The `forward` of a layer is called as the layer is.
                return method or (owner if name == "forward" and is_model(owner.type) else NOTHING)
            case None if owner.place is not None and name in _TRAINED and is_model(owner.type):
                # A module of which no more is known, as one of `modules()`.
                place, spelling = owner.place.within(name), f"{owner.name}.{name}"
                return Value(is_tensor=True, is_parameter=True, place=place, name=spelling)
        return NOTHING

    def _item(self, item: IndexExpr) -> Value:
        owner = self.value(item.base)
        index = self.value(item.index)
        if owner.is_tensor:
            tensors = [Operand(owner, item.base)]
            return self.operate(item, "getitem", tensors)
        if is_gradients(owner):
            self.ask_for(owner, index)
            return Value(is_tensor=True)
        step: Hashable = None
        match item.index:
            case IntExpr(value=number):
                if owner.items is not None and -len(owner.items) <= number < len(owner.items):
                    return owner.items[number]
                step = number
            case StrExpr(value=text):
                step = text
            case NameExpr(node=Var() as variable):
                step = variable
            case _ if owner.items is not None:
                # A slice of a display.
                return replace(owner, items=None, item=content(owner))
        key = key_of(item)
        part = self.part(owner, item, step)
        return part if key is None else called(part, spelled(key))

    def ask_for(self, grads: Value, tensor: Value) -> None:
        """Take note that the gradients of some tensors are looked up."""
        self.use(tensor)
        for one in flattened(tensor):
            self.keep(one)
        places = [one.place for one in flattened(tensor) if one.place is not None]
        if places:
            self.ask(grads, places)

    def _display(self, parts: list[Expression], *, kept: bool) -> Value:
        values = [self.value(one) for one in parts]
        if kept:
            for one in values:
                self.use(one)
        if any(isinstance(one, StarExpr) for one in parts):
            return Value(item=joined(one for each in values for one in (content(each) or each,)))
        return Value(items=tuple(values))

    def _comprehension(
        self, loops: GeneratorExpr | DictionaryComprehension, element: Expression
    ) -> Value:
        kept = dict(self.variables)
        found = joined(self._elements(loops, element, 0))
        self.use(found)
        self.variables = kept
        return Value(item=_in_container(found))

    def _elements(
        self, loops: GeneratorExpr | DictionaryComprehension, element: Expression, depth: int
    ) -> Iterator[Value]:
        """Yield what a comprehension makes, from one of its loops on."""
        if depth == len(loops.sequences):
            yield self.value(element)
            return
        for turn in self.turns(self.value(loops.sequences[depth]), loops):
            self.bind(loops.indices[depth], turn)
            for test in loops.condlists[depth]:
                self.value(test)
            yield from self._elements(loops, element, depth + 1)

    def turns(self, items: Value, loop: Context) -> list[Value]:
        """Return what a loop goes through: the items of a short display, or any item at once."""
        if items.items is not None and len(items.items) <= _SHORT:
            return list(items.items)
        return [self.part(items, loop)]

    @contextmanager
    def within(self, step: Hashable) -> Iterator[None]:
        """Mark what is made as made in a call, or a pass of a loop."""
        kept, self.trail = self.trail, (*self.trail, step)
        try:
            yield
        finally:
            self.trail = kept

    def receiver(self, function: FuncItem) -> Value | None:
        """Return the object whose method is looked at."""
        arguments = function.arguments
        return self.variables.get(arguments[0].variable) if arguments else None

    def super_method(self, expression: SuperExpr) -> Value | None:
        """Return a method of a base class, as of ``super().forward``."""
        function = next((one.function for one in reversed(self.calls)), None)
        info = expression.info
        if not isinstance(function, FuncDef) or not isinstance(info, TypeInfo):
            return None
        receiver = self.receiver(function)
        for base in info.mro[1:]:
            if expression.name in base.names:
                return self.method(base.names[expression.name].node, receiver)
        return None


def _placed(item: Value, step: Hashable) -> Value:
    """Return an item of which it is known now which one it is."""
    place = item.place
    if place is None or SOME_ITEM not in place.path:
        return item
    at = place.path.index(SOME_ITEM)
    path = (*place.path[:at], ("item", step), *place.path[at + 1 :])
    return replace(item, place=place._replace(path=path))


def _in_container(item: Value) -> Value:
    """Return a module as one of several that are made by the same line."""
    if item.place is None or item.place.model is None:
        return item
    place = item.place.within(SOME_ITEM)
    model = place.model
    if model is not None and model == len(item.place.path):
        place = place._replace(model=model + 1)
    return replace(item, place=place)


def instance_of(info: TypeInfo) -> Instance:
    """Return the type of the objects of a class, with its own type variables."""
    found = fill_typevars(info)
    return found if isinstance(found, Instance) else found.partial_fallback
