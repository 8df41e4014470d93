"""Masked arrays: whoever takes an array refuses them, for the mask would be lost without a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, nn, testing, training

# What netCDF puts where nothing was measured.
MASKED: Any = np.ma.masked_equal(np.array([1.0, 1e20, 3.0], np.float32), np.float32(1e20))
UNMASKED: Any = np.ma.array(np.ones(3, np.float32))
MISSING: Any = np.ma.masked
X: Any = tt.ones((3,))


def _layer() -> Any:
    return nn.Linear(3, 3, rng=np.random.default_rng(0))


def _custom(array: Any) -> Any:
    return tt.custom_op(lambda x: (array, (lambda g: g,)), X.trace(), shape=(3,))


@pytest.mark.parametrize("array", [MASKED, UNMASKED, [MASKED, MASKED], [[1.0, MISSING]]])
def test_no_tensor_is_made_of_one(array: Any) -> None:
    with pytest.raises(tt.ArgumentTypeError, match=r"from_numpy: .* masked.*filled\(0\)"):
        tt.from_numpy(array)


USES: dict[str, Callable[[Path], object]] = {
    "from_array": lambda _: tt.from_array(MASKED, (3,)),
    "index": lambda _: X[MASKED > 2],
    "index in a list": lambda _: X[[MASKED > 2]],
    "gradient": lambda _: tt.Gradients().insert(X, MASKED),
    "slot": lambda _: tt.GradientTape().alloc(MASKED),
    "kernel": lambda _: _custom(MASKED),
    "weights": lambda _: tt.ravel(_layer()).assign(np.ma.zeros(12)),
    "file": lambda folder: io.write(folder / "a.npz", {"a": MASKED}),
    "state": lambda _: io.load_state_dict(_layer(), {"weight": np.ma.ones((3, 3)), "bias": MASKED}),
    "argument": lambda _: tt.compile(lambda x: x * 2.0)(MASKED),
    "closure": lambda _: tt.compile(lambda x: x * float(MASKED.sum()))(X),
    "metric": lambda _: training.evaluate(_layer(), {"m": lambda model, x: MISSING}, [X]),
    "operand": lambda _: X * MASKED,
    "check": lambda _: testing.check_grad(lambda x: x, MASKED, rng=np.random.default_rng(0)),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_none_comes_in(use: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(tt.TapeTensorError, match=r"(?i)masked|MaskedConstant"):
        use(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_plan_tells_to_fill_it() -> None:
    with pytest.raises(tt.ArgumentTypeError, match=r"filled\(0\)"):
        tt.compile(lambda x: x * 2.0)(MASKED)


def test_an_estimator_is_given_none() -> None:
    pytest.importorskip("sklearn")
    from tapetensor.training.estimators import Classifier, Regressor

    rows = np.ones((4, 2), np.float32)
    masked = np.ma.masked_equal(rows, 2)
    for estimator in (Classifier(epochs=1), Regressor(epochs=1)):
        with pytest.raises(tt.ArgumentTypeError, match="X is a masked array"):
            estimator.fit(masked, [0, 1, 0, 1])
        with pytest.raises(tt.ArgumentTypeError, match="y is a masked array"):
            estimator.fit(rows, np.ma.array([0, 1, 0, 1]))
        with pytest.raises(tt.ArgumentTypeError, match="X is a masked array"):
            estimator.fit(rows, [0, 1, 0, 1]).predict(masked)


def test_one_that_was_filled_is_an_array_like_any() -> None:
    assert tt.from_numpy(MASKED.filled(0), (3,)).numpy().tolist() == [1.0, 0.0, 3.0]
