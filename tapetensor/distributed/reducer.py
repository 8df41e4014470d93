"""The gradients of a model, summed or averaged over all ranks, and a step that does so.

Buckets are gradients end to end in one flat array, which travels as one message. Gradients of
tables that few rows are read of travel as ids and rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from sys import getrefcount
from typing import Any, Literal, final

import numpy as np
from typing_extensions import TypeVar, override

from tapetensor.arguments import as_size, check_choice, check_function, check_kind
from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import CapturedArray
from tapetensor.distributed.communicator import Communicator, check_agreement, world
from tapetensor.distributed.transport import Pending, Transport
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, TraceError
from tapetensor.kernels.numerics.segments import segment_sum
from tapetensor.nn import Embedding, Module
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tape.gradients import Gradients
from tapetensor.tape.history import next_id
from tapetensor.tape.row_sparse import RowSparse, changed, dense_of, values_of
from tapetensor.tensor import Tensor
from tapetensor.tensor.base import FloatingBase, check_tensor, rewrap
from tapetensor.tensor.ownership import tape_and_seed
from tapetensor.typing import F, S

# A parameter of so many bytes is sent from where its gradient lies, if nobody else holds on to it.
_LARGE = 1 << 20


@final
class Bucket:
    """Parameters of one dtype whose gradients travel together.

    Behind the gradients stands a number per parameter, 1 if this rank has a gradient for it. Its
    sum says how many ranks have one: a parameter that none has used stays without a gradient. A
    large parameter that is alone has its number elsewhere, so that its gradient need not be copied.
    """

    def __init__(self, parameters: Sequence[Tensor[Any, Any, Any]]) -> None:
        self.ids: frozenset[int] = frozenset([tensor.id for tensor in parameters])
        ends = np.cumsum([tensor.size for tensor in parameters]).tolist()
        self._size: int = ends[-1]
        self._dtype = parameters[0].dtype
        is_large = self._size * self._dtype.itemsize >= _LARGE
        self.is_alone = len(parameters) == 1 and is_large
        self._length = self._size + (0 if self.is_alone else len(parameters))
        self._places = [
            (tensor.id, slice(start, end), tensor.shape)
            for tensor, start, end in zip(parameters, [0, *ends[:-1]], ends, strict=True)
        ]

    @property
    def nbytes(self) -> int:
        """The bytes of the message."""
        size: int = self._length * self._dtype.itemsize
        return size

    def packed(self, arrays: dict[int, Array]) -> Array:
        """Return gradients, given by the ids of the parameters, as one array to be written to."""
        if self.is_alone and _is_free(arrays, self._places[0][0]):
            return arrays[self._places[0][0]].reshape(-1)
        flat = np.empty(self._length, self._dtype)
        for position, (unique_id, place, _) in enumerate(self._places):
            array = arrays.get(unique_id)
            flat[place] = 0 if array is None else np.reshape(array, -1)
            if not self.is_alone:
                flat[self._size + position] = array is not None
        return flat

    def unpacked(self, flat: Array, divisor: int, *, is_used: bool = False) -> dict[int, Array]:
        """Return the gradients in a sum of packed arrays, which is divided by a number in place.

        Args:
            is_used: of a parameter that is alone, whether a rank has a gradient for it.
        """
        if divisor != 1:
            flat[: self._size] /= divisor
        return {
            unique_id: flat[place].reshape(shape)
            for position, (unique_id, place, shape) in enumerate(self._places)
            if (is_used if self.is_alone else flat[self._size + position])
        }


def _is_free(arrays: dict[int, Array], key: int) -> bool:
    """Tell whether nobody but a dict holds on to an array, which lies in C order."""
    array = arrays.get(key)
    return (
        type(array) is np.ndarray
        and array.base is None
        and array.flags.c_contiguous
        and array.flags.writeable
        and getrefcount(array) == _REFERENCES_OF_FREE
    )


def _references_of_free() -> int:
    """Return the reference count of what only a dict holds, as `_is_free` sees it."""
    arrays = {0: np.empty(1)}
    array = arrays.get(0)
    return getrefcount(array)


_REFERENCES_OF_FREE = _references_of_free()


def buckets_of(parameters: Mapping[str, Tensor[Any, Any, Any]], limit: int) -> list[Bucket]:
    """Return the parameters in buckets, in the order in which a backward pass comes to them.

    This is taken to be the reverse of their own order. It is the same on all ranks, whatever each
    of them computes, as the order of messages must be. At `limit` bytes a bucket is full.
    """
    unique = {tensor.id: tensor for tensor in parameters.values()}
    filling: dict[np.dtype[Any], list[Tensor[Any, Any, Any]]] = {}
    buckets: list[Bucket] = []
    for tensor in reversed(unique.values()):
        if tensor._array.nbytes >= max(limit, _LARGE):
            buckets.append(Bucket([tensor]))
            continue
        gathered = filling.setdefault(tensor.dtype, [])
        gathered.append(tensor)
        if sum([one._array.nbytes for one in gathered]) >= limit:
            buckets.append(Bucket(filling.pop(tensor.dtype)))
    return buckets + [Bucket(rest) for rest in filling.values()]


# A message of this size takes much longer than its start, and backward has several of them.
BUCKET_BYTES = 1 << 20


@final
class Reducer:
    """Sums or averages the gradients of one model over all ranks.

    The constructor compares the models of all ranks, and gives them the values of rank 0. Every
    rank must then call the same methods in the same order. The parameters are those that the model
    has when the reducer is made.

    Gradients travel in buckets, flat arrays of about `bucket_bytes`, from the last parameter to the
    first. `backward` starts to send a bucket as soon as its gradients are final, and goes on with
    the pass in the meantime. Of the table of an ``nn.Embedding(..., sparse=True)`` the rows that
    were read travel, after all buckets.

    With the mean, and a loss that is a mean over the rows of this rank's share, the result is the
    gradient of the mean over the whole batch.

    Args:
        model: the model of this rank.
        ranks: the result of `world` or `alone`.
        op: "mean" or "sum".
        bucket_bytes: the size of a full bucket, >= 1.

    Raises:
        DistributedError: if the models differ in names, shapes or dtypes, on every rank.
        ArgumentTypeError: if an argument is of the wrong kind, or a parameter is not over numpy's
            arrays.
        TraceError: inside a compiled function.
        ArgumentValueError: if `op` is neither, the model has no parameters, or `bucket_bytes` is 0.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import distributed, losses, nn, optim
    >>> ranks = distributed.alone()  # on many ranks: distributed.world()
    >>> model = nn.Linear(2, 1, rng=np.random.default_rng(0))
    >>> reducer = distributed.Reducer(model, ranks)
    >>> optimizer = optim.Sgd(model, lr=0.1)
    >>> x, y = ranks.shard(tt.ones((4, 2)), tt.ones((4, 1)))
    >>> loss = losses.mse(model.forward(x.trace()), y)
    >>> optimizer.step(reducer.backward(loss))
    """

    def __init__(
        self,
        model: Module,
        ranks: Communicator,
        *,
        op: Literal["mean", "sum"] = "mean",
        bucket_bytes: int = BUCKET_BYTES,
    ) -> None:
        check_kind("Reducer", "model", model, Module)
        words = "what distributed.world() or distributed.alone() returned"
        check_kind("Reducer", "ranks", ranks, Communicator, words)
        check_choice("Reducer", "op", op, ("mean", "sum"))
        limit = as_size("Reducer", "bucket_bytes", bucket_bytes, low=1)
        parameters = model.parameters()
        for tensor in parameters.values():
            _check_is_numpy("Reducer", tensor._array)
        self._tables = tables = _tables_of(model)
        self._transport = ranks.transport
        if self._transport is not None:
            settings = [f"op={op!r}", f"bucket_bytes={limit}"]
            settings += [
                f"{name} has gradients of rows"
                for name, one in parameters.items()
                if one.id in tables
            ]
            check_agreement("Reducer", self._transport, model, *settings)
        if not parameters:
            raise ArgumentValueError("Reducer: the model has no parameters")
        ranks.broadcast(model)
        self._divisor = ranks.size if op == "mean" else 1
        dense = {name: one for name, one in parameters.items() if one.id not in tables}
        self._buckets = buckets_of(dense, limit)
        self._groups = [*[bucket.ids for bucket in self._buckets], frozenset(tables)]
        self._names: dict[int, str] = {tensor.id: name for name, tensor in parameters.items()}

    @property
    def bucket_sizes(self) -> tuple[int, ...]:
        """The bytes of each message, in the order in which they are sent."""
        return tuple([bucket.nbytes for bucket in self._buckets])

    def backward(
        self,
        loss: FloatingBase[S, OwnedTape, F],
        cotangent: Tensor[S, NoneTape, F] | None = None,
    ) -> Gradients:
        """Run the backward pass, send gradients meanwhile, and return them summed or averaged.

        The result is that of ``loss.backward(wrt=model)`` and `all_reduce`, but it is there sooner.
        The history before `loss` is used up. Gradients that the tape carries must have been reduced
        before: they are added as they are.

        Args:
            loss: the loss of this rank's share of the batch.
            cotangent: as for `Tensor.backward`.

        Raises:
            TraceError: inside a compiled function; see `all_reduce`.
            UntracedTensorError: if `loss` has no tape.
            TapeUsedError: if an earlier backward pass has used up what gradients flow through.
            ShapeError: if there is no cotangent and it is not a scalar, or its shape is wrong.
            DTypeError: if it is not floating, or the dtype of the cotangent is wrong.
            TapeClosedError: if the context that the tape belongs to was left.
            MissingGradientError: if the gradient of a parameter lacks a part.
            DistributedError: if a rank has ended that must take part.
        """
        check_tensor("Reducer.backward", "the loss", loss)
        _check_is_numpy("Reducer.backward", loss._array)
        tape, seed = tape_and_seed(loss, cotangent)
        result = tape.carried()
        gradients = tape.run_backward_by_group(
            loss.history, loss.id, seed, self._groups, self._names
        )
        result.accumulate(self._reduced(gradients))
        return result

    def all_reduce(self, grads: Gradients) -> Gradients:
        """Return the gradients of the parameters, summed or averaged over all ranks.

        Use it for gradients of a compiled function or of several passes.

        Args:
            grads: the gradients of this rank, which stay as they are. Gradients of other tensors
                are left out.

        Raises:
            TraceError: inside a compiled function: return the gradients and reduce them outside.
            ArgumentTypeError: if `grads` are no Gradients of numpy arrays.
            DistributedError: if a rank has ended that must take part.
        """
        check_kind("Reducer.all_reduce", "grads", grads, Gradients, "Gradients")
        arrays = grads.arrays
        for array in arrays.values():
            _check_is_numpy("Reducer.all_reduce", values_of(array))
        parts = [{key: arrays[key] for key in group if key in arrays} for group in self._groups]
        result = Gradients()
        result.gaps, result.origins = grads.gaps, grads.origins
        result.accumulate(self._reduced(parts))
        return result

    def _reduced(self, parts: Iterable[dict[int, Array]]) -> dict[int, Array]:
        """Send the gradients of each bucket when they come, and return their sums or means."""
        if self._transport is None:
            return {key: array for part in parts for key, array in part.items()}
        flats: list[Array] = []
        used: list[bool] = []
        under_way: list[Pending] = []
        coming = iter(parts)
        # The last part is that of the tables.
        for bucket, part in zip(self._buckets, coming, strict=False):
            flats.append(bucket.packed(part))
            if bucket.is_alone:
                used.append(bool(part))
            # Nobody else is to hold on to a gradient while the next ones are computed.
            del part
            under_way.append(self._transport.start_sum(flats[-1]))
            for pending in under_way:
                pending.poke()
        counts = iter(self._counted(used))
        reduced: dict[int, Array] = {}
        of_tables = next(coming)
        for key, table in self._tables.items():
            rows = _reduced_table(self._transport, table, of_tables.get(key), self._divisor)
            if rows is not None:
                reduced[key] = rows
        for bucket, flat, pending in zip(self._buckets, flats, under_way, strict=True):
            pending.wait()
            is_used = bucket.is_alone and next(counts)
            reduced.update(bucket.unpacked(flat, self._divisor, is_used=is_used))
        return reduced

    def _counted(self, used: list[bool]) -> list[bool]:
        """Return whether any rank has a gradient for each large parameter."""
        counts = np.array(used, np.float64)
        if self._transport is not None and used:
            self._transport.start_sum(counts).wait()
        return [count > 0 for count in counts.tolist()]

    @override
    def __repr__(self) -> str:
        """Show how much travels, and in how many messages."""
        return f"Reducer({sum(self.bucket_sizes):,} bytes in {len(self._buckets)} buckets)"


def _check_is_numpy(op: str, array: Any) -> None:
    if isinstance(array, CapturedArray):
        raise TraceError(
            f"{op}: a compiled function cannot send; let it return loss.backward(wrt=model), and "
            "outside write optimizer.step(reducer.all_reduce(grads))"
        )
    if not isinstance(array, np.ndarray | np.generic):
        raise ArgumentTypeError(
            f"{op}: only numpy arrays are sent, got a tensor of {type(array).__name__}"
        )


# What a rank sends first: that it has the gradient of the whole table, or that of rows.
_WHOLE, _ROWS = b"w", b"r"


def _tables_of(model: Module) -> dict[int, Tensor[Any, Any, Any]]:
    """Return, by their ids, the parameters whose layers keep gradients of rows."""
    trained = {tensor.id: tensor for tensor in model.parameters().values()}
    layers = [one for one in (model, *model.modules().values()) if isinstance(one, Embedding)]
    sparse = [layer.weight.id for layer in layers if layer.sparse]
    return {key: trained[key] for key in sparse if key in trained}


def _reduced_table(
    transport: Transport, table: Tensor[Any, Any, Any], gradient: Any, divisor: int
) -> Any:
    """Return the gradient of a table, summed over all ranks and divided by a number.

    It is one of rows, unless that of a rank is one of the whole table. The ranks' rows are added in
    one order on every rank, so that all get the same bits.
    """
    content = b""
    if isinstance(gradient, RowSparse):
        ids, rows = gradient.summed()
        content = _ROWS + ids.astype(np.int64).tobytes() + rows.tobytes()
    elif gradient is not None:
        content = _WHOLE
    contents = [one for one in transport.gather(content) if one]
    if not contents:
        return None
    shape, dtype = table.shape, table.dtype
    if _WHOLE in contents:
        total = np.zeros(shape, dtype) if gradient is None else np.array(dense_of(gradient))
        transport.start_sum(total).wait()
        return total / divisor
    parts = [_received(one, shape[1], dtype) for one in contents]
    ids, rows = (np.concatenate(several) for several in zip(*parts, strict=True))
    summed = RowSparse.of(shape, dtype, segment_sum, ids, rows)
    return changed(summed, lambda values: values / divisor)


def _received(content: bytes, width: int, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the ids and the rows that a rank has sent."""
    count = (len(content) - len(_ROWS)) // (np.dtype(np.int64).itemsize + width * dtype.itemsize)
    ids = np.frombuffer(content, np.int64, count, len(_ROWS))
    rows = np.frombuffer(content, dtype, offset=len(_ROWS) + ids.nbytes)
    return ids.astype(np.intp), rows.reshape(count, width)


F_ = TypeVar("F_", bound=Callable[..., Any])


def data_parallel(function: F_) -> F_:
    """Return a function that divides its batch among the ranks, and averages its gradients.

        @distributed.data_parallel
        def loss_and_gradients(model: Mlp, x: ..., labels: ...) -> tuple[Tensor0D, Gradients]:
            loss = losses.cross_entropy(model.forward(x.trace()), labels)
            return loss.detach(), loss.backward(wrt=model)

    Every rank calls it with the whole batch. The function gets this rank's rows of each tensor with
    an axis. Losses (floating scalars) and gradients that it returns are averaged over all ranks, so
    they must be means over the rows. At the first call with a model, the ranks' models are
    compared and get the values of rank 0. Without ``mpiexec`` there is one rank, and nothing is
    changed. A function that `tt.compile` returned will do.

    Gradients are sent after the backward pass; `Reducer.backward` sends them meanwhile.

    Args:
        function: takes one module, tensors whose first axis is that of the batch, and anything
            else; returns gradients, a loss, or a tuple of these.

    Raises:
        TraceError: when it is called, if it is compiled; compile the function within.
        ArgumentTypeError: if it is not a function; when it is called, if there is not one module
            among its arguments, or it returns something else.
    """
    check_function("data_parallel", "the argument", function)
    # The last module, with the ranks and what reduces its gradients.
    connected: list[tuple[Module, Communicator, Reducer]] = []

    @wraps(function)
    def parallel(*args: Any, **kwargs: Any) -> Any:
        module = _module_among([*args, *kwargs.values()])
        if not connected or connected[0][0] is not module:
            ranks = world()
            connected[:] = [(module, ranks, Reducer(module, ranks))]
        _, ranks, reducer = connected[0]
        result = function(
            *[_shard(ranks, value) for value in args],
            **{name: _shard(ranks, value) for name, value in kwargs.items()},
        )
        if isinstance(result, tuple):
            return tuple([_reduced(ranks, reducer, value) for value in result])
        return _reduced(ranks, reducer, result)

    untyped: Any = parallel
    result: F_ = untyped
    return result


def _module_among(values: list[Any]) -> Module:
    """Return the only module among arguments, of which none is captured."""
    if any(isinstance(one, Tensor) and isinstance(one._array, CapturedArray) for one in values):
        raise TraceError(
            "data_parallel: a compiled function cannot send; compile first: "
            "data_parallel(tt.compile(function))"
        )
    modules = [value for value in values if isinstance(value, Module)]
    if len(modules) != 1:
        raise ArgumentTypeError(
            "data_parallel: the function takes one module, whose gradients it returns, got "
            f"{len(modules)}"
        )
    return modules[0]


def _shard(ranks: Communicator, value: Any) -> Any:
    return ranks.shard(value) if isinstance(value, Tensor) and value._array.shape else value


def _reduced(ranks: Communicator, reducer: Reducer, value: Any) -> Any:
    if isinstance(value, Gradients):
        return reducer.all_reduce(value)
    is_loss = isinstance(value, Tensor) and value._array.shape == ()
    if is_loss and value.tape is None and value._array.dtype.kind == "f":
        mean = value._array.dtype.type(ranks.mean(float(value._array)))
        return rewrap(value, mean, next_id(), None)
    raise ArgumentTypeError(
        "data_parallel: the function returns gradients, a loss (a floating scalar without a tape: "
        f"loss.detach()) or a tuple of these, got {value!r}"
    )
