"""Compiled functions of one or a few numbers, of which generated code is made."""

from __future__ import annotations

import types
from functools import cache
from typing import Any

from tapetensor.extras import import_extra
from tapetensor.native import keys, polynomials

# In a polynomial a product and a sum may be one instruction. Elsewhere each operation is rounded as
# numpy rounds it, and only sums over elements are added up in another order, by `plus`.
_OF_POLYNOMIALS = {"contract"}
_KEYS = ("highest_key", "lowest_key", "from_key")


def numba() -> Any:
    """Return numba.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    return import_extra("numba", "native groups", "numba", "backend='numpy' needs nothing")


def compiled(function: Any, **options: Any) -> Any:
    """Return a function that numba compiles when it is first called with arguments of a kind."""
    return numba().njit(error_model="numpy", nogil=True, **options)(function)


def _inlined(function: Any, **options: Any) -> Any:
    """Return a compiled function that becomes part of the loops that call it, however long.

    LLVM vectorizes no loop that has calls.
    """
    return compiled(function, forceinline=True, **options)


@cache
def scalars() -> types.SimpleNamespace:
    """Return `choose`, `plus`, `times`, the functions of `polynomials`, and those of `keys`."""
    found: dict[str, Any] = {
        "choose": _choose(),
        "plus": _accumulating("add"),
        "times": _accumulating("mul"),
    }
    for name in ("exp_without", "exp", "log", "log1p", "tanh"):
        plain = getattr(polynomials, name)
        # In the compiled function the names of the others are those of compiled functions, too.
        body = types.FunctionType(plain.__code__, {**vars(polynomials), **found}, name)
        found[name] = _inlined(body, fastmath=_OF_POLYNOMIALS)
    for name in ("highest", "lowest", *[f"{one}_{kind}" for one in _KEYS for kind in ("f4", "f8")]):
        plain = getattr(keys, name)
        body = types.FunctionType(plain.__code__, {**vars(keys), **found}, name)
        found[name] = _inlined(body)
    for kind in ("f4", "f8"):
        found[f"highest_start_{kind}"] = getattr(keys, f"LEAST_{kind.upper()}")
        found[f"lowest_start_{kind}"] = getattr(keys, f"GREATEST_{kind.upper()}")
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
