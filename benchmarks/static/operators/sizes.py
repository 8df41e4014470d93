"""Mistakes about sizes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from benchmarks.static.source import Edit, Source, integer

_CREATION = ("normal", "uniform", "zeros", "ones", "full")
_LAYERS = ("Linear", "LayerNorm", "BatchNorm1d", "Embedding")


def dims_swapped(source: Source) -> Iterator[Edit]:
    """Exchange two neighbouring sizes: of a layer, of new data, of a reshape."""
    for sizes in [*_sizes_of_layers(source), *_shapes(source, *_CREATION, "reshape")]:
        for one, other in pairwise(sizes):
            if source.of(one) != source.of(other):
                yield source.swap(one, other)


def wrong_layer_size(source: Source) -> Iterator[Edit]:
    """Give a layer one feature too many or half of them."""
    for sizes in _sizes_of_layers(source):
        for size in sizes:
            # An annotation says L[784], a constructor 784.
            literal = size.slice if isinstance(size, ast.Subscript) else size
            value = integer(literal)
            if value is not None:
                yield source.replace(literal, str(value + 1))
                if value > 3:
                    yield source.replace(literal, str(value // 2))


def wrong_size_of_data(source: Source) -> Iterator[Edit]:
    """Make data with one row or column too many."""
    for sizes in _shapes(source, *_CREATION):
        for size in sizes:
            value = integer(size)
            if value is not None:
                yield source.replace(size, str(value + 1))


def wrong_reshape(source: Source) -> Iterator[Edit]:
    """Reshape to sizes whose product is another."""
    for sizes in _shapes(source, "reshape"):
        for size in sizes:
            value = integer(size)
            if value is not None:
                yield source.replace(size, str(value + 1))
                if value > 1:
                    yield source.replace(size, str(value - 1))


def _sizes_of_layers(source: Source) -> Iterator[list[ast.expr]]:
    for node in source.nodes():
        if isinstance(node, ast.Subscript) and _is_layer(node.value):
            dims = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            yield [one for one in dims if isinstance(one, ast.Subscript)]
    for call in source.calls(*_LAYERS):
        yield [one for one in call.args if integer(one) is not None]


def _is_layer(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _LAYERS


def _shapes(source: Source, *names: str) -> Iterator[list[ast.expr]]:
    for call in source.calls(*names):
        if call.args and isinstance(call.args[0], ast.Tuple):
            yield call.args[0].elts
