"""`fit` does what the loop written by hand does, and writes it down."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import distributed, io, nn, optim, training
from tapetensor.data import collate, shuffled
from tests.io.models import assert_same
from tests.training.models import (
    METRICS,
    SCHEDULE,
    Batch,
    Net,
    Run,
    accuracy,
    held_out_loss,
    loss_of,
    numbers,
)


def evaluated(metric: Any) -> Any:
    return training.evaluate(Run().model, {"x": metric}, Run().held_out)


def trained_by_hand(run: Run, epochs: int, max_norm: float) -> list[float]:
    means = []
    for _ in range(epochs):
        total, rows = 0.0, 0
        for batch in run.batches:
            run.optimizer.lr = SCHEDULE(run.optimizer.steps)
            loss = loss_of(run.model, batch)
            total += len(batch[0]) * loss.item()
            rows += len(batch[0])
            grads = loss.backward(wrt=run.model)
            grads.clip_by_global_norm(max_norm)
            run.optimizer.step(grads)
        means.append(total / rows)
    return means


@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_it_takes_the_steps_of_the_loop_written_by_hand(max_norm: float) -> None:
    run, by_hand = Run(), Run()
    means = trained_by_hand(by_hand, 3, max_norm)
    history = run.fit(schedule=SCHEDULE, clip_norm=max_norm)

    assert_same(run.state(), by_hand.state())
    assert history["loss"] == means
    assert history["epoch"] == [1, 2, 3]
    assert history["steps"] == [6, 12, 18]
    assert history["lr"] == [SCHEDULE(5), SCHEDULE(11), SCHEDULE(17)]
    assert history.ended == "epochs"


@pytest.mark.parametrize("max_norm", [None, 0.5])
def test_a_compiled_step_trains_the_same_model(max_norm: float | None) -> None:
    run, compiled = Run(), Run()
    history = run.fit(schedule=SCHEDULE, clip_norm=max_norm)
    other = compiled.fit(schedule=SCHEDULE, clip_norm=max_norm, compile=True)

    np.testing.assert_allclose(history["loss"], other["loss"], rtol=1e-5)
    for name, array in run.state().items():
        np.testing.assert_allclose(compiled.state()[name], array, rtol=1e-3, atol=1e-5)


def test_a_loss_that_is_not_finite_ends_the_training_before_its_checkpoint(tmp_path: Any) -> None:
    run = Run()

    def exploding(model: Net, batch: Batch) -> tt.Tensor0D[tt.OwnedTape]:
        loss = loss_of(model, batch)
        return loss + math.inf if run.optimizer.steps == 8 else loss

    path = tmp_path / "run.npz"
    with pytest.raises(tt.NumericalInstabilityError, match=r"epoch 2, batch 3 is inf; .*norm"):
        run.fit(loss_of=exploding, checkpoint=path)
    other = Run(seed=3)
    history = other.fit(checkpoint=path, resume=True)

    assert all(np.isfinite(array).all() for array in tt.io.state_dict(other.model).values())
    assert history["steps"] == [6, 12, 18]


def test_a_gradient_that_is_not_finite_writes_over_neither_checkpoint_nor_best_model(
    tmp_path: Any,
) -> None:
    run, paths = Run(), (tmp_path / "run.npz", tmp_path / "best.npz")

    def spoilt(model: Net, batch: Batch) -> tt.Tensor0D[tt.OwnedTape]:
        loss = loss_of(model, batch)
        # The last batch of the second epoch: a finite loss, whose slope is 0 / 0.
        return loss + (loss * 0.0).sqrt() if run.optimizer.steps == 11 else loss

    stop = training.EarlyStopping("held_out", patience=5, best=paths[1])
    options: Any = {"checkpoint": paths[0], "stop": stop, "metrics": {"held_out": held_out_loss}}
    run.fit(epochs=1, **options, validation=run.batches)
    before = [path.read_bytes() for path in paths]
    with (
        np.errstate(all="ignore"),
        pytest.raises(
            tt.NumericalInstabilityError, match=r"the parameter '.*' is not finite after step 12"
        ),
    ):
        run.fit(loss_of=spoilt, **options, validation=run.batches, resume=True)

    assert [path.read_bytes() for path in paths] == before
    assert Run(seed=3).fit(checkpoint=paths[0], resume=True)["steps"] == [6, 12, 18]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epochs": 0}, tt.ArgumentValueError, "fit: epochs must be > 0, got 0"),
        ({"epochs": 1.5}, tt.ArgumentTypeError, "fit: epochs"),
        ({"metrics": METRICS}, tt.ArgumentTypeError, "metrics need validation"),
        ({"compile": True, "check_finite": "skip"}, tt.ArgumentValueError, "has none to look at"),
        ({"check_finite": True}, tt.ArgumentValueError, "fit: check_finite must be"),
        ({"unused": None}, tt.ArgumentValueError, 'fit: unused must be "error" or "skip"'),
        ({"average": 0.9}, tt.ArgumentTypeError, "a copy of the model and a decay"),
        ({"resume": True, "overwrite": True}, tt.ArgumentValueError, "exclude each other"),
        ({"metrics": {"loss": accuracy}, "validation": []}, tt.ArgumentValueError, "a column loss"),
        ({"metrics": {"a": 3}, "validation": []}, tt.ArgumentTypeError, "functions by name"),
        ({"batches": []}, tt.ArgumentValueError, "fit: there are no batches"),
        ({"batches": iter([1])}, tt.ArgumentTypeError, "is used up by the first"),
        ({"batches": 3}, tt.ArgumentTypeError, "fit: batches must be batches, or a function"),
        (
            {"stop": training.EarlyStopping("accuracy")},
            tt.ArgumentValueError,
            "stop watches 'accuracy', which is no metric; there are loss",
        ),
        ({"resume": True}, tt.ArgumentValueError, "resume needs the path of a checkpoint"),
        ({"rng": 3}, tt.ArgumentTypeError, "rng must be a numpy Generator"),
        ({"loss_of": 3}, tt.ArgumentTypeError, "fit: loss_of must be a function, got int"),
        (
            {"loss_of": lambda model, batch: None},
            tt.ArgumentTypeError,
            "fit: loss_of must return the loss, a traced tensor, got NoneType",
        ),
        ({"schedule": 0.1}, tt.ArgumentTypeError, "fit: schedule must be a function, got float"),
        ({"stop": "loss"}, tt.ArgumentTypeError, "fit: stop must be an EarlyStopping, got str"),
        (
            {"log": training.CsvLog("log.csv")},
            tt.ArgumentTypeError,
            r"fit: log must be a list of logs, \[CsvLog\(\.\.\.\)\], say, got CsvLog",
        ),
        ({"log": "log.csv"}, tt.ArgumentTypeError, "fit: log must be a list of logs"),
        ({"clip_norm": 0.0}, tt.ArgumentValueError, "fit: clip_norm must be > 0"),
        ({"model": "model"}, tt.ArgumentTypeError, "fit: model must be a Module, got str"),
        ({"optimizer": 3}, tt.ArgumentTypeError, "fit: optimizer must be an Optimizer, got int"),
    ],
)
def test_bad_arguments_are_refused_before_a_step(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    run = Run()
    before = run.state()
    with pytest.raises(error, match=message):
        run.fit(**options)

    assert_same(run.state(), before)


def test_a_history_shows_how_far_it_got() -> None:
    history = Run().fit(epochs=2)

    assert repr(history).startswith("History(2 epochs, ended by epochs; loss ")
    assert history.columns == ["epoch", "steps", "lr", "seconds", "loss"]
    assert numbers(history)[0].keys() == {"epoch", "steps", "lr", "loss"}
    with pytest.raises(tt.ArgumentValueError, match="no column 'accuracy'; there are epoch, steps"):
        history["accuracy"]


@pytest.mark.parametrize("is_compiled", [False, True])
def test_frozen_parameters_do_not_count_in_the_norm_that_is_clipped(is_compiled: bool) -> None:
    run = Run()
    head = nn.Selection(run.model, only=["out"])
    run.optimizer = optim.Sgd(head, lr=1.0)
    before = {name: tensor.numpy().copy() for name, tensor in head.parameters().items()}
    (batch, *_) = run.held_out
    run.fit(epochs=1, batches=[batch], clip_norm=1e-3, compile=is_compiled)

    moved = [tensor.numpy() - before[name] for name, tensor in head.parameters().items()]
    assert math.sqrt(sum([(step**2).sum() for step in moved])) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: evaluated(lambda model, batch: "much"), "evaluate: the metric 'x' must give"),
        (
            lambda: evaluated(lambda model, batch: model.forward(batch[0])),
            r"evaluate: the metric 'x' must give .* got shape \(\d+, 3\)",
        ),
        (lambda: Run().fit(checkpoint=5), "fit: checkpoint must be a path, got int"),
        (lambda: Run().fit(log=[1]), "fit: a log has the methods start, write and close"),
        (
            lambda: Run().fit(metrics=METRICS, validation=(tt.ones((2, 2)), tt.ones((2,)))),
            r"fit: validation must be batches, .*validation=\[\(x, labels\)\]",
        ),
        (lambda: training.evaluate(None, METRICS, []), "evaluate: model must be a Module"),  # type: ignore[misc]  # on purpose
        (
            lambda: training.evaluate(Run().model, METRICS, [], ranks="x"),  # type: ignore[arg-type]  # on purpose
            "evaluate: ranks must be what distributed.world",
        ),
        (lambda: training.History("abc"), "History: a row must be a dict"),  # type: ignore[arg-type]  # on purpose
        (lambda: training.EarlyStopping("loss", best=5), "EarlyStopping: best must be a path"),  # type: ignore[arg-type]  # on purpose
        (lambda: training.CsvLog(1), "CsvLog: path must be a path, got int"),  # type: ignore[arg-type]  # on purpose
        (lambda: training.History(5), "History: rows must be a list of dicts"),  # type: ignore[arg-type]  # on purpose
        (lambda: training.TensorBoardLog(5), "TensorBoardLog: folder must be a path"),  # type: ignore[arg-type]  # on purpose
        (lambda: Run().fit(batches="abc"), "fit: batches must be batches, or a function"),
        (lambda: Run().fit(batches=lambda x: x), r"fit: batches is called as batches\(\), which"),
        (lambda: Run().fit(schedule=lambda: 0.1), r"fit: schedule is called as schedule\(step\)"),
        (
            lambda: training.fit(Run().model, Run().optimizer, lambda m, x, y: x, [], epochs=1),  # type: ignore[arg-type, misc]  # on purpose
            r"fit: loss_of is called as loss_of\(model, batch\), .* required argument: 'y'",
        ),
        (
            lambda: training.evaluate(Run().model, {"a": lambda model: 0.0}, [(1,)]),  # type: ignore[dict-item, misc]  # on purpose
            r"evaluate: metrics\['a'\] is called as metrics\['a'\]\(model, batch\), which",
        ),
        (
            lambda: training.predict(lambda: tt.ones((2,)), [1]),  # type: ignore[arg-type, misc]  # on purpose
            r"predict: forward is called as forward\(batch\), which what was given does not",
        ),
        (lambda: distributed.alone().mean([1.0]), "sum: takes numbers, got"),  # type: ignore[arg-type]  # on purpose
        (lambda: distributed.alone().mean("abc"), "sum: takes numbers, got"),  # type: ignore[arg-type]  # on purpose
        (lambda: collate(None), "collate: rows must be a list of tuples"),  # type: ignore[call-overload]  # on purpose
        (lambda: shuffled({"a": 1}, np.random.default_rng(0)), "shuffled: a dataset has"),  # type: ignore[dict-item]  # on purpose
        (lambda: optim.schedules.cosine(0.1, 10)(None), "cosine: step must be an int"),  # type: ignore[arg-type]  # on purpose
        (lambda: tt.zeros({2, 3}), "zeros: a shape is a tuple of ints"),  # type: ignore[call-overload]  # on purpose
        (lambda: tt.zeros(b"ab"), "zeros: a shape is a tuple of ints"),  # type: ignore[call-overload]  # on purpose
    ],
)
def test_an_argument_of_the_wrong_kind_goes_by_its_name(call: Any, message: str) -> None:
    with pytest.raises(tt.ArgumentTypeError, match=f"^{message}"):
        call()


def test_what_early_stopping_and_an_evaluation_cannot_be_is_refused() -> None:
    refused: list[tuple[Any, str]] = [
        (lambda: training.EarlyStopping("loss", patience=0), "patience must be > 0"),
        (lambda: training.EarlyStopping("loss", min_delta=-1.0), "min_delta must be >= 0"),
        (lambda: training.EarlyStopping("loss", mode="best"), 'mode must be "min" or "max"'),  # type: ignore[arg-type]  # on purpose
        (lambda: Run().fit(metrics=METRICS, validation=[]), "evaluate: there are no batches"),
    ]
    for call, message in refused:
        with pytest.raises(tt.ArgumentValueError, match=message):
            call()


@pytest.mark.parametrize("path", ["", "a\0b.npz"])
def test_a_path_that_names_no_file_is_refused_by_name(path: str) -> None:
    for call in (
        lambda: Run().fit(checkpoint=path),
        lambda: training.CsvLog(path),
        lambda: io.save(path, Run().model),
        lambda: io.read(path),
    ):
        with pytest.raises(tt.ArgumentValueError, match="must name a file, got"):
            call()


def test_what_is_cut_into_batches_elsewhere_is_refused_here() -> None:
    x, labels = tt.ones((8, 6)), tt.from_numpy(np.zeros(8, np.int64), (8,))
    parts: list[tuple[Any, str]] = [
        ((x, labels), "the parts of one"),
        ((x.numpy(), labels.numpy()), "the parts of one"),
        (((x, x), labels), "the parts of one"),
        ((x, [0] * 8), "the parts of one"),
        ([x, labels], "the parts of one"),
        (lambda: (x, labels), "the parts of one"),
        (x, r"a Tensor of shape \(8, 6\), whose rows"),
        (x.numpy(), r"a ndarray of shape \(8, 6\), whose rows"),
    ]
    for source, said in parts:
        for name in ("batches", "validation"):
            with pytest.raises(tt.ArgumentTypeError, match=f"batches.*{said}"):
                Run().fit(epochs=1, **{name: source})
        with pytest.raises(tt.ArgumentTypeError, match=f"evaluate: batches must .*{said}"):
            training.evaluate(Run().model, {"one": lambda model, batch: 1.0}, source)
        with pytest.raises(tt.ArgumentTypeError, match=f"predict: batches must .*{said}"):
            training.predict(lambda batch: batch, source)
