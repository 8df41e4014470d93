"""Kernels of eager mode as machine code give what numpy's give."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tapetensor.higher_order.array import RecordedArray, RecordingLevel
from tapetensor.kernels import elementwise, indexing, losses, normalization, reductions
from tapetensor.native import eager
from tapetensor.native.eager import NativeKernel

SHAPE = (6, 40)
WIDTH = SHAPE[1]


def _matrix(dtype: Any, seed: int = 0) -> Any:
    values = np.random.default_rng(seed).standard_normal(SHAPE).astype(dtype)
    # Kinks, ties, and what overflows.
    values[0, :4] = 0.0, -0.0, 1.0, -1.0
    values[1] = 0.5
    values[2, :2] = 90.0, -110.0
    return values


def _vector(dtype: Any, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(WIDTH).astype(dtype)


def _probabilities(dtype: Any) -> Any:
    values = np.random.default_rng(3).random(SHAPE) + 0.01
    values[0, :2] = 0.0
    return (values / values.sum(-1, keepdims=True)).astype(dtype)


ONE_OPERAND: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{
        name: (getattr(elementwise, name), ())
        for name in ("abs", "tanh", "sigmoid", "relu", "silu", "gelu", "gelu_tanh", "softplus")
    },
    "clip": (elementwise.clip, (-1.0, 1.0)),
    "leaky_relu": (elementwise.leaky_relu, (0.1,)),
    "elu": (elementwise.elu, (1.5,)),
    "softmax": (reductions.softmax, (1,)),
    "softmax over rows": (reductions.softmax, (0,)),
    "log_softmax": (reductions.log_softmax, (1,)),
    "logsumexp": (reductions.logsumexp, ((1,), False)),
    "logsumexp over rows": (reductions.logsumexp, ((0,), True)),
    "max": (reductions.max, ((1,), False)),
    "min over rows": (reductions.min, ((0,), False)),
    "var": (reductions.var, ((1,), False, 1.0)),
    "std over rows": (reductions.std, ((0,), False, 0.0, 1e-5)),
    "normalize": (normalization.normalize, (1, 1e-5)),
}
SEVERAL_OPERANDS: dict[str, tuple[Callable[..., Any], Callable[[Any], tuple[Any, ...]]]] = {
    "layer_norm": (
        normalization.layer_norm,
        lambda kind: (_matrix(kind), _vector(kind, 1), _vector(kind, 2), 1e-5),
    ),
    "rms_norm": (normalization.rms_norm, lambda kind: (_matrix(kind), _vector(kind, 1), 1e-5)),
    "batch_norm_inference": (
        normalization.batch_norm_inference,
        lambda kind: (
            _matrix(kind),
            *[_vector(kind, seed) for seed in (1, 2, 3)],
            np.square(_vector(kind, 4)),
            1e-5,
        ),
    ),
    "where": (
        indexing.where,
        lambda kind: (_matrix(kind), _matrix(kind, 1), _matrix(kind, 2) > 0),
    ),
    "where, with a row": (
        indexing.where,
        lambda kind: (_matrix(kind), _vector(kind, 1), _matrix(kind, 2) > 0),
    ),
    "cross_entropy": (
        losses.cross_entropy,
        lambda kind: (_matrix(kind), np.arange(SHAPE[0]) * 3, "mean"),
    ),
    "cross_entropy of each label": (
        losses.cross_entropy,
        lambda kind: (_matrix(kind), np.arange(SHAPE[0]) * 3, "none"),
    ),
    "kl_div": (losses.kl_div, lambda kind: (_matrix(kind), _probabilities(kind), "sum")),
    "mse": (losses.mse, lambda kind: (_matrix(kind), _matrix(kind, 1), "mean")),
    "mse of each element": (losses.mse, lambda kind: (_matrix(kind), _matrix(kind, 1), "none")),
    "mae": (losses.mae, lambda kind: (_matrix(kind), _matrix(kind, 1), "mean")),
    "huber": (losses.huber, lambda kind: (_matrix(kind), _matrix(kind, 1), 1.0, "mean")),
    "binary_cross_entropy_with_logits": (
        losses.binary_cross_entropy_with_logits,
        lambda kind: (_matrix(kind), _probabilities(kind), "mean"),
    ),
}


def _pair(kernel: Callable[..., Any]) -> list[Any]:
    return [kernel, NativeKernel(kernel)]


def _is_native(kernel: NativeKernel) -> bool:
    kinds = vars(kernel)["_kinds"].values()
    return any(kind is not vars(kernel)["_kernel"] for kind in kinds)


def _both(kernel: Callable[..., Any], args: tuple[Any, ...]) -> list[list[Any]]:
    """Return the result and all cotangents by numpy and by machine code."""
    pair = _pair(kernel)
    found = []
    for one in pair:
        y, pullbacks = one(*args)
        g = np.random.default_rng(9).standard_normal(y.shape).astype(y.dtype)
        g = np.asarray(g, y.dtype)
        found.append([y, *[pullback(g) for pullback in pullbacks if pullback is not None]])
    assert _is_native(pair[1])
    return found


def _assert_alike(both: list[list[Any]], tolerance: float) -> None:
    plain, native = both
    assert len(plain) == len(native)
    for one, other in zip(plain, native, strict=True):
        assert np.shape(one) == np.shape(other)
        assert np.asarray(one).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)


# Each loop takes a second to compile.
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *[(name, np.float32) for name in (*ONE_OPERAND, *SEVERAL_OPERANDS)],
        *[(name, np.float64) for name in ("gelu", "relu", "logsumexp over rows", "layer_norm")],
        *[(name, np.float64) for name in ("softmax", "cross_entropy")],
    ],
)
def test_a_kernel_gives_what_numpy_gives(name: str, dtype: Any) -> None:
    if name in ONE_OPERAND:
        kernel, options = ONE_OPERAND[name]
        args = (_matrix(dtype), *options)
    else:
        kernel, operands = SEVERAL_OPERANDS[name]
        args = operands(dtype)
    _assert_alike(_both(kernel, args), 1e-5 if dtype is np.float32 else 1e-12)


@pytest.mark.parametrize("name", ONE_OPERAND)
def test_what_is_not_finite_comes_out_where_numpy_has_it(name: str) -> None:
    kernel, options = ONE_OPERAND[name]
    x = _matrix(np.float32)
    x[3, 5], x[4, 2], x[5, 1] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        plain, native = _both(kernel, (x, *options))
    for one, other in zip(plain, native, strict=True):
        np.testing.assert_array_equal(np.isnan(one), np.isnan(other))
        np.testing.assert_array_equal(np.isposinf(one), np.isposinf(other))
        np.testing.assert_array_equal(np.isneginf(one), np.isneginf(other))


def test_batch_norm_tells_its_observer_mean_and_variance() -> None:
    images = np.random.default_rng(0).standard_normal((4, 8, 5, 5)).astype(np.float32)
    weight, bias = np.ones(8, np.float32), np.zeros(8, np.float32)
    told: list[list[Any]] = []
    for kernel in _pair(normalization.batch_norm):
        seen: list[Any] = []
        y, pullbacks = kernel(
            images, weight, bias, 1e-5, lambda *both, seen=seen: seen.extend(both)
        )
        told.append([*seen, y, *[one(y * y) for one in pullbacks]])
    assert len(told[0]) == 6
    _assert_alike(told, 1e-4)


def test_a_repeated_cotangent_is_taken() -> None:
    x = _matrix(np.float32)
    g = np.broadcast_to(np.float32(2), SHAPE)
    plain, native = [kernel(x)[1][0](g) for kernel in _pair(elementwise.gelu)]
    np.testing.assert_allclose(native, plain, rtol=1e-5, atol=1e-6)


def _kinds(kernel: NativeKernel) -> int:
    return len(vars(kernel)["_kinds"])


def test_what_has_gaps_is_empty_or_of_another_dtype_runs_on_numpy() -> None:
    plain_kernel, kernel = _pair(elementwise.sigmoid)
    x = _matrix(np.float32)
    for one in (x[:, ::2], x.T, x[:0], x.astype(np.float16), x.astype(">f4")):
        y, (pullback,) = kernel(one)
        plain, (plain_pullback,) = plain_kernel(one)
        np.testing.assert_array_equal(y, plain)
        np.testing.assert_array_equal(pullback(one), plain_pullback(one))
    assert _kinds(kernel) == 0
    kernel(x)
    assert _kinds(kernel) == 1


def test_numbers_that_compare_equal_are_of_kinds_of_their_own() -> None:
    kernel = NativeKernel(elementwise.clip)
    x = _matrix(np.float32)
    for low in (0.0, -0.0, 0, None):
        np.testing.assert_array_equal(kernel(x, low, 1.0)[0], elementwise.clip(x, low, 1.0)[0])
    assert _kinds(kernel) == 4


def test_kinds_beyond_the_limit_run_on_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "MAX_KINDS", 1)
    plain_kernel, kernel = _pair(elementwise.sigmoid)
    for count in (40, 50, 40):
        x = np.linspace(-3, 3, count, dtype=np.float32)
        np.testing.assert_allclose(kernel(x)[0], plain_kernel(x)[0], rtol=1e-6)
    assert _kinds(kernel) == 1


def test_numpy_raises_where_it_is_asked_to() -> None:
    kernel = NativeKernel(reductions.var)
    x = np.full(SHAPE, 1e30, np.float32)
    x[0] = -1e30
    assert np.isinf(kernel(x, (0,), False, 0.0)[0]).all()
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        kernel(x, (0,), False, 0.0)


def test_a_cotangent_that_records_goes_through_the_formula() -> None:
    _, (pullback,) = NativeKernel(reductions.softmax)(_matrix(np.float64), 1)
    cotangent = _matrix(np.float64, 1)
    plain = reductions.softmax(_matrix(np.float64), 1)[1][0]
    assert plain is not None
    assert pullback is not None
    recorded: Any = RecordingLevel(None).array(cotangent)
    found: Any = pullback(recorded)
    assert type(found) is RecordedArray
    np.testing.assert_allclose(found.value, plain(cotangent), rtol=1e-12, atol=1e-12)


PROGRAM = """
import sys
import numpy as np
import tapetensor as tt
from tapetensor import losses, nn, optim

class Model(nn.Module):
    first: nn.Linear
    norm: nn.LayerNorm
    last: nn.Linear
    def forward(self, x):
        return self.last.forward(self.norm.forward(self.first.forward(x)).gelu())

rng = np.random.default_rng(0)
model = Model(
    first=nn.Linear(32, 128, rng=rng), norm=nn.LayerNorm(128), last=nn.Linear(128, 10, rng=rng)
)
optimizer = optim.Adam(model, lr=1e-3)
x = tt.from_numpy(rng.standard_normal((64, 32)).astype(np.float32), (64, 32))
labels = tt.from_numpy(rng.integers(10, size=64), (64,))
def step():
    loss = losses.cross_entropy(model.forward(x.trace()), labels)
    value = loss.detach().item()
    optimizer.step(loss.backward(wrt=model))
    return value
for _ in range(30):
    value = step()
has_loaded = "numba" in sys.modules, "tapetensor.native.eager" in sys.modules
print(value, tt.compile(step)(), *has_loaded)
"""


def _run(backend: str, program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TAPETENSOR_BACKEND": backend},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_program_that_chooses_the_backend_trains_as_on_numpy_and_then_compiled() -> None:
    plain, native = [_run(one, PROGRAM).stdout.split() for one in ("numpy", "numba")]
    assert plain[2:] == ["False", "False"]
    assert native[2:] == ["True", "True"]
    losses_of_both = [[float(value) for value in one[:2]] for one in (native, plain)]
    assert losses_of_both[0] == pytest.approx(losses_of_both[1], rel=1e-5)


def test_a_backward_pass_where_numpy_raises_says_nothing_of_the_forward_pass() -> None:
    kernel: Any = NativeKernel(inspect.unwrap(reductions.logsumexp))
    x = np.full((70, 64), -200, np.float32)
    x[:, 0] = 200
    _, (pullback,) = kernel(x, (1,), True)

    with np.errstate(all="raise"):
        cotangent = pullback(np.ones((70, 1), np.float32))

    np.testing.assert_array_equal(cotangent[:, :2], [[1, 0]] * 70)


PROGRAMS = {
    "errors that raise from the start": """
import numpy as np
np.seterr(all="raise")
import tapetensor as tt
x = tt.from_numpy(np.full((70, 64), 1e30, np.float32))
compiled = tt.compile(lambda x: (x * x + 1) * 2)
for function in (compiled, lambda x: x.square(), lambda x: x.gelu(approximate="tanh")):
    try:
        function(x)
        print("nothing raised")
    except FloatingPointError:
        pass
""",
    "a constant that is made while a function is traced": """
import numpy as np
import tapetensor as tt
x = tt.from_numpy(np.ones((128, 128), np.float32))
masked = tt.compile(lambda x: tt.ones((128, 128)).tril() * x)
assert masked(x).sum().item() == 128 * 129 / 2
assert x.softmax().sum().item() == 128
""",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_on_the_backend_does_what_it_does_on_numpy(program: str) -> None:
    ended = _run("numba", program)

    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
