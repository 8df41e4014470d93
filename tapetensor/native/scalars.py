"""Compiled functions of one or a few numbers, of which generated code is made."""

from __future__ import annotations

import types
from functools import cache
from typing import Any

from tapetensor.extras import import_extra
from tapetensor.native import polynomials

# In a polynomial a product and a sum may be one instruction. Elsewhere each operation is rounded as
# numpy rounds it, and only sums over elements are added up in another order, by `plus`.
_OF_POLYNOMIALS = {"contract"}


def numba() -> Any:
    """Return numba.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    return import_extra("numba", "native groups", "numba", "backend='numpy' needs nothing")


def compiled(function: Any, **options: Any) -> Any:
    """Return a function that numba compiles when it is first called with arguments of a kind."""
    return numba().njit(error_model="numpy", nogil=True, **options)(function)


def _inlined(function: Any, names: dict[str, Any], **options: Any) -> Any:
    """Return a compiled function that becomes part of the loops that call it, however long.

    LLVM vectorizes no loop that has calls.

    Args:
        function: the function.
        names: what stands for some of its globals, such as compiled functions.
        options: see `compiled`.
    """
    known = {**function.__globals__, **names}
    body = types.FunctionType(function.__code__, known, function.__name__)
    return compiled(body, forceinline=True, **options)


@cache
def scalars() -> types.SimpleNamespace:
    """Return `choose`, `plus`, `times` and the functions of `polynomials`."""
    found: dict[str, Any] = {
        "choose": _choose(),
        "plus": _accumulating("add"),
        "times": _accumulating("mul"),
    }
    for name in ("exp_without", "exp", "log", "log1p", "tanh"):
        found[name] = _inlined(getattr(polynomials, name), found, fastmath=_OF_POLYNOMIALS)
    for name in ("highest", "lowest"):
        found[name] = _inlined(getattr(polynomials, name), found)
    for kind, width in polynomials.WIDTHS.items():
        for name in ("highest_key", "lowest_key", "from_key"):
            found[f"{name}_{kind}"] = _inlined(getattr(polynomials, name), {**width, **found})
        found[f"highest_start_{kind}"] = width["LEAST"]
        found[f"lowest_start_{kind}"] = width["GREATEST"]
    return types.SimpleNamespace(**found)


def _choose() -> Any:
    """Return ``choose(mask, lhs, rhs)`` as one instruction of LLVM's."""
    intrinsic = numba().extending.intrinsic

    def choose(context: Any, mask: Any, lhs: Any, rhs: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.select(*args)

        return lhs(mask, lhs, rhs), generate

    return intrinsic(choose)


def _accumulating(operation: str) -> Any:
    """Return a sum or product of two numbers that may be taken in any order with others of a loop.

    So LLVM accumulates in vectors.
    """

    def accumulate(context: Any, lhs: Any, rhs: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if isinstance(lhs, numba().types.Float):
                return getattr(builder, f"f{operation}")(*args, flags=("reassoc",))
            return getattr(builder, operation)(*args)

        return lhs(lhs, lhs), generate

    return numba().extending.intrinsic(accumulate)
