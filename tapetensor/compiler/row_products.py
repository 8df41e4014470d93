"""Sums of products along rows, which numpy computes in one call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from tapetensor.compiler.node import Kind, Node
from tapetensor.kernels.numerics.sums import PRODUCT_DTYPES, SHORT, WORTH_PRODUCT


def take_products_of_rows(nodes: list[Node], leaving: Iterable[Node]) -> list[Node]:
    """Return the nodes without products that are only summed along their last axis.

    Each such sum becomes one of `np.vecdot`, which writes no product to memory.
    """
    readers = Counter(parent for node in nodes for parent in node.parents())
    readers.update(leaving)
    taken: set[Node] = set()
    for node in nodes:
        if node.kind is not Kind.REDUCE or node.function is not np.add:
            continue
        (product,) = node.args
        axes, options = node.detail
        is_last = axes == (len(product.shape) - 1,) and not options
        if is_last and readers[product] == 1 and _is_product(product, node):
            factors = product.args * 2 if product.function is np.square else product.args
            node.do_instead(np.vecdot, factors)
            taken.add(product)
    return [node for node in nodes if node not in taken]


def _is_product(node: Node, total: Node) -> bool:
    """Tell whether a node multiplies two arrays of rows that vecdot takes in less time."""
    return (
        node.kind is Kind.ELEMENTWISE
        and node.function in (np.multiply, np.square)
        and node.dtype in PRODUCT_DTYPES
        and node.dtype == total.dtype
        and all(factor.shape == node.shape and factor.dtype == node.dtype for factor in node.args)
        and WORTH_PRODUCT <= node.shape[-1] <= SHORT
    )
