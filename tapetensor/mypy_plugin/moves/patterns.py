"""The names that the patterns of a `match` statement bind."""

from __future__ import annotations

from collections.abc import Iterator

from mypy.nodes import NameExpr
from mypy.patterns import (
    AsPattern,
    ClassPattern,
    MappingPattern,
    OrPattern,
    Pattern,
    SequencePattern,
    StarredPattern,
)


def bound_by(pattern: Pattern | None) -> Iterator[NameExpr]:
    """Yield the names that are bound when a pattern matches."""
    name: NameExpr | None = None
    inner: list[Pattern] = []
    match pattern:
        case AsPattern(pattern=within, name=name):
            inner = [] if within is None else [within]
        case OrPattern(patterns=alternatives) | SequencePattern(patterns=alternatives):
            inner = [*alternatives]
        case StarredPattern(capture=name):
            pass
        case MappingPattern(values=values, rest=name):
            inner = [*values]
        case ClassPattern(positionals=positionals, keyword_values=values):
            inner = [*positionals, *values]
    if name is not None:
        yield name
    for one in inner:
        yield from bound_by(one)
