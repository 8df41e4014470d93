"""Which variable an expression names: the identity by which a moved tensor is followed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from mypy.nodes import (
    AssertTypeExpr,
    AssignmentExpr,
    AwaitExpr,
    CallExpr,
    CastExpr,
    ComparisonExpr,
    ConditionalExpr,
    DictExpr,
    DictionaryComprehension,
    Expression,
    GeneratorExpr,
    IndexExpr,
    IntExpr,
    LambdaExpr,
    ListComprehension,
    ListExpr,
    MemberExpr,
    NameExpr,
    OpExpr,
    RefExpr,
    RevealExpr,
    SetComprehension,
    SetExpr,
    SliceExpr,
    StarExpr,
    StrExpr,
    SuperExpr,
    TupleExpr,
    TypeInfo,
    UnaryExpr,
    Var,
    YieldExpr,
    YieldFromExpr,
)

from tapetensor.mypy_plugin.names import ASKS_FOR_TAPE, IS_TRAINING, NONE_TAPE, OWNED_TAPE

# ("name", Var), ("member", key, name) or ("item", key, index): equal for equal spellings. An index
# is a constant, the key of a variable, ("last", that key) of what it counts from the end, or one of
# those below. What a call has returned last is
# ("name", CallExpr): a variable that is assigned where the call is made, and has no other name.
Key: TypeAlias = tuple[Any, ...]
Root: TypeAlias = Var | CallExpr | TypeInfo


class Each:
    """The index of all items of a container at once."""


class Append:
    """The index of what is appended: a new item, which makes others the last ones."""


class Passed:
    """The index of an item that is met, or put into a container, at one place of the program.

    The item is another one each time that execution comes there, unlike what stands under a
    constant index; of all that is known of it, it is in the container.
    """


class Chosen(Passed):
    """The index of an item that is picked out of all that there are."""


class Shuffle:
    """The index of any item where items go, or change places, and no others come."""


class Fields(NamedTuple):
    """The name of all attributes of a record, or items of a dict or list, at once, but for some.

    Attributes:
        others: the names that are not meant.
        side: of a list the items that are counted from the start (1), or from the end (-1).
    """

    others: frozenset[str | int] = frozenset()
    side: int = 0

    def have(self, index: object) -> bool:
        """Tell whether an index is among those that are meant."""
        if self.side:
            return isinstance(index, int) and (index < 0) == (self.side < 0)
        return isinstance(index, int | str) and index not in self.others


EACH: Final = Each()
APPEND: Final = Append()
SHUFFLE: Final = Shuffle()


def item_of(base: Key, index: object) -> Key:
    """Return the key of an item; what is assigned to may be that of None, any item."""
    return ("item", base, index)


def key_of(expression: Expression | None, *, calls: bool = False) -> Key | None:
    """Return the key of a name, an attribute of one or an item of one, or None.

    Args:
        expression: what is read.
        calls: whether the result of a call is a name, too.
    """
    match expression:
        case NameExpr(node=(Var() | TypeInfo()) as variable):
            # None is no variable.
            is_builtin = expression.fullname.startswith("builtins.")
            return None if is_builtin else ("name", variable)
        case MemberExpr(expr=inner, name=name):
            base = key_of(inner, calls=calls)
            return None if base is None else ("member", base, name)
        case IndexExpr(base=inner, index=index):
            base, item = key_of(inner, calls=calls), index_of(index)
            return None if base is None or item is None else ("item", base, item)
        case (
            CastExpr(expr=inner)
            | AssertTypeExpr(expr=inner)
            | RevealExpr(expr=inner)
            | AssignmentExpr(target=inner)
            | CallExpr(analyzed=(CastExpr() | AssertTypeExpr()) as inner)
        ):
            return key_of(inner, calls=calls)
        case (CallExpr() as call) | AwaitExpr(expr=CallExpr() as call) if calls:
            return ("name", call)
    return None


def place(expression: Expression | None) -> Key | None:
    """Return the key of a name, the result of a call, or a part of one; None for other values."""
    return key_of(expression, calls=True)


def index_of(index: Expression) -> int | str | Key | None:
    """Return what an index says of an item, or None."""
    match index:
        case NameExpr(node=Var() as variable):
            return ("name", variable)
        case IntExpr(value=number):
            return number
        case StrExpr(value=text):
            return text
        case UnaryExpr(op="-", expr=IntExpr(value=number)):
            return -number
        case OpExpr(op="-", left=left, right=NameExpr(node=Var() as variable)) if index_of(
            left
        ) == -1 or _is_last(left):
            return ("last", ("name", variable))
        case (
            OpExpr(op="-", left=UnaryExpr(op="-", expr=inner), right=IntExpr(value=1))
            | UnaryExpr(op="-", expr=OpExpr(op="+", left=inner, right=IntExpr(value=1)))
        ) if (counter := key_of(inner)) is not None and counter[0] == "name":
            return ("last", counter)
    return None


def _is_last(index: Expression) -> bool:
    """Tell whether an index is that of the last item of a list, as counted from the first."""
    match index:
        case OpExpr(
            op="-",
            left=CallExpr(callee=RefExpr(fullname="builtins.len")),
            right=IntExpr(value=1),
        ):
            return True
    return False


def spelled(key: Key) -> str:
    """Return a key as its user writes it."""
    if key[0] == "name":
        if isinstance(key[1], CallExpr):
            return f"{_called(key[1].callee)}({'...' if key[1].args else ''})"
        # mypy puts a mark behind the name of a variable that gets another type.
        name: str = key[1].name
        return name.rstrip("'")
    if key[0] == "member":
        return f"{spelled(key[1])}.{key[2]}"
    if key[0] == "last":
        return f"-1 - {spelled(key[1])}"
    if isinstance(key[2], Each):
        return spelled(key[1])
    index = spelled(key[2]) if isinstance(key[2], tuple) else repr(key[2])
    return f"{spelled(key[1])}[{index}]"


def _called(callee: Expression) -> str:
    key = place(callee)
    if key is not None:
        return spelled(key)
    return callee.name if isinstance(callee, MemberExpr | NameExpr | SuperExpr) else "the call"


def prefixes(key: Key) -> Iterator[Key]:
    """Yield the key and what it is read from: assigning to any of them makes it another value."""
    yield key
    while key[0] != "name":
        if key[0] == "item" and isinstance(key[2], tuple) and not isinstance(key[2], Fields):
            yield from prefixes(key[2])
        key = key[1]
        yield key


def is_constant(key: Key) -> bool:
    """Tell whether a key names the same value whenever execution comes by, if nothing is assigned.

    What is met at one place is another item in each pass of a loop.
    """
    return not any(part[0] == "item" and isinstance(part[2], Passed) for part in prefixes(key))


def indices_in(key: Key) -> Iterator[Key]:
    """Yield the variables that a key is read by as indices."""
    for part in prefixes(key):
        if part[0] == "item" and isinstance(part[2], tuple) and not isinstance(part[2], Fields):
            yield part[2]


def with_indices(key: Key, known: Mapping[Key, object]) -> Key | None:
    """Return a key with the variables that are its indices replaced; None if one is not known."""
    if key[0] == "name":
        return key
    inner = with_indices(key[1], known)
    index = key[2]
    if key[0] == "item" and isinstance(index, tuple) and not isinstance(index, Fields):
        index = known.get(index)
    return None if inner is None or index is None else (key[0], inner, index)


def has_variable_index(key: Key) -> bool:
    """Tell whether a key is read by an index that is a variable, which only its function knows."""
    return any(True for _ in indices_in(key))


def replaced(key: Key, part: Key, by: Key) -> Key | None:
    """Return the key with a part of it replaced, or None if it has no such part."""
    if key == part:
        return by
    if key[0] == "name":
        return None
    inner = replaced(key[1], part, by)
    return None if inner is None else (key[0], inner, *key[2:])


def covers(key: Key, part: Key) -> bool:
    """Tell whether a key names a value that another one names: all items are any of them."""
    if key == part:
        return True
    if key[0] == "name" or key[0] != part[0] or (key[2] != part[2] and key[2] is not EACH):
        return False
    return covers(key[1], part[1])


def taken_from(key: Key, part: Key, by: Key) -> Key | None:
    """Return the key with a part replaced, which may be an item of the containers that it names.

    What is said of all items is said of each of them.
    """
    if covers(key, part):
        return by
    inner = None if key[0] == "name" else taken_from(key[1], part, by)
    return None if inner is None else (key[0], inner, *key[2:])


def may_be(stored: Key, key: Key) -> bool:
    """Tell whether assigning to one key may give another one a new value.

    Two spellings may mean one object: an attribute of one name is taken for that of any object.
    """
    if stored[0] != key[0] or stored[0] == "name":
        return stored == key
    if stored[0] == "member":
        return bool(stored[2] == key[2])
    return stored[2] is None or not _differ(stored[2], key[2])


def _differ(stored: object, other: object) -> bool:
    """Tell whether to assign to the item of one index leaves that of another as it is."""
    if isinstance(stored, Shuffle):
        return other is EACH
    if isinstance(stored, Append):
        return not isinstance(other, Chosen) and not (isinstance(other, int) and other < 0)
    if isinstance(stored, Passed):
        return stored is not other
    if isinstance(stored, int) and isinstance(other, int) and (stored < 0) != (other < 0):
        return False
    return isinstance(stored, int | str) and isinstance(other, int | str) and stored != other


def root(key: Key) -> Root:
    """Return the variable that a key starts from, or the call or class."""
    while key[0] != "name":
        key = key[1]
    start: Root = key[1]
    return start


def root_name(key: Key) -> str:
    """Return the name of the variable that a key starts from; an empty one for a call."""
    start = root(key)
    return start.name if isinstance(start, Var) else ""


def children(expression: Expression) -> Iterator[Expression]:
    """Yield the direct parts of an expression in the order in which Python evaluates them.

    Expressions that evaluate their parts more than once, later or not always are not asked for.
    """
    match expression:
        case CallExpr(callee=callee, args=args):
            yield callee
            yield from args
        case OpExpr(left=left, right=right):
            yield left
            yield right
        case IndexExpr(base=base, index=index):
            yield base
            yield index
        case (
            ComparisonExpr(operands=items)
            | ListExpr(items=items)
            | TupleExpr(items=items)
            | SetExpr(items=items)
        ):
            yield from items
        case DictExpr(items=pairs):
            for name, value in pairs:
                if name is not None:
                    yield name
                yield value
        case SliceExpr(begin_index=begin, end_index=end, stride=stride):
            yield from (one for one in (begin, end, stride) if one is not None)
        case AssignmentExpr(value=value):
            yield value
        case (
            MemberExpr(expr=inner)
            | UnaryExpr(expr=inner)
            | StarExpr(expr=inner)
            | AwaitExpr(expr=inner)
            | CastExpr(expr=inner)
            | AssertTypeExpr(expr=inner)
            | RevealExpr(expr=inner)
            | YieldExpr(expr=inner)
            | YieldFromExpr(expr=inner)
        ):
            if inner is not None:
                yield inner


def mentions(*expressions: Expression | None) -> frozenset[Key]:
    """Return the keys of everything that the expressions read; functions that they call count."""
    found: set[Key] = set()
    pending = [one for one in expressions if one is not None]
    while pending:
        one = pending.pop()
        key = key_of(one)
        if isinstance(one, AssignmentExpr):
            pending.append(one.value)
        if isinstance(one, NameExpr) and one.fullname.startswith("builtins."):
            continue
        if key is not None:
            found.update(prefixes(key))
        elif isinstance(one, NameExpr) and one.node:
            found.add(("name", one.node))
        elif not isinstance(one, LambdaExpr):
            pending.extend(parts(one))
    return frozenset(found)


def asks_for_tape(expression: Expression) -> bool:
    """Tell whether an expression asks if a tensor owns a tape."""
    match expression:
        case MemberExpr(name="owns_tape"):
            return True
        case ComparisonExpr(operands=operands):
            return any(isinstance(one, MemberExpr) and one.name == "tape_type" for one in operands)
        case CallExpr(callee=RefExpr(fullname=name)) if name in (IS_TRAINING, ASKS_FOR_TAPE):
            return True
        case CallExpr(callee=NameExpr(name="isinstance"), args=[_, kind]):
            return any(
                isinstance(one, RefExpr) and one.fullname in (NONE_TAPE, OWNED_TAPE)
                for one in (kind, *parts(kind))
            )
    return False


def has_call(expression: Expression) -> bool:
    """Tell whether evaluating an expression calls anything."""
    return isinstance(expression, CallExpr) or any(map(has_call, parts(expression)))


def parts(expression: Expression) -> Iterator[Expression]:
    """Yield the parts of an expression, those that are evaluated later or not always included."""
    match expression:
        case ConditionalExpr(cond=condition, if_expr=yes, else_expr=no):
            yield from (condition, yes, no)
        case ListComprehension(generator=generator) | SetComprehension(generator=generator):
            yield generator
        case GeneratorExpr() | DictionaryComprehension():
            if isinstance(expression, GeneratorExpr):
                yield expression.left_expr
            else:
                # The key is None in mypy 2.4: {**each for each in ...}.
                yield from filter(None, (expression.key, expression.value))
            yield from expression.sequences
            yield from (one for conditions in expression.condlists for one in conditions)
        case _:
            yield from children(expression)
