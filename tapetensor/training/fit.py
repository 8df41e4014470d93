"""The training loop."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence, Sized
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import TypeVar

from tapetensor.arguments import (
    as_flag,
    as_number,
    as_size,
    check_choice,
    check_function,
    check_kind,
    check_path,
)
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, at_the_call
from tapetensor.nn import Module
from tapetensor.optim import Optimizer
from tapetensor.optim.schedules import Schedule
from tapetensor.training.checkpoint import Checkpoint, Position, TrainingFiles, refuse_not_finite
from tapetensor.training.epoch import (
    EpochRunner,
    Finite,
    Interruption,
    Loss,
    Unused,
    averaging,
    check_same_start,
    count_batches,
    from_root,
    make_alike,
    make_streams_alike,
    settings_of,
    step_of,
    step_of_ranks,
)
from tapetensor.training.evaluation import (
    Batch,
    M,
    Metric,
    Source,
    check_batches,
    check_metrics,
    communicator_of,
    evaluate,
)
from tapetensor.training.history import COLUMNS, SKIPPED, EarlyStopping, Ended, History, Row
from tapetensor.training.logs import CsvLog, Log, ProgressBar
from tapetensor.training.streams import found_streams

if TYPE_CHECKING:
    from tapetensor.distributed import Communicator

HeldOut = TypeVar("HeldOut", default=Any)


def fit(
    model: M,
    optimizer: Optimizer,
    loss_of: Loss[M, Batch],
    batches: Source[Batch],
    *,
    epochs: int,
    metrics: Mapping[str, Metric[M, HeldOut]] | None = None,
    validation: Source[HeldOut] | None = None,
    schedule: Schedule | None = None,
    clip_norm: float | None = None,
    stop: EarlyStopping | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    rng: np.random.Generator | Iterable[np.random.Generator] | None = None,
    log: Sequence[Log] = (),
    progress: bool | None = None,
    compile: bool = False,
    check_finite: Finite = None,
    unused: Unused = "error",
    average: tuple[M, float] | None = None,
    ranks: Communicator | None = None,
) -> History:
    """Train a model: a step for each batch, epoch by epoch, and return what happened.

        for batch in batches:
            optimizer.lr = schedule(optimizer.steps)
            loss = loss_of(model, batch)
            optimizer.step(loss.backward(wrt=optimizer))

    Nothing else changes the model. `loss_of` traces the input. After each epoch `fit` computes the
    metrics, and writes the best model, the checkpoint and the logs, in this order.

    Args:
        model: the model to train.
        optimizer: made for the model, or for a `tapetensor.nn.Selection` of the trained parts.
        loss_of: function of model and batch that returns the traced loss.
        batches: the result of `tapetensor.data.batches`, a list, or a function that returns the
            batches of the next epoch.
        epochs: the number of epochs, with those before a resumed checkpoint, >= 1.
        metrics: functions of model and held-out batch, by name; see `evaluate`. A metric that is
            NaN gives a warning.
        validation: the held-out batches. Without `metrics` they must be batches as in training, and
            the history has their loss as ``"val_loss"``.
        schedule: a function from the optimizer's number of steps to the learning rate.
        clip_norm: the largest global norm of the gradients of the optimizer's parameters; larger
            gradients are scaled down to it; > 0.
        stop: when to stop early.
        checkpoint: a file, ``.npz`` or ``.safetensors``, that is written after each epoch and at
            Ctrl-C. `fit` tries whether it can be written before the first step.
        resume: go on from the checkpoint, to the bit, if there is one.
        overwrite: begin anew, and replace an existing checkpoint and an existing best model.
        rng: generators that training draws from and that cannot be reached from the arguments, such
            as those that an object of another library holds.
        log: logs, each a `CsvLog`, a `TensorBoardLog` or an object with their three methods.
        progress: whether to show a bar, by tqdm; by default, in a notebook and if the error stream
            is a terminal, which gets a line for each epoch if tqdm is not installed.
        compile: whether to compile the step by `tapetensor.compile`.
        check_finite: what to do if a gradient is NaN or infinite. ``"stop"`` raises an error that
            names the op. ``"skip"`` does not take the step, and the history has a column
            ``"skipped"``. None finds it at the end of the epoch, at no cost.
        unused: what to do if a parameter has no gradient in a step: ``"error"``, or ``"skip"``,
            which leaves it as it is; see `tapetensor.optim.Optimizer.step`.
        average: a copy of the model and a decay. In each step the copy becomes the exponential
            moving average of the model. It is validated, kept as the best and restored.
        ranks: the result of `distributed.world`, to train on many ranks. Each rank goes through the
            same batches, and `loss_of` gets the rank's rows. All ranks begin and end with the
            values of rank 0, which writes checkpoints and logs and shows the bar. Ctrl-C works on
            any rank.

    Returns:
        The numbers of every epoch. After a first Ctrl-C or SIGTERM the running step ends, the
        checkpoint is written and the history returned. A second one ends the program as usual.

    Raises:
        ArgumentTypeError: if an argument is of the wrong kind.
        ArgumentValueError: if one is outside its range, there are no batches, or the checkpoint or
            the best model is there already and neither `resume` nor `overwrite` is asked for, or
            two of the files are one.
        NumericalInstabilityError: if a loss is not finite, or a gradient with
            ``check_finite="stop"``, or at the end of an epoch a parameter or the state of the
            optimizer; nothing is written over then.
        StateMismatchError: if the checkpoint does not fit.
        UnusedParametersError: if a parameter has no gradient, unless it is skipped.
        DistributedError: if the ranks do not begin alike; on the others, if rank 0 fails.
        MissingDependencyError: if an extra is not installed; the message says how to install it.
        OSError: if a file cannot be written.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import losses, nn, optim, training
    >>> from tapetensor.data import batches
    >>> Layer, Rows = nn.Linear[int, int], tt.Tensor2D[int, int]
    >>> def loss_of(model: Layer, x: Rows) -> tt.Tensor0D[tt.OwnedTape]:
    ...     return losses.mse(model.forward(x.trace()), x)
    >>> rng = np.random.default_rng(0)
    >>> model = nn.Linear(2, 2, rng=rng)
    >>> x = tt.normal((64, 2), rng=rng)
    >>> optimizer = optim.Adam(model, lr=0.05)
    >>> history = training.fit(model, optimizer, loss_of, batches(x, size=16, rng=rng), epochs=20)
    >>> history["loss"][-1] < 0.01 * history["loss"][0]
    True
    """
    flags = {"resume": resume, "overwrite": overwrite, "compile": compile}
    for name, flag in flags.items():
        as_flag("fit", name, flag)
    if progress is not None:
        as_flag("fit", "progress", progress)
    as_size("fit", "epochs", epochs, low=1)
    if clip_norm is not None:
        as_number("fit", "clip_norm", clip_norm, above=0)
    _check_kinds(model, optimizer, loss_of, schedule, stop, log)
    check_batches("fit", "batches", batches)
    measures = _measures(loss_of, metrics, validation, stop)
    _check_options(model, compile, check_finite, unused, average)
    _check_files(checkpoint, stop, log)
    # What is validated, and kept as the best.
    judged, decay = (model, 0.0) if average is None else average
    team = communicator_of("fit", ranks)
    around = {
        "batches": batches,
        "validation": validation,
        "loss_of": loss_of,
        "metrics": metrics,
        "optimizer": optimizer,
        "schedule": schedule,
    }
    is_asked_for = checkpoint is not None or team.size > 1
    streams = found_streams(model, around, rng, is_asked_for=is_asked_for)
    per_epoch = len(batches) if isinstance(batches, Sized) else None
    settings: dict[str, object] = {
        "optimizer": settings_of(optimizer),
        "learning rate": optimizer.lr if schedule is None else "by schedule",
        "epochs": epochs,
        "clip_norm": clip_norm,
        "compile": compile,
        "check_finite": check_finite,
        "unused": unused,
        "average": average is not None and decay,
        "stop": None if stop is None else replace(stop, best=None),
        "metrics": list(measures),
        "number of batches": per_epoch,
    }
    check_same_start(team, model, streams, settings)
    models = {"model": model} if judged is model else {"model": model, "average": judged}
    parts: dict[str, Any] = {**models, "optimizer": optimizer}
    file = None if checkpoint is None else Checkpoint(Path(checkpoint), parts, streams)
    files = TrainingFiles(file, judged, stop)
    position = Position()

    def start() -> None:
        nonlocal position
        position = files.start(resume, overwrite, partial(count_batches, batches, streams))

    team.on_root("fit", start)
    make_alike(team, parts.values())
    make_streams_alike(team, streams, is_start=True)
    position = Position(**from_root(team, asdict(position)))
    if team.size == 1:
        step = step_of(model, optimizer, loss_of, clip_norm, compile, check_finite, unused)
    else:
        step = step_of_ranks(
            model, optimizer, loss_of, clip_norm, compile, streams, team, check_finite, unused
        )
    if judged is not model:
        step = averaging(step, judged, model, decay)
    is_resumable = checkpoint is not None
    runner = EpochRunner(
        step, batches, optimizer, schedule, streams, team, check_finite, is_resumable
    )
    history = History(position.rows)
    if checkpoint is not None and _end_of(history, epochs, stop) is None:
        if team.is_root:
            streams.tell_of_opaque(is_resumed=bool(position.rows or position.batches))
        runner.compare(position)
    logs = log if team.is_root else ()

    def write_down() -> None:
        files.save(position)
        # A training that ends here comes to it again: see `TrainingFiles.start`.
        files.keep_best(history.rows)
        for one in logs:
            one.write(history.rows[-1])

    with at_the_call, ExitStack() as stack:
        for one in logs:
            stack.callback(one.close)
            counts = [SKIPPED] if check_finite == "skip" else []
            one.start([*COLUMNS, *counts, *measures], history.rows)
        done = position.batches + len(history) * (per_epoch or 0)
        bar = ProgressBar(progress if team.is_root else False, epochs, per_epoch, done)
        stack.callback(bar.close)
        interruption = stack.enter_context(Interruption())
        while (ended := _end_of(history, epochs, stop)) is None:
            bar.epoch(len(history) + 1)
            (asked,) = team.sum(interruption.asked)
            is_over = not asked and runner.run(position, interruption, bar)
            team.on_root("fit", partial(refuse_not_finite, optimizer))
            if not is_over:
                ended = "interrupted"
                team.on_root("fit", partial(files.save, position))
                break
            # Buffers hold statistics, which each rank has taken of its own shares.
            make_alike(team, [one for one in models.values() if one.buffers()])
            row: Row = {
                "epoch": len(history) + 1,
                "steps": optimizer.steps,
                "lr": optimizer.lr,
                "seconds": position.seconds,
                "loss": position.total / position.weight,
            }
            if check_finite == "skip":
                row[SKIPPED] = position.skipped
            if validation is not None:
                row |= evaluate(judged, measures, validation, ranks=team)
            history.rows.append(from_root(team, row))
            _tell_of_nans(history.rows[-1])
            # A metric may have drawn from a generator on one rank and not on another.
            make_streams_alike(team, streams, is_start=False)
            position = Position(history.rows, starts=position.starts)
            team.on_root("fit", write_down)
            bar.row(history.rows[-1])
        history.ended = ended
    if ended != "interrupted":
        team.on_root("fit", files.restore)
        make_alike(team, [judged])
    return history


def _tell_of_nans(row: Row) -> None:
    for name, value in row.items():
        if math.isnan(value):
            warnings.warn(
                f"fit: the metric {name!r} of epoch {row['epoch']} is NaN", RuntimeWarning, 3
            )


def _end_of(history: History, epochs: int, stop: EarlyStopping | None) -> Ended | None:
    """Return why there are no more epochs; None if there are more."""
    if stop is not None:
        # An earlier part of the training may have had other metrics.
        values = [row[stop.watch] for row in history.rows if stop.watch in row]
        if stop.is_reached(values):
            return "early stopping"
    return "epochs" if len(history) >= epochs else None


def _check_kinds(
    model: object, optimizer: object, loss_of: object, schedule: object, stop: object, log: object
) -> None:
    """Refuse arguments of a wrong kind."""
    check_kind("fit", "model", model, Module)
    check_kind("fit", "optimizer", optimizer, Optimizer)
    check_function("fit", "loss_of", loss_of, ("model", "batch"))
    if schedule is not None:
        check_function("fit", "schedule", schedule, ("step",))
    if stop is not None:
        check_kind("fit", "stop", stop, EarlyStopping)
    if not isinstance(log, Sequence) or isinstance(log, str):
        raise ArgumentTypeError(
            f"fit: log must be a list of logs, [CsvLog(...)], say, got {type(log).__name__}"
        )
    for one in log:
        if not all(callable(getattr(one, name, None)) for name in ("start", "write", "close")):
            raise ArgumentTypeError(
                "fit: a log has the methods start, write and close, as CsvLog(...) does, got "
                f"{type(one).__name__}"
            )


def _measures(
    loss_of: object,
    metrics: Mapping[str, Any] | None,
    validation: object,
    stop: EarlyStopping | None,
) -> Mapping[str, Any]:
    """Return what is computed of held-out batches; refuse a watched number that is none of it."""
    if metrics is not None and validation is None:
        raise ArgumentTypeError(
            "fit: metrics need validation: metrics say what is computed, and validation are the "
            "batches to compute it on"
        )
    if metrics is not None:
        check_metrics("fit", metrics)
    if validation is not None:
        check_batches("fit", "validation", validation)
    measures: Mapping[str, Any] = metrics or {}
    if metrics is None and validation is not None:
        measures = {"val_loss": loss_of}
    taken = [name for name in measures if name in (*COLUMNS, SKIPPED)]
    if taken:
        raise ArgumentValueError(
            f"fit: the history has a column {taken[0]} of its own, call the metric something else"
        )
    if stop is not None and stop.watch not in ("loss", *measures):
        raise ArgumentValueError(
            f"fit: stop watches {stop.watch!r}, which is no metric; there are "
            f"{', '.join(['loss', *measures])}"
        )
    return measures


def _check_options(
    model: Module, compile: bool, check_finite: object, unused: object, average: object
) -> None:
    """Refuse options of another kind, and those that exclude each other."""
    if check_finite is not None:
        check_choice("fit", "check_finite", check_finite, ("stop", "skip"))
    check_choice("fit", "unused", unused, ("error", "skip"))
    if check_finite == "skip" and compile:
        raise ArgumentValueError(
            'fit: check_finite="skip" looks at the gradients of each step, and a compiled step has '
            'none to look at; write compile=False, or check_finite="stop"'
        )
    if average is not None:
        if not isinstance(average, tuple) or len(average) != 2:
            raise ArgumentTypeError(
                "fit: average must be a copy of the model and a decay, "
                f"(copy.deepcopy(model), 0.999), say, got {type(average).__name__}"
            )
        check_kind("fit", "the average", average[0], Module)
        as_number("fit", "the decay of the average", average[1], at_least=0, below=1)
        own = {id(one) for one in model.parameters().values()}
        if any(id(one) in own for one in average[0].parameters().values()):
            raise ArgumentValueError(
                "fit: the average shares parameters with the model; give it copy.deepcopy(model)"
            )


def _check_files(checkpoint: object, stop: EarlyStopping | None, log: Sequence[object]) -> None:
    """Refuse two files with one path, where one would overwrite the other."""
    if checkpoint is not None:
        check_path("fit", "checkpoint", checkpoint)
    paths: list[tuple[str, Any]] = [
        ("the checkpoint", checkpoint),
        ("the best model", None if stop is None else stop.best),
    ]
    paths += [("a log", one.path) for one in log if isinstance(one, CsvLog)]
    found: dict[str, str] = {}
    for what, path in paths:
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in found:
            raise ArgumentValueError(
                f"fit: {found[place]} and {what} need a file each, got {place!r} for both"
            )
        found[place] = what
