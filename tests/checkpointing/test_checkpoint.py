"""A checkpoint computes what the function itself does, forwards and backwards, in less memory."""

from __future__ import annotations

import threading
import tracemalloc
from functools import partial
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.testing import check_grad
from tapetensor.typing import Array, Pullbacks

_X = tt.from_numpy(np.linspace(-1.0, 1.0, 12).reshape(4, 3))


class Mlp(nn.Module):
    hidden: nn.Linear[L[3], L[5], np.float64]
    norm: nn.BatchNorm1d[L[5], np.float64]
    drop: nn.Dropout
    out: nn.Linear[L[5], L[2], np.float64]

    def forward(self, x: Any) -> Any:
        # A second handle, as a residual connection has.
        hidden = self.hidden.forward(x).tanh()
        return self.out.forward(self.drop.forward(self.norm.forward(hidden)) + hidden)


def built() -> Mlp:
    """Return one model, always the same."""
    rng = np.random.default_rng(7)
    return Mlp(
        hidden=nn.Linear(3, 5, dtype=np.float64, rng=rng),
        norm=nn.BatchNorm1d(5, dtype=np.float64),
        drop=nn.Dropout(0.5, rng=rng),
        out=nn.Linear(5, 2, dtype=np.float64, rng=rng),
    )


def with_defaults(model: Mlp) -> Any:
    """Return a function that holds its layers as one made in a loop over them does."""

    def forward(
        x: Any, hidden: Any = model.hidden, *, norm: Any = model.norm, rest: Any = model
    ) -> Any:
        h = hidden.forward(x).tanh()
        return rest.out.forward(rest.drop.forward(norm.forward(h)) + h)

    return forward


def outcome(model: Mlp, loss: Any) -> list[Any]:
    """Return the loss, all gradients and all state that a step leaves, as lists."""
    value = loss.item()
    grads = loss.backward()
    tensors = [_X, *model.parameters().values()]
    return [
        value,
        [grads[one].numpy().tolist() for one in tensors],
        [one.numpy().tolist() for one in model.buffers().values()],
        model.drop.rng.random(),
    ]


@pytest.mark.parametrize(
    "checkpointed",
    [
        lambda model, x: tt.checkpoint(model.forward, x),
        lambda model, x: tt.checkpoint(model, x),
        lambda model, x: tt.checkpoint(lambda x: model.forward(x), x),
        lambda model, x: tt.checkpoint(with_defaults(model), x),
        lambda model, x: tt.checkpoint(partial(Mlp.forward, model), x),
        lambda model, x: tt.checkpoint(lambda x: tt.checkpoint(model.forward, x), x),
        lambda model, x: model.out.forward(
            tt.checkpoint(
                lambda h: model.drop.forward(model.norm.forward(h)) + h,
                tt.checkpoint(lambda x: model.hidden.forward(x).tanh(), x),
            )
        ),
    ],
)
def test_the_outcome_is_the_same_to_the_last_bit(checkpointed: Any) -> None:
    model = built()
    expected = outcome(model, model.forward(_X.trace()).square().sum())

    model = built()
    assert outcome(model, checkpointed(model, _X.trace()).square().sum()) == expected


@pytest.mark.parametrize(
    "traced", [(True, True, True), (True, False, False), (False, True, False), (False, False, True)]
)
def test_any_of_several_inputs_may_own_the_tape(
    traced: tuple[bool, ...], rng: np.random.Generator
) -> None:
    inputs = [tt.from_numpy(rng.standard_normal((2, 2))) for _ in range(3)]

    def f(x: Any, y: Any, z: Any) -> Any:
        return (x @ y).tanh() * z

    def handles() -> list[Any]:
        return [one.trace() if owns else one for one, owns in zip(inputs, traced, strict=True)]

    x, y, z = handles()
    found = tt.checkpoint(f, x, y, z).sum().backward()

    expected = f(*handles()).sum().backward()
    for one in inputs:
        # Ops of two plain values are recorded by neither.
        assert (one in found) == (one in expected)
        if one in expected:
            np.testing.assert_array_equal(found[one].numpy(), expected[one].numpy())


def test_a_checkpoint_is_differentiated_twice(rng: np.random.Generator) -> None:
    w = tt.from_numpy(rng.standard_normal((3, 2)))

    def energy(x: Any) -> Any:
        return tt.checkpoint(lambda x: (x @ w).tanh(), x).square().sum()

    check_grad(lambda x: tt.grad(energy, x), _X, rng=rng)
    expected = (
        tt.grad(lambda x: (x @ w).tanh().square().sum(), _X.trace()).square().sum().backward()
    )
    found = tt.grad(energy, _X.trace()).square().sum().backward()
    np.testing.assert_allclose(found[w].numpy(), expected[w].numpy(), rtol=1e-12)


def test_only_what_is_wanted_is_computed() -> None:
    runs: list[str] = []
    w, u = tt.ones((3,), np.float64), tt.ones((3,), np.float64)

    def scale_kernel(x: Array, scale: Array) -> tuple[Array, Pullbacks]:
        def pullback_x(g: Array) -> Array:
            runs.append("x")
            return g * scale

        def pullback_scale(g: Array) -> Any:
            runs.append("scale")
            return np.add.reduce(g * x, axis=0)

        return x * scale, (pullback_x, pullback_scale)

    def f(x: Any) -> Any:
        for scale in (w, u):
            x = tt.custom_op(scale_kernel, x, scale, shape=x.shape)
        return x

    for wrt, expected in [(u, ["scale"]), (w, ["x", "scale"]), (_X, ["x", "x"])]:
        grads = tt.checkpoint(f, _X.trace()).sum().backward(wrt=wrt)

        assert runs == expected
        assert list(grads) == [wrt.id]
        runs.clear()


class Hidden(threading.local):
    """Draws from a generator that nobody else finds."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)


def test_a_generator_out_of_sight_is_an_error_and_can_be_given() -> None:
    hidden = Hidden()

    def noise(x: Any) -> Any:
        return x * tt.from_numpy(hidden.rng.standard_normal(x.shape))

    y = tt.checkpoint(noise, _X.trace()).sum()

    with pytest.raises(tt.ArgumentValueError, match=r"computed something else.*give it as rng="):
        y.backward()

    hidden = Hidden()
    y = tt.checkpoint(noise, _X.trace(), rng=hidden.rng).sum()
    grads = y.backward()
    np.testing.assert_array_equal(
        grads[_X].numpy(), np.random.default_rng(0).standard_normal((4, 3))
    )


def test_a_tensor_that_owns_a_tape_and_is_no_input_is_an_error() -> None:
    outside = _X.trace()

    with pytest.raises(tt.UntracedTensorError, match="give it to checkpoint as another input"):
        tt.checkpoint(lambda x: x * outside, tt.ones((4, 3), np.float64).trace())


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((3, _X), {}, tt.ArgumentTypeError, "f must be a function, got int"),
        ((lambda: 3,), {}, tt.ArgumentTypeError, r"checkpoint\(f, x\)"),
        ((lambda x: x, 3.0), {}, tt.ArgumentTypeError, "input 0 must be a tensor"),
        ((lambda x: x, _X), {"rng": 0}, tt.ArgumentTypeError, "rng must be a numpy Generator"),
        ((lambda x: 3.0, _X), {}, tt.ArgumentTypeError, "the result of f"),
        ((lambda x: (x, x), _X.trace()), {}, tt.ArgumentTypeError, "the result of f.*tuple"),
        ((lambda x: x.detach(), _X.trace()), {}, tt.UntracedTensorError, "does not depend"),
    ],
)
def test_what_cannot_be_checkpointed_is_refused(
    arguments: Any, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tt.checkpoint(*arguments, **options)


def _peak(run: Any) -> int:
    tracemalloc.start()
    try:
        run(tt.ones((64, 1024)).trace()).sum().backward()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_peak_of_memory_is_that_of_one_part_and_the_ends_of_the_others() -> None:
    def part(x: Any) -> Any:
        for _ in range(8):
            x = (x * 0.5).tanh()
        return x

    def whole(x: Any) -> Any:
        for _ in range(8):
            x = part(x)
        return x

    def in_parts(x: Any) -> Any:
        for _ in range(8):
            x = tt.checkpoint(part, x)
        return x

    # 64 values of tanh are kept; in parts 8 ends and 8 values, and a few temporaries.
    assert _peak(in_parts) < 0.4 * _peak(whole)
