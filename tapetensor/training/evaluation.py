"""Metrics of a model, averaged over batches."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from typing_extensions import TypeVar, TypeVarTuple

from tapetensor.arguments import check_function, check_kind
from tapetensor.arrays.array import is_masked
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, DistributedError
from tapetensor.metrics import Pooled
from tapetensor.nn import Module, inference
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor, Tensor0D, concat
from tapetensor.tensor.base import check_plain

if TYPE_CHECKING:
    from tapetensor.distributed import Communicator

M = TypeVar("M", bound=Module)
Batch = TypeVar("Batch")
N = TypeVar("N", bound=int)
D = TypeVar("D", bound=np.generic)
Ds = TypeVarTuple("Ds")

# Batches for one epoch after the other: an iterable to read again, or a function that makes one.
Source: TypeAlias = Iterable[Batch] | Callable[[], Iterable[Batch]]
# A number that says how well a model does on a batch.
Metric: TypeAlias = Callable[[M, Batch], Tensor0D[NoneTape, Any] | float]


def evaluate(
    model: M,
    metrics: Mapping[str, Metric[M, Batch]],
    batches: Source[Batch],
    *,
    ranks: Communicator | None = None,
) -> dict[str, float]:
    """Return the mean of each metric over batches, every row counting the same.

    A `tapetensor.metrics.Pooled` is no mean: it is computed once, of the rows of all batches.

    The rows of a batch are the first axis of its first tensor, or the items of a list. A batch of
    any other kind counts as one row. This is inference, also if a metric traces its input: metrics
    get the model as `tapetensor.nn.inference` returns it, which drops nothing and moves no
    statistics.

    Args:
        model: the model to evaluate.
        metrics: functions of model and batch, by name.
        batches: the batches.
        ranks: the ranks among which the batches are divided, if there are many. Each rank has all
            batches, and gets the same means.

    Raises:
        ArgumentTypeError: if a metric is no function or gives no number.
        ArgumentValueError: if there are no batches.
        DistributedError: if they have not as many rows on every rank.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import losses, nn, training
    >>> from tapetensor.data import batches
    >>> def error(model: nn.Linear[int, int], x: tt.Tensor2D[int, int]) -> tt.Tensor0D:
    ...     return losses.mse(model.forward(x), x)
    >>> double = nn.Linear(2, 2, rng=np.random.default_rng(0))
    >>> double.weight, double.bias = 2.0 * tt.eye(2), tt.zeros((2,))
    >>> training.evaluate(double, {"error": error}, batches(tt.ones((5, 2)), size=2))
    {'error': 1.0}
    """
    check_kind("evaluate", "model", model, Module)
    check_metrics("evaluate", metrics)
    team = communicator_of("evaluate", ranks)
    frozen = inference(model)
    averaged = {name: one for name, one in metrics.items() if not isinstance(one, Pooled)}
    pooled = {name: one for name, one in metrics.items() if isinstance(one, Pooled)}
    # What gives predictions and labels, once where several metrics share it.
    gathered = {one.outputs: (one, list[Any]()) for one in pooled.values()}
    totals = dict.fromkeys(averaged, 0.0)
    rows = 0
    for number, batch in enumerate(iterate("evaluate", "batches", batches)):
        count = rows_of(batch)
        rows += count
        # All rows, on every rank, so that each has the same.
        for one, found in gathered.values():
            found.append(one.rows(frozen, batch))
        if number % team.size == team.rank:
            for name, metric in averaged.items():
                totals[name] += count * _value_of_metric(name, metric(frozen, batch))
    if rows == 0:
        raise ArgumentValueError("evaluate: there are no batches")
    check_equal("evaluate", team, rows)
    sums = team.sum(*totals.values())
    means = {name: total / rows for name, total in zip(totals, sums, strict=True)}
    whole = {
        outputs: [np.concatenate(part) for part in zip(*found, strict=True)]
        for outputs, (_, found) in gathered.items()
    }
    scores = {
        name: _value_of_metric(name, one.score(*whole[one.outputs])) for name, one in pooled.items()
    }
    # In the order in which they were given.
    return {name: (means | scores)[name] for name in metrics}


def predict(
    forward: Callable[[Batch], Tensor[tuple[N, *Ds], NoneTape, D]], batches: Source[Batch]
) -> Tensor[tuple[int, *Ds], NoneTape, D]:
    """Return the outputs of a model for batches, joined along the rows.

    Shape: ``(N, *Ds)`` for each batch of ``N`` rows ``-> (int, *Ds)``.

    Args:
        forward: the `forward` of a model, or a function that takes a batch.
        batches: its arguments, such as batches without labels.

    Raises:
        ArgumentTypeError: if an argument is of the wrong kind.
        ArgumentValueError: if there are no batches.
        UntracedTensorError: if a result owns a tape.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import nn, training
    >>> from tapetensor.data import batches
    >>> model = nn.Linear(2, 3, rng=np.random.default_rng(0))
    >>> training.predict(model.forward, batches(tt.ones((5, 2)), size=2)).shape
    (5, 3)
    """
    check_function("predict", "forward", forward, ("batch",))
    found: list[Any] = []
    for batch in iterate("predict", "batches", batches):
        made: object = forward(batch)
        if not isinstance(made, Tensor):
            raise ArgumentTypeError(
                f"predict: forward must return a tensor, got {type(made).__name__}"
            )
        check_plain("predict", "a result", made, "give batches of plain tensors")
        found.append(made)
    if not found:
        raise ArgumentValueError("predict: there are no batches")
    whole: Any = concat(tuple(found), axis=0)
    result: Tensor[tuple[int, *Ds], NoneTape, D] = whole
    return result


def check_metrics(op: str, metrics: Mapping[str, object]) -> None:
    """Check that there are functions by name."""
    check_kind(op, "metrics", metrics, Mapping, "functions by name")
    for name, metric in metrics.items():
        if not isinstance(name, str) or not callable(metric):
            raise ArgumentTypeError(
                f"{op}: metrics must be functions by name, got {name!r}: {type(metric).__name__}"
            )
        check_function(op, f"metrics[{name!r}]", metric, ("model", "batch"))


def check_batches(op: str, name: str, source: object) -> None:
    """Refuse a tensor, or the parts of one batch, in the place of batches; both can be iterated.

    Equally long tensors in a tuple are parts of one, as Keras takes them; in a list they are
    batches, unless they differ in kind. Tuples are batches wherever they stand.
    """
    cut = f"{name}=tapetensor.data.batches(x, labels, size=32)"
    cure = f"{name}=[(x, labels)] for one batch, {cut} for many"
    if not isinstance(source, tuple | list):
        # So numpy tells what is an array to it, a DataFrame, say.
        shape = getattr(source, "shape", None) if hasattr(type(source), "__array__") else None
        if shape:
            raise ArgumentTypeError(
                f"{op}: {name} must be batches, and this is a {type(source).__name__} of shape "
                f"{tuple(shape)}, whose rows would be batches; write {cure}"
            )
        return
    parts = source if isinstance(source, tuple) else source[:2]
    lengths = {_length_of_part(one) for one in parts}
    are_batches = all(isinstance(one, tuple) for one in parts)
    kinds = {(getattr(one, "shape", ())[1:], getattr(one, "dtype", None)) for one in parts}
    if isinstance(source, list):
        are_batches |= len(kinds) == 1
    # Lists of items are batches, too.
    are_batches |= kinds == {((), None)}
    if len(lengths) == 1 and None not in lengths and not are_batches:
        raise ArgumentTypeError(
            f"{op}: {name} must be batches, and these are the parts of one; write {cure}"
        )


def _length_of_part(part: object) -> int | None:
    """Return how many rows a part of a batch has; None if it is none."""
    if isinstance(part, tuple):
        return _length_of_part(part[0]) if part else None
    if isinstance(part, list):
        return len(part)
    shape = getattr(part, "shape", None)
    return int(shape[0]) if shape else None


def iterate(op: str, name: str, source: Source[Batch]) -> Iterator[Batch]:
    """Return the batches of one more epoch."""
    batches: object = source
    if not isinstance(source, Iterable) and callable(source):
        check_function(op, name, source, ())
        batches = source()
    check_batches(op, name, batches)
    if not isinstance(batches, Iterable) or isinstance(batches, str | bytes | Mapping):
        raise ArgumentTypeError(
            f"{op}: {name} must be batches, or a function that returns them, got {source!r}"
        )
    if batches is source and isinstance(batches, Iterator):
        raise ArgumentTypeError(
            f"{op}: {name} must be there again for the next epoch, and a {type(batches).__name__} "
            "is used up by the first; give a function that makes one: lambda: ..."
        )
    return iter(batches)


def rows_of(batch: object) -> int:
    """Return the weight of a batch in a mean."""
    if isinstance(batch, tuple) and batch:
        return rows_of(batch[0])
    if isinstance(batch, list):
        return len(batch)
    shape = batch.shape if isinstance(batch, Tensor) else ()
    return int(shape[0]) if shape else 1


def communicator_of(op: str, ranks: Communicator | None) -> Communicator:
    """Return the ranks, or this process alone if there are none."""
    from tapetensor.distributed import Communicator, alone  # imports the compiler

    if ranks is None:
        return alone()
    words = "what distributed.world() or distributed.alone() returned"
    check_kind(op, "ranks", ranks, Communicator, words)
    return ranks


def check_equal(op: str, ranks: Communicator, rows: int) -> None:
    """Check that all ranks have as many rows, before each goes on to something else."""
    if ranks.size == 1:
        return
    total, squares = ranks.sum(rows, rows * rows)
    # Equal numbers, and only those, have no variance.
    if ranks.size * squares != total * total:
        raise DistributedError(
            f"{op}: the ranks have other batches, or more of them on one than on another; give "
            "all ranks the same, of which each takes its share"
        )


def _value_of_metric(name: str, value: object) -> float:
    got = type(value).__name__
    if isinstance(value, Tensor):
        if value.size == 1:
            return float(value.item())
        got = f"shape {value.shape}"
    elif not is_masked(value):
        with contextlib.suppress(TypeError, ValueError):
            return float(value)  # type: ignore[arg-type]  # whatever float() takes, numpy's too
    raise ArgumentTypeError(
        f"evaluate: the metric {name!r} must give a number or a scalar tensor, got {got}"
    )
