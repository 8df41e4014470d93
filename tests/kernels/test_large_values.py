"""Of large temporary values numpy writes one over another: no kernel depends on that."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tapetensor.kernels import arithmetic, elementwise, losses

# What numpy needs besides arrays.
_OTHERS = {
    "number": 0.5, "exponent": 3.0, "base": 2.0, "low": 0.2, "high": 0.6, "alpha": 0.5,
    "slope": 0.1, "delta": 0.3, "beta": 0.3, "margin": 0.2, "reduction": "none", "eps": 1e-6,
    "full": True, "log_input": False,
}  # fmt: skip
_ARRAYS = ("x", "lhs", "rhs", "prediction", "target", "predictions", "probabilities", "logits",
           "variance", "given", "counts", "signs", "distances")  # fmt: skip
_SMALL, _LARGE = (6, 4), (300, 400)


def _kernels() -> Iterator[Any]:
    modules: tuple[ModuleType, ...] = (arithmetic, elementwise, losses)
    for module in modules:
        for name, function in vars(module).items():
            if not name.startswith("_") and inspect.isfunction(inspect.unwrap(function)):
                known = inspect.unwrap(function)
                names = inspect.signature(known).parameters
                is_other = name in ("cosine_embedding", "prelu")
                is_own = known.__module__ == module.__name__ and not is_other
                if is_own and names.keys() <= {*_ARRAYS, *_OTHERS}:
                    yield pytest.param(function, [*names], id=f"{module.__name__[18:]}.{name}")


def _values(shape: tuple[int, ...], is_turned: bool, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if is_turned:
        return rng.uniform(0.1, 0.9, shape[::-1]).astype(np.float32).T
    return rng.uniform(0.1, 0.9, shape).astype(np.float32)


def _run(
    kernel: Callable[..., Any], names: list[str], shape: tuple[int, ...], turned: tuple[bool, ...]
) -> tuple[Any, list[Any], Any]:
    """Return the result of a kernel, its pullbacks, and a cotangent."""
    arguments = [
        _values(shape, turned[place % 3], place) if name in _ARRAYS else _OTHERS[name]
        for place, name in enumerate(names)
    ]
    # The hyperbolic cosine is at least 1.
    with np.errstate(invalid="ignore"):
        y, pullbacks = kernel(*arguments)
    return y, [one for one in pullbacks if one is not None], _values(np.shape(y), turned[-1], 9)


@pytest.mark.parametrize(("kernel", "names"), [*_kernels()])
def test_a_pullback_gives_the_same_when_it_runs_again(kernel: Any, names: list[str]) -> None:
    y, pullbacks, g = _run(kernel, names, _LARGE, (False,) * 4)
    # Nobody but the pullback holds what it needs.
    del y
    with np.errstate(invalid="ignore"):
        for pullback in pullbacks:
            first = np.array(pullback(g))
            assert np.array(pullback(g)).tobytes() == first.tobytes()


@pytest.mark.parametrize(("kernel", "names"), [*_kernels()])
def test_results_lie_in_the_same_order_whatever_their_size(kernel: Any, names: list[str]) -> None:
    for turned in itertools.product((False, True), repeat=4):
        orders: list[list[bool]] = []
        for shape in (_SMALL, _LARGE):
            y, pullbacks, g = _run(kernel, names, shape, turned)
            with np.errstate(invalid="ignore"):
                found = [y, *[pullback(g) for pullback in pullbacks]]
            orders.append([one.flags.c_contiguous for one in found])
        assert orders[0] == orders[1], turned
