"""`fit` on many ranks, each checking its own side.

mpiexec -n 2 python -m tests.distributed.fitting FOLDER
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import data, distributed, io, nn, optim
from tapetensor.training import CsvLog, EarlyStopping, History, fit
from tests.distributed.training import build_model, loss_of
from tests.training.models import METRICS, SCHEDULE, Net, Run, numbers, pressing_ctrl_c
from tests.training.models import loss_of as of_training
from tests.training.test_safety import BATCHES, Experts


def classified(
    seed: int, ranks: distributed.Communicator, only: list[str] | None = None, **options: Any
) -> tuple[Any, History]:
    """Train on batches of 5 rows and a last one of 1, which divide among no ranks."""
    model, rng = build_model(seed), np.random.default_rng(seed)
    rows = np.random.default_rng(1)
    x = tt.normal((21, 6), np.float64, rng=rows)
    labels = tt.from_numpy(rows.integers(3, size=21), (21,))

    def held_out(model: Any, batch: Any) -> Any:
        return tt.losses.cross_entropy(model.forward(batch[0]), batch[1])

    history = fit(
        model,
        optim.AdamW(nn.Selection(model, only=only), lr=1e-2),
        lambda model, batch: loss_of(model, *batch),
        data.batches(x, labels, size=5, rng=rng),
        epochs=4,
        metrics={"held out": held_out},
        validation=data.batches(x, labels, size=8),
        ranks=ranks,
        **options,
    )
    return model, history


def training_is_that_of_one_process(ranks: distributed.Communicator) -> None:
    """Begin with rank 0's values and order, and end with the parameters of one process."""
    frozen: dict[str, Any] = {"clip_norm": 0.01, "only": ["0"]}
    for options in ({"clip_norm": 0.5}, {"compile": True}, frozen):
        expected, expected_history = classified(0, distributed.alone(), **options)
        model, history = classified(ranks.rank, ranks, **options)
        for name, array in io.state_dict(expected).items():
            np.testing.assert_allclose(io.state_dict(model)[name], array, rtol=1e-9, atol=1e-12)
        for column in ("epoch", "steps", "loss", "held out"):
            np.testing.assert_allclose(history[column], expected_history[column], rtol=1e-9)


def same_on_all(ranks: distributed.Communicator, run: Run, history: History) -> bool:
    """Tell whether every rank has what rank 0 has."""
    assert ranks.transport is not None
    arrays = [run.state()[name].tobytes() for name in sorted(run.state())]
    texts = ranks.transport.gather(b"".join(arrays) + repr(history.rows).encode())
    return len(set(texts)) == 1


def a_training_goes_on_to_the_bit(folder: Path, ranks: distributed.Communicator) -> None:
    """Interrupt one rank in the middle of an epoch, and go on from the file of rank 0."""
    for is_compiled in (False, True):
        path = folder / f"run {is_compiled}.npz"
        options: dict[str, Any] = {"ranks": ranks, "compile": is_compiled, "metrics": METRICS}
        runs = [Run(seed=seed + 10 * ranks.rank) for seed in (1, 1, 2)]
        options["validation"] = runs[0].held_out
        whole = runs[0].fit(schedule=SCHEDULE, **options)
        is_last = ranks.rank == ranks.size - 1
        ctrl_c = pressing_ctrl_c(8 if is_last else -1)
        first = runs[1].fit(schedule=ctrl_c, checkpoint=path, **options)
        assert first.ended == "interrupted"
        assert runs[1].optimizer.steps == 9
        # What no other rank can see.
        seen = path if ranks.is_root else "/nowhere/run.npz"
        rest = runs[2].fit(schedule=SCHEDULE, checkpoint=seen, resume=True, **options)
        assert numbers(rest) == numbers(whole)
        assert same_on_all(ranks, runs[0], whole)
        for name, array in runs[0].state().items():
            assert array.tobytes() == runs[2].state()[name].tobytes(), name


def what_functions_draw_from_is_alike_and_goes_on(
    folder: Path, ranks: distributed.Communicator
) -> None:
    """Draw in functions from generators of their own, and count there; go on in the middle."""

    def trained(seed: int, schedule: Any, **options: Any) -> tuple[Run, History]:
        run, rng, noise, count = Run(seed=7), np.random.default_rng(seed), [], [0]
        noise.append(np.random.RandomState(seed))

        def batches() -> Any:
            count[0] += 1
            yield from data.batches(*run.batches._tensors, size=8 + 3 * (count[0] % 2), rng=rng)

        def noisy(model: Net, batch: Any) -> Any:
            x, labels = batch
            drawn = tt.from_numpy(noise[0].normal(size=x.shape).astype(np.float32), x.shape)
            return of_training(model, (x + drawn, labels))

        history = run.fit(loss_of=noisy, batches=batches, schedule=schedule, ranks=ranks, **options)
        return run, history

    path = folder / "drawn.npz"
    run, whole = trained(ranks.rank, SCHEDULE)
    assert same_on_all(ranks, run, whole)
    trained(ranks.rank, pressing_ctrl_c(10 if ranks.is_root else -1), checkpoint=path)
    resumed, rest = trained(ranks.rank + 5, SCHEDULE, checkpoint=path, resume=True)
    assert numbers(rest) == numbers(whole)
    assert same_on_all(ranks, resumed, rest)


def experts_without_rows_stay_as_they_are(ranks: distributed.Communicator) -> None:
    """Skip what has a gradient on no rank, and step by what has one on a single rank."""

    def loss(model: Experts, batch: Any) -> Any:
        x, is_second = batch
        last = ranks.size - 1
        # The last rank goes its own way where the batch is for the second expert.
        expert = model.second if is_second and ranks.rank == last else model.first
        return tt.losses.mse(expert.forward(x.trace()), x)

    for is_compiled in (False, True):
        model = Experts()
        optimizer = optim.AdamW(model, lr=0.05)
        options: dict[str, Any] = {"unused": "skip", "compile": is_compiled, "ranks": ranks}
        fit(model, optimizer, loss, BATCHES, epochs=2, **options)
        state = io.state_dict(optimizer)
        assert state["second.weight.step"] == 2 * sum(is_second for _, is_second in BATCHES)
        assert state["first.weight.step"] == 2 * len(BATCHES)
        assert ranks.transport is not None
        arrays = [array.tobytes() for array in (io.state_dict(model) | state).values()]
        assert len(set(ranks.transport.gather(b"".join(arrays)))) == 1


def rank_0_writes_and_all_stop(folder: Path, ranks: distributed.Communicator) -> None:
    """Stop early by a metric that differs between the ranks, and write on rank 0 alone."""
    run = Run()
    folder = folder / f"of rank {ranks.rank}"
    folder.mkdir()
    score: Callable[..., float] = lambda model, batch: float(ranks.rank)  # noqa: E731
    stop = EarlyStopping("score", patience=2, best=folder / "best.npz")
    history = run.fit(
        epochs=9,
        metrics={"score": score},
        validation=run.held_out,
        stop=stop,
        checkpoint=folder / "run.npz",
        log=[CsvLog(folder / "log.csv")],
        ranks=ranks,
    )
    assert history.ended == "early stopping"
    assert len(history) == 3
    written = ["best.npz", "log.csv", "run.npz"] if ranks.is_root else []
    assert sorted(path.name for path in folder.iterdir()) == written


def dropout_differs_by_rank(ranks: distributed.Communicator) -> None:
    """Draw other masks on every rank and step, and have the same generator after it."""
    drawn: list[bytes] = []

    def noted(model: Net, batch: Any) -> Any:
        drawn.append(model.drop.forward(tt.ones((64,)).trace()).detach().numpy().tobytes())
        return tt.losses.mse(model.forward(batch[0].trace()), tt.zeros((len(batch[0]), 3)))

    run = Run(seed=ranks.rank)
    history = run.fit(epochs=1, loss_of=noted, ranks=ranks)
    assert same_on_all(ranks, run, history)
    assert ranks.transport is not None
    masks = [mask for one in ranks.transport.gather(b"".join(drawn)) for mask in _pieces(one)]
    assert len(masks) == 6 * ranks.size
    assert len(set(masks)) == len(masks)


def _pieces(content: bytes, size: int = 4 * 64) -> list[bytes]:
    return [content[start : start + size] for start in range(0, len(content), size)]


def what_differs_is_refused(ranks: distributed.Communicator) -> None:
    """Let the last rank have other data, other batches, or nothing that can be divided."""
    is_last = ranks.rank == ranks.size - 1
    wrong: list[tuple[Run, dict[str, Any], str]] = [
        (Run(rows=50 if is_last else 44), {}, "number of batches: 7"),
        (Run(), {"epochs": 4 if is_last else 3}, "fit's epochs: 4"),
        (Run(), {"rng": [np.random.default_rng()] * is_last}, "generators: ['PCG64 0', "),
        (Run(rows=43 if is_last else 44), {}, "fit: the ranks have other batches"),
        (Run(), {"batches": lambda: list(Run().batches)[is_last:]}, "fit: the ranks have other"),
        (
            Run(),
            {"metrics": METRICS, "validation": list(Run().held_out)[is_last:]},
            "evaluate: the ranks have other batches",
        ),
    ]
    other_rate, other_betas = Run(), Run()
    other_rate.optimizer.lr = 0.1 + 0.1 * is_last
    other_betas.optimizer = optim.AdamW(other_betas.model, betas=(0.9 - 0.1 * is_last, 0.99))
    wrong += [
        (other_rate, {}, "learning rate: 0.2"),
        (other_betas, {}, "betas=(0.8, 0.99)"),
    ]
    for run, options, said in wrong:
        with pytest.raises(tt.DistributedError, match=re.escape(said)):
            run.fit(ranks=ranks, **options)


def a_loss_that_is_not_finite_names_its_rank_or_is_skipped(ranks: distributed.Communicator) -> None:
    """Let the loss of the last rank be NaN, once; end there, or do not take the step."""
    last = ranks.size - 1

    def spoilt(run: Run) -> Callable[[Net, Any], Any]:
        calls = iter(range(1_000))

        def loss(model: Net, batch: Any) -> Any:
            is_spoilt = next(calls) == 3 and ranks.rank == last
            return of_training(model, batch) + (np.nan if is_spoilt else 0.0)

        return loss

    run = Run()
    with pytest.raises(tt.NumericalInstabilityError, match=f"batch 4 is nan, on rank {last};"):
        run.fit(loss_of=spoilt(run), ranks=ranks)
    run = Run()
    history = run.fit(loss_of=spoilt(run), ranks=ranks, check_finite="skip")
    assert history["skipped"] == [1, 0, 0]
    assert run.optimizer.steps == 17
    assert same_on_all(ranks, run, history)


def the_best_and_the_average_are_those_of_all(ranks: distributed.Communicator) -> None:
    """Give the average its best state back, the same on every rank."""
    run = Run()
    average = copy.deepcopy(run.model)
    scores = iter([0.5, 0.1, 0.9, 0.9, 0.9, 0.9])
    history = run.fit(
        epochs=9,
        metrics={"score": lambda model, batch: next(scores)},
        validation=[next(iter(run.held_out))],
        stop=EarlyStopping("score", patience=1, restore=True),
        average=(average, 0.5),
        ranks=ranks,
    )
    assert history.ended == "early stopping"
    run.model = average
    assert same_on_all(ranks, run, history)


def main() -> None:
    """Do all of it."""
    ranks, folder = distributed.world(), Path(sys.argv[1])
    for check in (
        training_is_that_of_one_process,
        partial(a_training_goes_on_to_the_bit, folder),
        partial(what_functions_draw_from_is_alike_and_goes_on, folder),
        experts_without_rows_stay_as_they_are,
        partial(rank_0_writes_and_all_stop, folder),
        dropout_differs_by_rank,
        what_differs_is_refused,
        a_loss_that_is_not_finite_names_its_rank_or_is_skipped,
        the_best_and_the_average_are_those_of_all,
    ):
        check(ranks)
        ranks.barrier()
    print("done", flush=True)


if __name__ == "__main__":
    main()
