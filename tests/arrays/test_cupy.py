"""The strict library of these tests against CuPy itself, if it is installed; no GPU is needed."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from tests.arrays.foreign import SIGNATURES

cupy: Any = pytest.importorskip("cupy")

# The ufuncs that kernels use: CuPy answers a ufunc by the function of that name.
_UFUNCS = (
    "absolute", "add", "copysign", "cos", "divide", "exp", "expm1", "isfinite", "isnan", "log",
    "log1p", "logaddexp", "logical_not", "matmul", "maximum", "minimum", "multiply", "negative",
    "power", "sign", "sin", "sqrt", "square", "subtract", "tanh",
)  # fmt: skip


@pytest.mark.parametrize("name", SIGNATURES)
def test_cupy_has_every_function_with_the_arguments_that_are_accepted_here(name: str) -> None:
    theirs = inspect.signature(getattr(cupy, name)).parameters.values()
    ours = inspect.signature(SIGNATURES[name]).parameters.values()

    accepted = {one.name: one.kind for one in theirs}
    assert {one.name: one.kind for one in ours if one.name in accepted} == {
        one.name: accepted[one.name] for one in ours
    }
    required = [one.name for one in theirs if one.default is inspect.Parameter.empty]
    assert required == [one.name for one in ours if one.default is inspect.Parameter.empty]


@pytest.mark.parametrize("name", _UFUNCS)
def test_cupy_has_every_ufunc(name: str) -> None:
    assert isinstance(getattr(np, name), np.ufunc)
    assert callable(getattr(cupy, name))
