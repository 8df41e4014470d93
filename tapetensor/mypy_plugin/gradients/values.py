"""What is known of a value: the parameters it was computed from, and those its tape has met."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from mypy.nodes import Context, FuncItem, RefExpr
from mypy.types import ProperType

from tapetensor.mypy_plugin.gradients.places import Place

# Whether a tensor owns a tape: "open" is what only the choice of a type variable says.
Ownership: TypeAlias = Literal["plain", "open", "owned"]
# Functions of the file that are called, and where in them something happens.
Inside: TypeAlias = tuple[tuple[FuncItem, Context], ...]
# Tells one owner of a tape from all others.
Token: TypeAlias = Hashable
ItemT = TypeVar("ItemT")
# A value that is made of more than so many parameters is taken to be made of these.
_MOST = 100


class Origin(NamedTuple):
    """A parameter, or a layer, from which a plain value was computed.

    Attributes:
        place: the parameter or layer.
        name: how it is spelled.
        why: the first step, which is not recorded.
        cure: what to write, where ``{tape}`` is the type of the tape that it meets.
        constant: what to write for a constant.
        ran: whether a whole layer or model was run, as a teacher is, and not an op.
    """

    place: Place
    name: str
    why: str
    cure: str
    constant: str
    ran: bool


class Lost(NamedTuple):
    """The op at which a tape meets a value with an origin.

    Attributes:
        node: the op; for one in a function that is called, the call.
        op: its name.
        origin: what gets no gradient here.
        tape: how the type of the tape is spelled.
        note: what else is to be said of that.
        by: where it is, for an op in a function that is called.
        inside: the functions that are called up to there, and the place within each.
        traced: whether the value itself got the tape, which comes too late for its origin.
    """

    node: Context
    op: str
    origin: Origin
    tape: str
    note: str
    by: str
    inside: Inside
    traced: bool


class Lent(NamedTuple):
    """A second handle of a tensor that owns a tape.

    Attributes:
        node: where it is taken; in a function that is called, the call.
        op: how it is taken.
        token: the owner.
        name: how the owner is spelled; empty for one without a name.
        inside: the functions that are called up to there, and the place within each.
    """

    node: Context
    op: str
    token: Token
    name: str
    inside: Inside


@dataclass(frozen=True, eq=False)
class Function:
    """A function, with the object that it is a method of, and the variables around it."""

    item: FuncItem
    receiver: Value | None = None
    around: dict[Hashable, Value] | None = None


@dataclass(frozen=True)
class Value:
    """What is known of a value; of most things nothing.

    Attributes:
        type: its declared type, where it counts: of a module, an optimizer, ...
        name: how it is spelled.
        place: the module or parameter that it is.
        is_tensor: whether it is a tensor or a tape.
        is_parameter: whether it is a parameter of a module, as it is.
        ownership: whether it owns a tape.
        origins: of a plain tensor, what it was computed from.
        met: the parameters and modules that its tape has met.
        noted: what happened on the way that gradients go back.
        tokens: the owners that it may be, where they are results of ops.
        items: what a tuple or list display holds.
        item: what any item of a container is.
        parts: the modules and parameters that a module was given when it was made, or whose
            gradients a store of them has.
        function: what is called.
        library: the name of a function of another file.
        is_kind: whether it is the kind of a tape, which `ownership` says.
    """

    type: ProperType | None = None
    name: str = ""
    place: Place | None = None
    is_tensor: bool = False
    is_parameter: bool = False
    ownership: Ownership = "plain"
    origins: tuple[Origin, ...] = ()
    met: tuple[Place, ...] = ()
    noted: tuple[Lost | Lent, ...] = ()
    tokens: tuple[Token, ...] = ()
    items: tuple[Value, ...] | None = None
    item: Value | None = None
    parts: tuple[Place, ...] = ()
    function: Function | None = None
    library: RefExpr | None = None
    is_kind: bool = False

    @property
    def owns(self) -> bool:
        """Whether it owns a tape, or may."""
        return self.ownership != "plain"


NOTHING = Value()


def together(parts: Iterable[Iterable[ItemT]]) -> tuple[ItemT, ...]:
    """Return all that is in several collections, once, in their order."""
    return tuple(dict.fromkeys(one for part in parts for one in part))[:_MOST]


def joined(values: Iterable[Value]) -> Value:
    """Return what is known of a value that is one of several."""
    several = list(dict.fromkeys(values))
    if not several:
        return NOTHING
    first, *others = several
    if not others:
        return first
    tuples = [one.items for one in several]
    items = None
    if all(one is not None and len(one) == len(tuples[0] or ()) for one in tuples):
        items = tuple(joined(each) for each in zip(*(one or () for one in tuples), strict=True))
    contents = [one for each in several if (one := content(each)) is not None]
    return Value(
        type=next((one.type for one in several if one.type is not None), None),
        name=first.name,
        place=first.place if all(one.place == first.place for one in others) else None,
        is_tensor=any(one.is_tensor for one in several),
        is_parameter=all(one.is_parameter and one.place == first.place for one in several),
        ownership=_ownership(several),
        origins=together(one.origins for one in several),
        met=together(one.met for one in several),
        noted=together(one.noted for one in several),
        tokens=together(one.tokens for one in several),
        parts=together(one.parts for one in several),
        items=items,
        item=joined(contents) if contents and items is None else None,
        function=first.function if all(one.function == first.function for one in others) else None,
        library=first.library if all(one.library is first.library for one in others) else None,
        is_kind=all(one.is_kind for one in several),
    )


def _ownership(values: list[Value]) -> Ownership:
    states = {one.ownership for one in values}
    return "owned" if "owned" in states else "open" if "open" in states else "plain"


def content(container: Value) -> Value | None:
    """Return what any item of a container is; None if it is none, or empty."""
    if container.items:
        return joined(container.items)
    return container.item


def flattened(value: Value) -> list[Value]:
    """Return the tensors in an argument: itself, or what a tuple, list or dict holds."""
    if value.items is not None:
        return [one for item in value.items for one in flattened(item)]
    return [value] if value.item is None else flattened(value.item)


def called(value: Value, name: str) -> Value:
    """Return a value under a name, if it has none so far."""
    return value if value.name or value.place is None else replace(value, name=name)
