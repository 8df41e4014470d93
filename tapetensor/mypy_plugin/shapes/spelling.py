"""Known dims as types: literals, names, and ``Mul[H, K]`` for what is computed from them.

Equal dims are written alike, so mypy, which compares types by their parts, compares them by
algebra.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

from mypy.types import Instance, LiteralType, Type

from tapetensor.mypy_plugin.kinds import ANYTHING
from tapetensor.mypy_plugin.names import COMPUTED
from tapetensor.mypy_plugin.symbols import class_of
from tapetensor.rules.dims import Atom, Dim, Open, Size


def write_known(dim: Dim, integer: Instance) -> Type:
    """Return a dim as a type; Any for an open one, and where no type can say it."""
    if dim.literal is not None:
        return LiteralType(dim.literal, integer)
    # A size without names may be half of 3, of which nothing is known but that it raises.
    if isinstance(dim, Open) or not dim.atoms:
        return ANYTHING
    return _sum(dim, integer) or ANYTHING


def _sum(dim: Size, integer: Instance) -> Type | None:
    first, *rest = dim.products
    total = _product(*first, integer)
    for factor, above, below in rest:
        name = "Add" if factor > 0 else "Sub"
        total = _computed(name, total, _product(abs(factor), above, below, integer))
    return total


def _product(
    factor: Fraction, above: list[Atom], below: list[Atom], integer: Instance
) -> Type | None:
    over: list[Type | None] = [_name(atom) for atom in above]
    if factor.numerator != 1 or not over:
        over.append(LiteralType(factor.numerator, integer))
    under: list[Type | None] = [_name(atom) for atom in below]
    if factor.denominator != 1:
        under.append(LiteralType(factor.denominator, integer))
    found = reduce(lambda lhs, rhs: _computed("Mul", lhs, rhs), over)
    for divisor in under:
        found = _computed("Div", found, divisor)
    return found


def _name(atom: Atom) -> Type | None:
    return atom.origin if isinstance(atom.origin, Type) else None


def _computed(name: str, lhs: Type | None, rhs: Type | None) -> Type | None:
    info = class_of(f"{COMPUTED}.{name}")
    if info is None or lhs is None or rhs is None:
        return None
    return Instance(info, [lhs, rhs])
