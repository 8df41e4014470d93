"""How tensors get to arrays of other libraries and back, and what is said where two meet."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import data, io, losses, nn, optim, testing, training
from tests.arrays import foreign
from tests.arrays.foreign import ForeignArray
from tests.arrays.placing import abroad, home
from tests.io.models import FORMATS, assert_same, net
from tests.typing.pages import blocks

_ARRAY = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)


def test_a_tensor_is_made_of_a_copy_that_lies_where_the_array_lies() -> None:
    array = foreign.asarray(_ARRAY)
    x = tt.from_array(array, (2, 3))
    array[0, 0] = 9.0

    assert x.shape == (2, 3)
    assert x.dtype == np.float32
    np.testing.assert_array_equal(home(x), _ARRAY)
    np.testing.assert_array_equal(tt.from_array(_ARRAY).numpy(), _ARRAY)
    scalar: Any = np.float32(2.0)
    assert tt.from_array(scalar, ()).item() == 2.0


def test_an_array_of_another_library_goes_by_the_function_that_takes_it() -> None:
    from_numpy: Any = tt.from_numpy
    with pytest.raises(tt.ArgumentTypeError, match=r"other libraries there is tt\.from_array"):
        from_numpy(foreign.asarray(_ARRAY))


def test_the_elements_are_read_on_the_host() -> None:
    x = abroad(_ARRAY)

    assert isinstance(x.numpy(), np.ndarray)
    assert not x.numpy().flags.writeable
    assert x.sum().item() == 21.0
    assert f"{x.sum():.1f}" == "21.0"
    assert bool(x.sum() > 20.0)
    assert [float(row.sum()) for row in x] == [6.0, 15.0]
    assert repr(abroad(np.ones(2))).endswith("shape=(2,), dtype=float64, NoneTape, foreign)")


def test_a_gradient_flows_back_to_the_library_where_the_tensor_was() -> None:
    x = tt.from_numpy(_ARRAY)
    there = abroad(_ARRAY)

    gradient: Any = (x.trace().to(foreign) * there).sum().backward()[x]
    back: Any = (there.trace().to(np) * x).sum().backward()[there]

    assert isinstance(gradient.array, np.ndarray)
    np.testing.assert_array_equal(gradient.numpy(), _ARRAY)
    np.testing.assert_array_equal(home(back), _ARRAY)
    np.testing.assert_array_equal(home(there.to(foreign)), _ARRAY)


def test_a_library_whose_arrays_do_not_dispatch_is_refused() -> None:
    lists: Any = SimpleNamespace(__name__="lists", asarray=lambda a: a.tolist())
    halves: Any = SimpleNamespace(
        __name__="halves", asarray=lambda a: foreign.asarray(a.astype(np.float16))
    )

    with pytest.raises(tt.ArgumentTypeError, match=r"to: lists\.asarray returns list"):
        tt.ones((2,)).to(lists)
    with pytest.raises(tt.DTypeError, match=r"halves\.asarray made float16 of float32"):
        tt.ones((2,)).to(halves)


@pytest.mark.parametrize(
    "op",
    [
        lambda x, y: x + y,
        lambda x, y: y * x,
        lambda x, y: x.trace() @ y.transpose(),
        lambda x, y: tt.concat((x, y), axis=0),
        lambda x, y: tt.where(x > 0.0, y, y),
        lambda x, y: tt.where(y > 0.0, x, x),
        lambda x, y: tt.maximum(x, y),
        lambda x, y: tt.einsum("ij,ij->i", x, y),
        lambda x, y: tt.scaled_dot_product_attention(y, y, y, mask=x[:, :2] > 0.0),
        lambda x, y: losses.mse(x, y),
        lambda x, y: x.trace().exp().backward(y),
        lambda x, y: y == x,
        lambda x, y: x > y,
        lambda x, y: (x > 0.0) & (y > 0.0),
    ],
)
def test_two_libraries_in_one_op_are_refused_with_both_names_and_the_cure(op: Any) -> None:
    message = r"foreign and numpy do not mix.*x\.to\(foreign\)"
    with pytest.raises(tt.ArgumentTypeError, match=message):
        op(abroad(_ARRAY), tt.from_numpy(_ARRAY))


def test_masks_of_attention_and_indices_may_lie_on_the_host() -> None:
    x, twin = abroad(_ARRAY), tt.from_numpy(_ARRAY)
    mask = tt.from_numpy(np.array([[True, False], [True, True]]))

    found = tt.scaled_dot_product_attention(x, x, x, mask=mask)
    expected = tt.scaled_dot_product_attention(twin, twin, twin, mask=mask)

    np.testing.assert_allclose(home(found), expected.numpy(), rtol=1e-6)
    np.testing.assert_array_equal(home(x[:, tt.from_numpy(np.array([2, 0]))]), _ARRAY[:, [2, 0]])
    np.testing.assert_array_equal(home(x[np.array([True, False])]), _ARRAY[:1])


@pytest.mark.parametrize("ending", FORMATS)
def test_files_do_not_say_where_a_model_was(ending: str, tmp_path: Path) -> None:
    model, twin = net(1).to(foreign), net(1)
    optimizer, twin_optimizer = optim.Adam(model), optim.Adam(twin)
    for one, stepped in ((model, optimizer), (twin, twin_optimizer)):
        grads = tt.Gradients()
        for parameter in one.parameters().values():
            grads.insert(parameter, parameter)
        stepped.step(grads)
    path = tmp_path / f"model{ending}"

    io.save(path, model)
    loaded = net(2)
    io.load(path, loaded)
    assert_same(io.state_dict(loaded), io.state_dict(twin))
    io.load(path, there := net(3).to(foreign))
    assert_same(io.state_dict(there), io.state_dict(twin))
    assert all(isinstance(one.array, ForeignArray) for one in there.parameters().values())

    io.save(path, optimizer)
    io.load(path, restored := optim.Adam(there))
    assert_same(io.state_dict(restored), io.state_dict(twin_optimizer))


def test_fit_trains_there_and_goes_on_to_the_bit(tmp_path: Path) -> None:
    def fitted(library: Any, epochs: int, checkpoint: str) -> tuple[nn.Module, list[float]]:
        rng = np.random.default_rng(0)
        layers = nn.Linear(2, 8, rng=rng), nn.Dropout(0.1, rng=rng), nn.Linear(8, 2, rng=rng)
        model: Any = nn.Sequential(*layers).to(library)
        x: Any = tt.normal((20, 2), rng=rng).to(library)

        def loss_of(model: Any, batch: Any) -> Any:
            return losses.mse(model.forward(batch.trace()), batch)

        history = training.fit(
            model,
            optim.Adam(model, lr=0.01),
            loss_of,
            data.batches(x, size=6, rng=rng),
            epochs=epochs,
            metrics={"error": lambda model, batch: losses.mse(model.forward(batch), batch)},
            validation=[x],
            clip_norm=0.5,
            stop=training.EarlyStopping("error", best=tmp_path / f"best of {checkpoint}"),
            checkpoint=tmp_path / checkpoint,
            resume=True,
        )
        return model, history["error"]

    _, at_home = fitted(np, 3, "home.npz")
    whole, there = fitted(foreign, 3, "whole.npz")
    fitted(foreign, 2, "part.npz")
    resumed, _ = fitted(foreign, 3, "part.npz")

    np.testing.assert_allclose(there, at_home, rtol=1e-4)
    assert_same(io.state_dict(resumed), io.state_dict(whole))
    assert all(isinstance(one.array, ForeignArray) for one in resumed.parameters().values())


def test_the_compiler_says_that_it_is_for_numpy() -> None:
    step: Any = tt.compile(lambda x: x * 2.0)

    with pytest.raises(tt.ArgumentTypeError, match=r"compile: argument 0 .* foreign"):
        step(abroad(_ARRAY))


def test_the_page_moves_a_model_and_a_batch_as_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    cupy = SimpleNamespace(
        asarray=foreign.asarray,
        ones=lambda shape, dtype: foreign.asarray(np.ones(shape, dtype)),
        float32=np.float32,
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    names: dict[str, Any] = {
        "io": io,
        "losses": losses,
        "np": np,
        "optim": optim,
        "tt": tt,
        "rng": rng,
        "Mlp": nn.Linear[L[4], L[3]],
        "rows": np.ones((32, 4), np.float32),
        "labels": tt.from_numpy(rng.integers(3, size=32), (32,)),
    }
    training, meeting = blocks("arrays", 'python title="with CuPy"')
    exec(compile(training, "docs/arrays.md", "exec"), names)
    with pytest.raises(tt.ArgumentTypeError) as raised:
        exec(compile(meeting, "docs/arrays.md", "exec"), names)

    assert home(names["y"]).shape == (32, 4)
    assert names["optimizer"].steps == 1
    assert (tmp_path / "model.npz").exists()
    said = f"ArgumentTypeError: {raised.value}\n".replace(ForeignArray.__module__, "cupy")
    assert said in blocks("arrays", "text")


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
def test_no_tensor_is_made_of_one_and_a_plan_takes_none(array: Any) -> None:
    for name, take in (("from_numpy", tt.from_numpy), ("compile", tt.compile(lambda x: x))):
        with pytest.raises(tt.ArgumentTypeError, match=rf"{name}: .* masked.*filled\(0\)"):
            take(array)


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
