"""Checks of the arguments of `fit`, before it does anything."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tapetensor.arguments import (
    as_flag,
    as_number,
    as_size,
    check_choice,
    check_function,
    check_kind,
    check_path,
)
from tapetensor.errors import ArgumentTypeError, ArgumentValueError
from tapetensor.nn import Module
from tapetensor.optim import Optimizer
from tapetensor.training.evaluation import check_batches, check_metrics
from tapetensor.training.history import COLUMNS, SKIPPED, EarlyStopping
from tapetensor.training.logs import CsvLog


def check_arguments(
    model: object,
    optimizer: object,
    loss_of: object,
    batches: object,
    epochs: object,
    metrics: Mapping[str, object] | None,
    validation: object,
    clip_norm: object,
    schedule: object,
    stop: EarlyStopping | None,
    log: object,
    flags: Mapping[str, object],
) -> None:
    """Refuse arguments of a wrong type or range, and a watched number that is no metric.

    Raises:
        ArgumentTypeError: if an argument is of the wrong kind, or missing beside another.
        ArgumentValueError: if there are no epochs, the norm is not positive, or a name is taken or
            unknown.
    """
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
    as_size("fit", "epochs", epochs, low=1)
    for name, flag in flags.items():
        as_flag("fit", name, flag)
    if clip_norm is not None:
        as_number("fit", "clip_norm", clip_norm, above=0)
    if metrics is not None and validation is None:
        raise ArgumentTypeError(
            "fit: metrics need validation: metrics say what is computed, and validation are the "
            "batches to compute it on"
        )
    if metrics is not None:
        check_metrics("fit", metrics)
    check_batches("fit", "batches", batches)
    if validation is not None:
        check_batches("fit", "validation", validation)
    names = [*(metrics or ({} if validation is None else {"val_loss": loss_of}))]
    taken = [name for name in names if name in (*COLUMNS, SKIPPED)]
    if taken:
        raise ArgumentValueError(
            f"fit: the history has a column {taken[0]} of its own, call the metric something else"
        )
    if stop is not None and stop.watch not in ("loss", *names):
        raise ArgumentValueError(
            f"fit: stop watches {stop.watch!r}, which is no metric; there are "
            f"{', '.join(['loss', *names])}"
        )


def check_options(
    model: Module, compile: bool, check_finite: object, unused: object, average: object
) -> None:
    """Refuse options of another kind, and those that exclude each other.

    Raises:
        ArgumentTypeError: if one is of the wrong kind.
        ArgumentValueError: if one is outside its range, or does not go with another.
    """
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


def check_files(checkpoint: object, stop: EarlyStopping | None, log: Sequence[object]) -> None:
    """Refuse two files with one path, where one would overwrite the other.

    Raises:
        ArgumentValueError: if there are.
    """
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
