"""What a training does where something is not finite, files are there already, or it ends early."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import distributed, io, losses, nn, optim, training
from tapetensor.data import batches
from tapetensor.optim import exponential_moving_average
from tapetensor.training import EarlyStopping
from tests.io.models import assert_same
from tests.training.models import Batch, Net, Run, held_out_loss, loss_of, pressing_ctrl_c


def spoilt_at(*steps: int) -> Any:
    """Return a loss whose gradient is 0 / 0 at some calls, and whose value is finite."""
    calls = iter(range(1_000))
    return lambda *given: (spoilt if next(calls) in steps else loss_of)(*given)


def spoilt(model: Net, batch: Batch) -> tt.Tensor0D[tt.OwnedTape]:
    loss = loss_of(model, batch)
    return loss + (loss * 0.0).sqrt()


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def test_steps_whose_gradient_is_not_finite_are_skipped_and_counted(tmp_path: Path) -> None:
    path, run = tmp_path / "run.npz", Run()
    history = run.fit(loss_of=spoilt_at(1, 7, 8), check_finite="skip", checkpoint=path)

    assert history["skipped"] == [1, 2, 0]
    assert run.optimizer.steps == 18 - 3
    assert all(np.all(np.isfinite(one)) for one in io.state_dict(run.model).values())
    again = Run(seed=5).fit(epochs=4, check_finite="skip", checkpoint=path, resume=True)
    assert again["skipped"] == [1, 2, 0, 0]


def test_an_epoch_of_which_every_step_is_skipped_is_an_error() -> None:
    run = Run()
    with pytest.raises(tt.NumericalInstabilityError, match="of none of the 6 batches of epoch 2"):
        run.fit(loss_of=spoilt_at(*range(6, 12)), check_finite="skip")


@pytest.mark.parametrize("is_compiled", [False, True])
def test_the_op_whose_gradient_is_not_finite_is_named_when_it_is_asked_for(
    is_compiled: bool,
) -> None:
    where = r".* at .*test_safety\.py:\d+" if not is_compiled else ""
    with tt.source_lines(), pytest.raises(tt.NumericalInstabilityError, match=f"sqrt{where}"):
        Run().fit(loss_of=spoilt, check_finite="stop", compile=is_compiled)


def test_files_that_are_there_are_gone_on_from_or_begun_anew(tmp_path: Path) -> None:
    path, best = tmp_path / "run.npz", tmp_path / "best.npz"
    options: Any = {"checkpoint": path, "stop": EarlyStopping("loss", best=best)}
    Run().fit(**options)
    content = path.read_bytes(), best.read_bytes()
    for there in (path, best):
        with pytest.raises(
            tt.ArgumentValueError, match=r"is there already.*; resume=True .*overwrite=True"
        ):
            Run(seed=1).fit(**options)
        assert content == (path.read_bytes(), best.read_bytes())
        options.pop("checkpoint", None)
        del there

    options["checkpoint"] = path
    whole, anew = Run(seed=1), Run(seed=1)
    whole.fit()
    history = anew.fit(**options, overwrite=True)
    assert len(history) == 3
    assert_same(anew.state(), whole.state())
    assert_same(io.read(best), io.state_dict(whole.model))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["best.npz", "run.npz"]


@pytest.mark.parametrize("is_in_file", [False, True])
def test_it_stops_early_and_the_best_weights_are_back_in_the_end(
    tmp_path: Path, is_in_file: bool
) -> None:
    run, seen = Run(), []
    given = iter([0.5, 0.8, 0.1, math.nan, 0.8, 0.9])

    def score(model: Net, batch: Batch) -> float:
        seen.append(io.state_dict(model))
        return next(given)

    path = tmp_path / "best.npz" if is_in_file else None
    stop = EarlyStopping("score", patience=3, mode="max", best=path, restore=True)
    (first, *_) = run.held_out
    with pytest.warns(RuntimeWarning, match="the metric 'score' of epoch 4 is NaN"):
        history = run.fit(epochs=9, metrics={"score": score}, validation=[first], stop=stop)

    assert history.ended == "early stopping"
    assert len(seen) == len(history) == 5
    assert_same(io.state_dict(run.model), seen[1])
    if path is not None:
        assert_same(io.read(path), seen[1])


def test_a_best_state_in_memory_is_not_there_when_training_goes_on(tmp_path: Path) -> None:
    options: Any = {"checkpoint": tmp_path / "run.npz", "stop": EarlyStopping("loss", restore=True)}
    Run().fit(epochs=1, **options)
    with pytest.raises(tt.ArgumentValueError, match=r"EarlyStopping\(restore=True, best=path\)"):
        Run().fit(epochs=2, resume=True, **options)


def test_validation_without_metrics_is_the_loss_and_trains_nothing() -> None:
    run, other = Run(), Run()
    history = run.fit(validation=run.held_out, stop=EarlyStopping("val_loss", patience=9))
    other.fit()

    assert_same(run.state(), other.state())
    expected = training.evaluate(run.model, {"loss": held_out_loss}, run.held_out)["loss"]
    assert history["val_loss"][-1] == pytest.approx(expected, rel=1e-6)


def test_predictions_are_those_of_the_rows_in_their_order() -> None:
    model = Run().model
    x: tt.Tensor2D[int, L[6]] = tt.normal((23, 6), rng=np.random.default_rng(3))
    whole = model.forward(x)

    found = training.predict(model.forward, batches(x, size=8))
    np.testing.assert_allclose(found.numpy(), whole.numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(tt.ArgumentValueError, match="predict: there are no batches"):
        training.predict(model.forward, [])
    with pytest.raises(tt.UntracedTensorError, match="give batches of plain tensors"):
        training.predict(model.forward, [x.trace()])  # type: ignore[misc]  # that is the mistake


def test_a_moving_average_is_trained_validated_and_written_down(tmp_path: Path) -> None:
    path, run, other, hand = tmp_path / "run.npz", Run(), Run(seed=4), Run()
    average, follows = copy.deepcopy(run.model), copy.deepcopy(hand.model)

    def follow(step: int) -> float:
        if step:
            exponential_moving_average(follows, hand.model, 0.9)
        return 1e-3

    options: Any = {"metrics": {"held out": held_out_loss}, "validation": run.held_out}
    history = run.fit(epochs=2, average=(average, 0.9), checkpoint=path, **options)
    hand.fit(epochs=2, schedule=follow)
    exponential_moving_average(follows, hand.model, 0.9)

    assert_same(io.state_dict(average), io.state_dict(follows))
    expected = training.evaluate(average, {"held out": held_out_loss}, run.held_out)
    assert history["held out"][-1] == expected["held out"]
    resumed = copy.deepcopy(other.model)
    other.fit(epochs=3, average=(resumed, 0.9), checkpoint=path, resume=True, **options)
    run.fit(
        epochs=3, average=(average, 0.9), checkpoint=path, resume=True, overwrite=False, **options
    )
    assert_same(io.state_dict(resumed), io.state_dict(average))


def test_an_average_is_a_copy_of_the_model() -> None:
    run = Run()
    with pytest.raises(tt.ArgumentValueError, match=r"give it copy.deepcopy\(model\)"):
        run.fit(average=(run.model, 0.9))


# What JSON has, and a place in a training has not, at least not everywhere.
WRONG = [
    *(None, [], {}, "x", True, [None], [{"loss": None}], [[1]], {"a": 1}),
    *(-1, 1.5, math.nan, 10**30),
]


def test_a_place_in_the_data_that_cannot_be_is_refused_before_anything_changes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.npz"
    Run().fit(schedule=pressing_ctrl_c(8), checkpoint=path)
    notes = io.Notes(None)
    io.load_checkpoint(path, training=notes)
    good: dict[str, Any] = json.loads(json.dumps(notes.value))
    run = Run(seed=7)
    before = run.state()
    parts: dict[str, Any] = {"model": Run().model, "optimizer": Run().optimizer}
    accepted = []
    for name in good:
        for value in WRONG:
            changed = {**good, name: value}
            other = Run()
            parts = {"model": other.model, "optimizer": other.optimizer}
            io.save_checkpoint(path, training=io.Notes(changed), **parts)
            try:
                run.fit(epochs=1, checkpoint=path, resume=True)
            except tt.StateMismatchError:
                assert_same(run.state(), before)
            else:
                accepted.append((name, value))
                run = Run(seed=7)

    # These are places that a training may have.
    assert accepted == [
        ("rows", []),
        *[("total", value) for value in (-1, 1.5, 10**30)],
        ("weight", 10**30),
        *[("seconds", value) for value in (1.5, 10**30)],
    ]


RNG = np.random.default_rng(3)
# Which expert a batch is for, as its first part says: an integer that traces to a choice.
BATCHES = [(tt.normal((4, 3), np.float64, rng=RNG), at % 3 == 1) for at in range(7)]


class Experts(nn.Module):
    """Two layers, of which a batch goes through one."""

    first: nn.Linear[Any, Any, Any]
    second: nn.Linear[Any, Any, Any]

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.first = nn.Linear(3, 3, np.float64, rng=rng)
        self.second = nn.Linear(3, 3, np.float64, rng=rng)


def loss_of_experts(model: Experts, batch: Any) -> Any:
    x, is_second = batch
    expert = model.second if is_second else model.first
    return losses.mse(expert.forward(x.trace()), x)


@pytest.mark.parametrize(
    "options", [{}, {"compile": True}, {"clip_norm": 1e9}, {"ranks": distributed.alone()}]
)
def test_an_expert_without_rows_stays_as_it_is(options: dict[str, Any]) -> None:
    model = Experts()
    optimizer = optim.AdamW(model, lr=0.05)
    options = {"epochs": 3, "unused": "skip", **options}
    training.fit(model, optimizer, loss_of_experts, BATCHES, **options)
    found = io.state_dict(optimizer)

    assert found["first.weight.step"] == 3 * 5
    assert found["second.weight.step"] == 3 * 2
    assert found["steps"] == 3 * 7
