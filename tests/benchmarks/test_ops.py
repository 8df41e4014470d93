"""What the benchmark of single ops measures is the same in both libraries."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.ops.__main__ import our_step, their_step
from benchmarks.ops.cases import everything


@pytest.mark.parametrize("name", everything())
def test_an_op_is_measured_on_what_pytorch_computes_too(name: str) -> None:
    one = everything()[name]
    value, gradient = our_step(one)()

    assert np.isfinite(value)
    assert np.any(gradient)
    pytest.importorskip("torch")
    their_value, their_gradient = their_step(one)()
    assert value == pytest.approx(their_value, rel=1e-3, abs=1e-2)
    np.testing.assert_allclose(gradient, their_gradient, rtol=1e-3, atol=1e-3)
