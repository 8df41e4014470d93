"""Dims as an algebra: sizes, names and what is computed from them, compared by value.

A known dim is a polynomial over atoms (type variables and nominal dims) in which an atom may have a
negative power, so that quotients are sizes too. Its normal form is unique: however a product of
dims was split, and in whatever order, equal dims compare equal. Quotients are taken to be exact, as
the reshape that they come from checks at run time.

Nothing in here knows of mypy: an atom carries its type without looking at it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from functools import reduce
from typing import Final, TypeAlias

from typing_extensions import override


@dataclass(frozen=True)
class Atom:
    """A dim with a name and without a size: a type variable or a nominal dim.

    Args:
        key: what tells it from others.
        name: how users write it.
        origin: the type that it was read from.
    """

    key: Hashable
    name: str = field(compare=False)
    origin: object = field(compare=False, default=None)


# The powers of the atoms in a product, and the factor of each product in a sum.
Powers: TypeAlias = frozenset[tuple[Atom, int]]
Terms: TypeAlias = dict[Powers, Fraction]
# A factor, the atoms above the line and those below it, one as often as its power.
Product: TypeAlias = tuple[Fraction, list[Atom], list[Atom]]

_UNIT: Powers = frozenset()


class Size:
    """A known dim, in its normal form."""

    __slots__ = ("_terms",)

    def __init__(self, terms: Terms) -> None:
        self._terms = {powers: factor for powers, factor in terms.items() if factor}

    @classmethod
    def of(cls, value: int | Fraction) -> Size:
        """Return a literal size."""
        return cls({_UNIT: Fraction(value)})

    @classmethod
    def named(cls, atom: Atom) -> Size:
        """Return a dim that has a name."""
        return cls({frozenset({(atom, 1)}): Fraction(1)})

    @property
    def literal(self) -> int | None:
        """The size, if it is a literal one."""
        factor = self._terms.get(_UNIT)
        if factor is None or len(self._terms) > 1:
            return None if self._terms else 0
        return factor.numerator if factor.denominator == 1 else None

    @property
    def atom(self) -> Atom | None:
        """The name, if it is nothing but a name."""
        alone = [atom for atom in self.atoms if self == Size.named(atom)]
        return alone[0] if alone else None

    @property
    def number(self) -> Fraction:
        """The constant that is added to the products of names."""
        return self._terms.get(_UNIT, Fraction(0))

    @property
    def is_sum(self) -> bool:
        """Whether it is at least 0 whatever the sizes of the names: nothing is taken away."""
        return all(factor > 0 for factor in self._terms.values())

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number whatever the sizes of the names."""
        return all(
            factor.denominator == 1 and all(power > 0 for _, power in powers)
            for powers, factor in self._terms.items()
        )

    @property
    def atoms(self) -> frozenset[Atom]:
        """The names that it is computed from."""
        return frozenset(atom for powers in self._terms for atom, _ in powers)

    @property
    def products(self) -> list[Product]:
        """The products that it is the sum of, in an order that is the same for equal dims."""
        found: list[Product] = []
        for powers, factor in self._terms.items():
            ordered = sorted(powers, key=lambda one: (one[0].name, str(one[0].key)))
            above = [atom for atom, power in ordered for _ in range(power)]
            below = [atom for atom, power in ordered for _ in range(-power)]
            found.append((factor, above, below))
        found.sort(key=_order)
        # None is to begin with what is taken away: N - M for -M + N.
        first = next((one for one in found if one[0] > 0), None)
        return sorted(found, key=lambda one: one is not first)

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self._terms == other._terms

    @override
    def __hash__(self) -> int:
        return hash(frozenset(self._terms.items()))

    def __add__(self, other: Size) -> Size:
        terms = dict(self._terms)
        for powers, factor in other._terms.items():
            terms[powers] = terms.get(powers, Fraction(0)) + factor
        return Size(terms)

    def __sub__(self, other: Size) -> Size:
        return self + other * Size.of(-1)

    def __mul__(self, other: Size) -> Size:
        terms: Terms = {}
        for left, one in self._terms.items():
            for right, two in other._terms.items():
                powers = _product(left, right)
                terms[powers] = terms.get(powers, Fraction(0)) + one * two
        return Size(terms)

    def __truediv__(self, other: Size) -> Size | None:
        """Return the quotient; None where it is no polynomial of the atoms."""
        if len(other._terms) == 1:
            ((powers, factor),) = other._terms.items()
            inverse = frozenset((atom, -power) for atom, power in powers)
            return self * Size({inverse: 1 / factor})
        ratio = self.ratio(other)
        return None if ratio is None else Size.of(ratio)

    def ratio(self, other: Size) -> Fraction | None:
        """Return how many times `other` it is, if that is the same number whatever the sizes."""
        if not other._terms or self._terms.keys() != other._terms.keys():
            return None
        ratios = {factor / other._terms[powers] for powers, factor in self._terms.items()}
        return ratios.pop() if len(ratios) == 1 else None

    def substituted(self, sizes: Mapping[Atom, Size]) -> Size | None:
        """Return the dim with atoms replaced, all at once; None where it is no polynomial."""
        total = Size.of(0)
        for factor, above, below in self.products:
            term = Size.of(factor)
            for atom in above:
                term = term * sizes.get(atom, Size.named(atom))
            for atom in below:
                quotient = term / sizes.get(atom, Size.named(atom))
                if quotient is None:
                    return None
                term = quotient
            total = total + term
        return total

    def solved(self, atom: Atom, value: Size) -> Size | None:
        """Return the `atom` for which it is `value`; None if there is no such one, or several."""
        slope, rest = Size.of(0), Size.of(0)
        for powers, factor in self._terms.items():
            power = dict(powers).get(atom, 0)
            if power == 1:
                slope = slope + Size({powers - {(atom, 1)}: factor})
            elif power == 0:
                rest = rest + Size({powers: factor})
            else:
                return None
        found = (value - rest) / slope
        number = None if found is None else found.literal
        return None if number is not None and number < 0 else found

    @override
    def __str__(self) -> str:
        if not self._terms:
            return "0"
        first, *rest = self.products
        signs = [" + " if factor > 0 else " - " for factor, _, _ in rest]
        terms = [_written(abs(factor), above, below) for factor, above, below in rest]
        return _written(*first) + "".join(map(operator.add, signs, terms))


class Open(Enum):
    """A dim whose size is not known before run time."""

    ANY = "?"
    # A computed size has this type. Plain typing tells it from `Any`, and so do results.
    INT = "int"

    @property
    def literal(self) -> None:
        """The size, which is not known."""

    @override
    def __str__(self) -> str:
        return self.value


Dim: TypeAlias = Size | Open
Dims: TypeAlias = tuple[Dim, ...]

ANY: Final = Open.ANY
INT: Final = Open.INT
ONE: Final = Size.of(1)


def sized(shape: Iterable[int]) -> Dims:
    """Return a shape of the run time, all of whose sizes are known."""
    return tuple(map(Size.of, shape))


def computed(function: Callable[..., Dim], *dims: Dim) -> Dim:
    """Return what a function makes of dims; ANY where one is open."""
    known = [dim for dim in dims if isinstance(dim, Size)]
    return function(*known) if len(known) == len(dims) else ANY


def product(dims: Iterable[Dim]) -> Dim:
    """Return the product; ANY where a dim is open."""
    return computed(lambda *sizes: reduce(operator.mul, sizes, ONE), *dims)


def total(dims: Iterable[Dim]) -> Dim:
    """Return the sum; ANY where a dim is open."""
    return computed(lambda *sizes: reduce(operator.add, sizes, Size.of(0)), *dims)


def is_left_over(size: Dim, parts: Dim) -> bool:
    """Tell whether a number of parts, if it is not 0, surely does not divide a size."""
    return bool(size.literal is not None and parts.literal and size.literal % parts.literal)


def quotient(size: Dim, by: Dim) -> Dim:
    """Return the size of one of several equal parts; ANY where that is not certain."""
    return computed(lambda whole, part: whole / part or ANY, size, by)


def stepped(size: Size, more: Size, step: Size) -> Dim:
    """Return how many steps fit into `size` and something more; ANY where that is not certain.

    A size with a name is taken to be a multiple of the step, where what is more only says how any
    other one would be rounded.
    """
    if step == ONE:
        return size + more
    if step.literal == 0:
        # It is refused where the layer is made.
        return ANY
    whole, rest = size / step, more.literal
    if size.literal is not None and rest is not None and step.literal is not None:
        return Size.of((size.literal + rest) // step.literal)
    # Not M + 1, of which nobody thinks as a multiple of 2 while M is none.
    if whole is None or not size.atoms or whole.number.denominator != 1:
        return ANY
    if whole.is_whole and rest is not None and step.literal is not None:
        return whole + Size.of(rest // step.literal)
    return whole if rest == 0 or (rest is not None and 0 < rest < (step.literal or 0)) else ANY


def differ(lhs: Dim, rhs: Dim) -> bool:
    """Tell whether two known dims are not the same.

    Two names differ, as they do for plain typing, although they may stand for one size; so does
    what is computed from them.
    """
    return isinstance(lhs, Size) and isinstance(rhs, Size) and lhs != rhs


def are_other_numbers(lhs: Dim, rhs: Dim) -> bool:
    """Tell whether two dims are numbers, and not the same."""
    return lhs != rhs and lhs.literal is not None and rhs.literal is not None


def cannot_be_equal(lhs: Dim, rhs: Dim) -> bool:
    """Tell whether two dims differ whatever the sizes of the atoms, if none is 0."""
    if not isinstance(lhs, Size) or not isinstance(rhs, Size) or lhs == rhs:
        return False
    return are_other_numbers(lhs, rhs) or lhs.ratio(rhs) is not None


def is_negative(dim: Dim) -> bool:
    """Tell whether a dim is a number below 0."""
    return dim.literal is not None and dim.literal < 0


def unified(lhs: Dim, rhs: Dim) -> Dim:
    """Return what is known of a dim that two operands share."""
    return rhs if isinstance(lhs, Open) and lhs is not rhs else lhs


def written(shape: Iterable[Dim | int]) -> str:
    """Return a shape as users write it: ``(32, B, ?)``."""
    dims = [str(dim) for dim in shape]
    return f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"


def _product(lhs: Powers, rhs: Powers) -> Powers:
    powers = dict(lhs)
    for atom, power in rhs:
        powers[atom] = powers.get(atom, 0) + power
    return frozenset((atom, power) for atom, power in powers.items() if power)


def _order(product: Product) -> tuple[object, ...]:
    _, above, below = product
    # The products without names come last: H + 1.
    return (not above, *[[(atom.name, str(atom.key)) for atom in side] for side in (above, below)])


def _written(factor: Fraction, above: list[Atom], below: list[Atom]) -> str:
    over, under = [atom.name for atom in above], [atom.name for atom in below]
    if factor.numerator != 1 or not over:
        over.insert(0, str(factor.numerator))
    if factor.denominator != 1:
        under.append(str(factor.denominator))
    return " / ".join(["*".join(over), *under])
