"""The one place that reads types: into kinds, dims and tensors, and dims back into types.

A kind leaves its parts open: a tensor is one whatever its dims, a tuple one whatever its items. A
known dim is written as a literal, a name, or ``Mul[H, K]``; equal ones are written alike, so that
mypy, which compares types by their parts, compares them by algebra.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Final, TypeVar

from mypy import types
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import TypeInfo, Var
from mypy.plugin import CheckerPluginInterface
from mypy.subtypes import is_equivalent, is_same_type, is_subtype
from mypy.typevars import fill_typevars

from tapetensor.mypy_plugin.names import (
    COMPUTED,
    MODULE,
    NONE_TAPE,
    OWNED_TAPE,
    TENSOR,
    TENSOR_BASE,
    class_named,
)
from tapetensor.rules.dims import ANY, INT, Atom, Dim, Dims, Open, Size, is_negative

_WORDS: Final = {
    "builtins.int": "an int",
    "builtins.bool": "a bool",
    "builtins.float": "a number",
    "builtins.complex": "a complex number",
    "builtins.tuple": "a tuple",
    "builtins.list": "a list",
    "typing.Sequence": "a list",
    "numpy.random._generator.Generator": "a numpy generator",
}


# A type of which nothing is known.
ANYTHING: Final = types.AnyType(types.TypeOfAny.special_form)


def instance_of(found: types.Type | None, *names: str) -> types.Instance | None:
    """Return a type if it is that of the objects of a class with one of these full names."""
    proper = types.get_proper_type(found)
    return proper if isinstance(proper, types.Instance) and proper.type.fullname in names else None


def is_any(found: types.Type | None) -> bool:
    """Tell whether a type is `Any`."""
    return isinstance(types.get_proper_type(found), types.AnyType)


def is_int(found: types.Type | None) -> bool:
    """Tell whether a type is `int`, be it that of a number which mypy remembers."""
    return instance_of(found, "builtins.int") is not None


def is_module(found: types.Type | None) -> bool:
    """Tell whether a type is that of a module."""
    proper = types.get_proper_type(found)
    return isinstance(proper, types.Instance) and proper.type.has_base(MODULE)


def has_dims(found: types.Type | None) -> bool:
    """Tell whether a type is that of a tensor, or a module, with type arguments."""
    proper = types.get_proper_type(found)
    if not isinstance(proper, types.Instance) or not proper.args:
        return False
    return proper.type.has_base(TENSOR_BASE) or is_module(proper)


def is_endless(found: types.Type | None) -> bool:
    """Tell whether a type is an alias that contains itself, of which the plugin says nothing."""
    return isinstance(found, types.TypeAliasType) and (found.alias is None or found.is_recursive)


def is_tensor(found: types.Type | None) -> bool:
    """Tell whether a type is that of a tensor, be it by the bound of a type variable."""
    proper = bounded(found)
    return isinstance(proper, types.Instance) and proper.type.has_base(TENSOR_BASE)


def bounded(found: types.Type | None) -> types.ProperType | None:
    """Return a type, or the bound of a type variable."""
    proper = types.get_proper_type(found)
    return (
        types.get_proper_type(proper.upper_bound)
        if isinstance(proper, types.TypeVarType)
        else proper
    )


def class_of(found: types.Type | None) -> TypeInfo | None:
    """Return the class of a value."""
    proper = bounded(found)
    return proper.type if isinstance(proper, types.Instance) else None


def members(found: types.Type | None) -> list[types.ProperType]:
    """Return the items of a union, or the type alone; nothing of None."""
    proper = types.get_proper_type(found)
    if isinstance(proper, types.UnionType):
        return [types.get_proper_type(one) for one in proper.items]
    return [] if proper is None else [proper]


def accepts(formal: types.Type, actual: types.Type) -> bool:
    """Tell whether a parameter may take a value of a type; True where nobody knows."""
    wanted, found = _open(formal), _open(actual)
    names = types.get_proper_type(formal), remembered(actual)
    if all(isinstance(one, types.LiteralType) and isinstance(one.value, str) for one in names):
        return names[0] == names[1]
    if isinstance(wanted, types.UnionType):
        return any(accepts(one, actual) for one in wanted.items)
    if isinstance(found, types.UnionType):
        return any(accepts(formal, one) for one in found.items)
    if isinstance(wanted, types.TypeType):
        return _is_class_of(found, _open(wanted.item))
    if isinstance(wanted, types.NoneType) or (
        isinstance(wanted, types.Instance) and not wanted.type.is_protocol
    ):
        return is_subtype(found, wanted)
    return True


def remembered(actual: types.Type | None) -> types.ProperType | None:
    """Return the literal that mypy remembers of a value, or its type."""
    found = types.get_proper_type(actual)
    known = found.last_known_value if isinstance(found, types.Instance) else None
    return found if known is None else known


def _is_class_of(found: types.ProperType, wanted: types.ProperType) -> bool:
    """Tell whether a value may be a class whose objects are of a kind."""
    if isinstance(found, types.FunctionLike):
        return found.is_type_obj() and is_subtype(_open(fill_typevars(found.type_object())), wanted)
    return not isinstance(found, types.Instance | types.NoneType) or (
        isinstance(found, types.Instance) and found.type.has_base("builtins.type")
    )


def kinds_in_words(formals: Sequence[types.Type]) -> str:
    """Return what the parameters of several overloads take: ``an int or a tuple``."""
    words: list[str] = []
    for one in formals:
        for item in members(_open(one)):
            is_word = isinstance(item, types.LiteralType) and isinstance(item.value, str)
            found = described(item) if is_word else _in_words(_open(item))
            if found not in (*words, "None"):
                words.append(found)
    if words[1:] and "something else" in words:
        words.remove("something else")
    if "a number" in words and "an int" in words:
        words.remove("an int")
    return " or ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)


def described(actual: types.Type) -> str:
    """Return what a value is: ``a str``, ``3``, ``the class ReLU``."""
    found = remembered(actual)
    if isinstance(found, types.LiteralType) and not found.is_enum_literal():
        return repr(found.value)
    if isinstance(found, types.FunctionLike):
        return f"the class {found.type_object().name}" if found.is_type_obj() else "a function"
    if instance_of(found, "builtins.float"):
        return "a float"
    return _in_words(_open(actual))


def _in_words(found: types.ProperType) -> str:
    if isinstance(found, types.NoneType):
        return "None"
    if isinstance(found, types.TypeType):
        item = _open(found.item)
        of_numpy = isinstance(item, types.Instance) and item.type.fullname.startswith("numpy.")
        return "a dtype such as np.float32" if of_numpy else "a class"
    if not isinstance(found, types.Instance):
        return "something else"
    if found.type.fullname in (TENSOR, TENSOR_BASE):
        return "a tensor"
    article = "an" if found.type.name[0].lower() in "aeiou" else "a"
    return _WORDS.get(found.type.fullname, f"{article} {found.type.name}")


def _open(found: types.Type) -> types.ProperType:
    """Return a type with everything within it open."""
    proper = types.get_proper_type(found)
    if isinstance(proper, types.TypeVarType):
        return ANYTHING if proper.values else _open(proper.upper_bound)
    if isinstance(proper, types.LiteralType):
        return proper.fallback
    if isinstance(proper, types.TupleType):
        proper = proper.partial_fallback
    if isinstance(proper, types.Instance):
        return proper.copy_modified(args=[ANYTHING] * len(proper.args), last_known_value=None)
    return proper


def write_known(dim: Dim, integer: types.Instance) -> types.Type:
    """Return a dim as a type; Any for an open one, and where no type can say it."""
    if dim.literal is not None:
        return types.LiteralType(dim.literal, integer)
    # A size without names may be half of 3, of which nothing is known but that it raises.
    if isinstance(dim, Open) or not dim.atoms:
        return ANYTHING
    return _sum(dim, integer) or ANYTHING


def _sum(dim: Size, integer: types.Instance) -> types.Type | None:
    first, *rest = dim.products
    total = _product(*first, integer)
    for factor, above, below in rest:
        name = "Add" if factor > 0 else "Sub"
        total = _computed(name, total, _product(abs(factor), above, below, integer))
    return total


def _product(
    factor: Fraction, above: list[Atom], below: list[Atom], integer: types.Instance
) -> types.Type | None:
    over: list[types.Type | None] = [_name(atom) for atom in above]
    if factor.numerator != 1 or not over:
        over.append(types.LiteralType(factor.numerator, integer))
    under: list[types.Type | None] = [_name(atom) for atom in below]
    if factor.denominator != 1:
        under.append(types.LiteralType(factor.denominator, integer))
    found = reduce(lambda lhs, rhs: _computed("Mul", lhs, rhs), over)
    for divisor in under:
        found = _computed("Div", found, divisor)
    return found


def _name(atom: Atom) -> types.Type | None:
    return atom.origin if isinstance(atom.origin, types.Type) else None


def _computed(name: str, lhs: types.Type | None, rhs: types.Type | None) -> types.Type | None:
    info = class_named(f"{COMPUTED}.{name}")
    if info is None or lhs is None or rhs is None:
        return None
    return types.Instance(info, [lhs, rhs])


# Computed dims are spelled with these.
OPERATIONS: Final[dict[str, Callable[[Size, Size], Size | None]]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": operator.truediv,
}
_MOST_PRODUCTS = 32

ReadT = TypeVar("ReadT")


class UndecidedError(Exception):
    """Something is not known, so plain typing decides."""


def known(found: ReadT | None) -> ReadT:
    """Return what has been read; raise UndecidedError where that is nothing."""
    if found is None:
        raise UndecidedError
    return found


def all_known(found: Iterable[ReadT | None]) -> tuple[ReadT, ...] | None:
    """Return what has been read; None where some of it is nothing."""
    listed = list(found)
    read = tuple(one for one in listed if one is not None)
    return read if len(read) == len(listed) else None


@dataclass(frozen=True)
class Operand:
    """A tensor, read.

    Attributes:
        shape: its dims; None where they are not all known to be there, one by one.
        ending: those of its last dims that are.
        tape: its tape state.
        dtype: its dtype.
        fits_all: whether its shape is, or has in it, an `Any` for dims of any number. That fits
            whatever an overload wants, so what plain typing takes from the other operands for the
            shape of a result need not be true.
    """

    shape: Dims | None
    ending: Dims
    tape: types.Type
    dtype: types.Type
    fits_all: bool

    @property
    def dims(self) -> Dims:
        """The shape, where it is known; else this raises UndecidedError."""
        return known(self.shape)


def read_tensor(found: types.Type | None) -> Operand | None:
    """Return what a type says of a tensor, or None if it is not that of one."""
    proper = types.get_proper_type(found)
    if not isinstance(proper, types.Instance) or not proper.type.has_base(TENSOR_BASE):
        return None
    base = next(one for one in proper.type.mro if one.fullname in (TENSOR, TENSOR_BASE))
    shape, tape, dtype, *_ = map_instance_to_supertype(proper, base).args
    rank, ending = read_shape(shape), _ending(shape)
    tape, dtype = map(types.get_proper_type, (tape, dtype))
    return Operand(None if rank is None else ending, ending, tape, dtype, _fits_all(shape))


def _ending(shape: types.Type) -> Dims:
    """Return the last dims of a shape, up to one that is not known to be there."""
    proper, ending = types.get_proper_type(shape), list[Dim]()
    for item in reversed(proper.items if isinstance(proper, types.TupleType) else []):
        dim = read_dim(item)
        if dim is None:
            break
        # No tensor has a size below 0: plain typing takes the -1 of a reshape for one.
        ending.insert(0, ANY if is_negative(dim) else dim)
    return tuple(ending)


def shape_of(found: types.Type | None) -> Dims | None:
    """Return the dims of a tensor; None where they are not known, and of what is none."""
    tensor = read_tensor(found)
    return None if tensor is None else tensor.shape


def may_have_any_shape(found: types.Type | None) -> bool:
    """Tell whether an argument may be, or hold, a tensor whose shape fits whatever is wanted."""
    proper = types.get_proper_type(found)
    if isinstance(proper, types.UnionType | types.TupleType):
        return any(map(may_have_any_shape, proper.items))
    tensor = read_tensor(proper)
    return isinstance(proper, types.AnyType) or (tensor is not None and tensor.fits_all)


def _fits_all(shape: types.Type) -> bool:
    proper = types.get_proper_type(shape)
    if isinstance(proper, types.TupleType):
        return any(
            isinstance(one, types.UnpackType) and _fits_all(one.type) for one in proper.items
        )
    several = instance_of(proper, "builtins.tuple")
    return is_any(proper if several is None else several.args[0])


def read_shape(found: types.Type | None) -> Dims | None:
    """Return the dims of a shape; None where its rank is open."""
    proper = types.get_proper_type(found)
    return all_known(map(read_dim, proper.items)) if isinstance(proper, types.TupleType) else None


def read_dim(found: types.Type) -> Dim | None:
    """Return a dim; None for a type that is not one."""
    proper = types.get_proper_type(found)
    # mypy did not find out: it may be anything too.
    if isinstance(proper, types.AnyType | types.UninhabitedType):
        return ANY
    number = read_int(proper)
    if number is not None:
        return Size.of(number)
    if isinstance(proper, types.TypeVarType):
        return Size.named(Atom((proper.id.raw_id, proper.id.namespace), proper.name, proper))
    if isinstance(proper, types.Instance):
        if is_int(proper) or proper.type.has_base("enum.IntEnum"):
            return INT
        if is_computed(proper):
            return _computed_dim(proper)
        if proper.type.is_newtype and proper.type.has_base("builtins.int"):
            return Size.named(Atom(proper.type.fullname, proper.type.name, proper))
    return None


def is_computed(found: types.Type) -> bool:
    """Tell whether a type is a computed dim."""
    proper = types.get_proper_type(found)
    return isinstance(proper, types.Instance) and proper.type.fullname.startswith(COMPUTED)


def _computed_dim(found: types.Instance) -> Dim | None:
    """Return the dim that ``Mul[H, K]`` or the like stands for."""
    if len(found.args) == 1:
        return read_dim(found.args[0])
    lhs, rhs = [read_dim(one) for one in found.args]
    if lhs is None or rhs is None:
        return None
    if isinstance(lhs, Open) or isinstance(rhs, Open):
        return ANY
    result = OPERATIONS[found.type.name](lhs, rhs)
    # Nobody writes a longer one, and its powers would take for ever.
    return ANY if result is None or len(result.products) > _MOST_PRODUCTS else result


def read_int(found: types.Type | None) -> int | None:
    """Return the number that a type names; None where it names none."""
    return read_literal(found, int)


def read_literal(found: types.Type | None, kind: type[ReadT]) -> ReadT | None:
    """Return the value of a kind that a type names; None where it names none."""
    proper = remembered(found)
    if isinstance(proper, types.LiteralType) and proper.is_enum_literal() and kind is int:
        # The member of an `IntEnum` is the int that it is given.
        member = proper.fallback.type.get(str(proper.value))
        given = member.node.type if member is not None and isinstance(member.node, Var) else None
        is_number = proper.fallback.type.has_base("enum.IntEnum")
        return read_literal(given, kind) if is_number else None
    if not isinstance(proper, types.LiteralType) or not isinstance(proper.value, kind):
        return None
    # A bool is an int too, and the value of an enum is kept as a str.
    return proper.value if proper.fallback.type.fullname == f"builtins.{kind.__name__}" else None


def read_ints(found: types.Type | None) -> tuple[int, ...] | None:
    """Return the numbers of a tuple; None where one is open."""
    proper = types.get_proper_type(found)
    return all_known(map(read_int, proper.items)) if isinstance(proper, types.TupleType) else None


def on_axes(found: types.Type, axes: int) -> list[types.Type]:
    """Return the types of the numbers of a window, one of which may hold for all axes."""
    proper = types.get_proper_type(found)
    return [*proper.items] if isinstance(proper, types.TupleType) else [proper] * axes


def is_absent(found: types.Type | None) -> bool:
    """Tell whether an argument is not given, or is None."""
    return found is None or isinstance(types.get_proper_type(found), types.NoneType)


def merged(operands: Sequence[Operand]) -> tuple[types.Type, types.Type]:
    """Return the tape state and the dtype of what is made of operands, if they share one."""
    if not operands:
        raise UndecidedError
    tape, dtype = operands[0].tape, operands[0].dtype
    for one in operands[1:]:
        tape, dtype = _merged_tape(tape, one.tape), common_dtype(dtype, one.dtype)
    return tape, dtype


def _merged_tape(lhs: types.Type, rhs: types.Type) -> types.Type:
    if is_same_type(lhs, rhs) or instance_of(rhs, NONE_TAPE):
        return lhs
    if instance_of(lhs, NONE_TAPE) or instance_of(rhs, OWNED_TAPE):
        return rhs
    if instance_of(lhs, OWNED_TAPE) and isinstance(rhs, types.TypeVarType | types.AnyType):
        return lhs
    if is_any(lhs) or is_any(rhs):
        return ANYTHING
    raise UndecidedError


def common_dtype(lhs: types.Type, rhs: types.Type) -> types.Type:
    """Return the dtype that two operands share; raise UndecidedError if they share none."""
    # `np.bool_` in a call is a `bool[Any]`, and in an annotation a `bool[bool]`.
    if is_any(lhs) or is_any(rhs) or is_equivalent(lhs, rhs):
        return lhs
    raise UndecidedError


def is_floating(dtype: types.Type) -> bool:
    """Tell whether a dtype is a floating one, or taken to be."""
    proper = bounded(dtype)
    is_float = isinstance(proper, types.Instance) and proper.type.has_base("numpy.floating")
    return is_float or is_any(proper)


def is_plain(tape: types.Type) -> bool:
    """Tell whether a tape state is NoneTape, or taken to be."""
    return instance_of(tape, NONE_TAPE) is not None or is_any(tape)


def write_tensor(
    info: TypeInfo,
    shape: Dims | None,
    tape: types.Type,
    dtype: types.Type,
    api: CheckerPluginInterface,
) -> types.Instance:
    """Return a tensor type; of an open shape for None."""
    if shape is None:
        return types.Instance(info, [ANYTHING, tape, dtype])
    integer = api.named_generic_type("builtins.int", [])
    dims = [integer if dim is INT else write_known(dim, integer) for dim in shape]
    # The fallback joins its items; for dims that is always an int.
    fallback = api.named_generic_type("builtins.tuple", [integer])
    return types.Instance(info, [types.TupleType(dims, fallback), tape, dtype])
