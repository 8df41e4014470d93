"""The result of a backward pass: one array per tensor id, looked up by tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from sys import getrefcount
from typing import Any, Never, Protocol, overload

import numpy as np
from typing_extensions import TypeVar, override

from tapetensor.arguments import as_number, check_kind
from tapetensor.arrays.array import Array, are_added_in_place, as_array, is_array, read_only
from tapetensor.arrays.libraries import check_matching, check_one_library
from tapetensor.arrays.stand_ins import Captured, captured_among, run_check
from tapetensor.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DTypeError,
    MissingGradientError,
    NumericalInstabilityError,
    ShapeError,
    UntracedTensorError,
)
from tapetensor.pictures import table
from tapetensor.tape.gaps import Gap, name_of
from tapetensor.tape.history import OWN, BackwardPass, TensorId, one_pass
from tapetensor.tape.row_sparse import changed, dense_of, values_of, zeros_of

# So many backward passes are told apart by the gradients of them.
_MOST_PASSES = 32

G = TypeVar("G")
G_co = TypeVar("G_co", covariant=True)


class Tensorlike(Protocol[G_co]):
    """An object with an identity and a shape that knows the type of its own gradient.

    So that this floor can name "a tensor" without naming the floor above.
    """

    @property
    def id(self) -> int:
        """The identity that gradients are filed under."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, which is the gradient's too."""

    def wrap_gradient(self, array: Array, origins: tuple[Any, ...] = ()) -> G_co:
        """Return `array` as a plain tensor of this tensor's static shape and dtype.

        Args:
            array: the gradient.
            origins: what it was computed from, as of a gap.
        """


class Gradients:
    """The gradients of one backward pass, or the sum over several.

    Entries are found by the id of a tensor, so a tensor and its traced copy have the same entry.
    ``grads[weight]`` has the static shape and dtype of ``weight``.

    A backward pass leaves the gradients of *leafs* (tensors that no recorded op produced) in it. A
    store that `Gradients.leaky` made gets the gradients of all tensors on the way. After
    `retain_leafs` a store gets only the gradients of the tensors that are named there. If a
    training loop carries a store from step to step, name the parameters once, so that the store
    does not grow with the inputs.

    The ids are this process's own: a store can be copied, but not pickled. The gradient of an
    ``nn.Embedding(..., sparse=True)`` is held as the rows that were read, and given as the whole.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([1.0, 2.0], shape=(2,))
    >>> grads = x.trace().square().sum().backward()
    >>> grads[x]
    Tensor([2., 4.], shape=(2,), dtype=float32, NoneTape)
    """

    __slots__ = ("_leafs", "_leaky", "arrays", "gaps", "origins")

    def __init__(self) -> None:
        # By id; in the place of an array there may be the rows of a table that are not zero.
        self.arrays: dict[int, Array] = {}
        # What some of them lack: who asks for one of those gets an error.
        self.gaps: tuple[Gap, ...] = ()
        # The backward passes that they are of, and the histories of what was inserted.
        self.origins: tuple[Any, ...] = ()
        self._leafs: frozenset[int] | None = None
        self._leaky = False

    @classmethod
    def of(
        cls,
        arrays: dict[int, Array],
        leafs: frozenset[int] | None,
        is_leaky: bool,
        gaps: tuple[Gap, ...] = (),
        origins: tuple[Any, ...] = (),
    ) -> Gradients:
        """Return a store that holds `arrays`."""
        store = cls()
        store.gaps, store.origins = gaps, origins
        store.arrays, store._leafs, store._leaky = arrays, leafs, is_leaky
        return store

    @classmethod
    def leaky(cls) -> Gradients:
        """Return an empty store that keeps the gradients of intermediate tensors as well.

        Carried from step to step such a store grows by one entry per op: it is for looking inside.
        """
        return cls.of({}, None, is_leaky=True)

    def __getitem__(self, tensor: Tensorlike[G]) -> G:
        """Return the gradient of `tensor`, a plain tensor with a new id.

        Raises:
            MissingGradientError: if there is none, or if it lacks a part, because the tensor was
                also used in ops that no tape recorded.
        """
        found = self.get(tensor)
        if found is None:
            raise MissingGradientError(
                f"no gradient for the tensor of shape {tuple(tensor.shape)} with id {tensor.id}: "
                "it did not take part in the loss, `wrt` left it out, or it is not a leaf "
                "(trace with Gradients.leaky() to keep intermediate gradients)"
            )
        return found

    @overload
    def get(self, tensor: Tensorlike[G]) -> G | None: ...
    @overload
    def get(self, tensor: TensorId) -> Array | None: ...
    def get(self, tensor: Tensorlike[Any] | TensorId) -> Any:
        """Return the gradient of `tensor`, or None if there is none.

        Args:
            tensor: a tensor, whose gradient is a plain tensor of its type; or an id, whose gradient
                is a read-only array.

        Raises:
            MissingGradientError: if it lacks a part, as for ``grads[tensor]``.
        """
        return self._handed(tensor, self.arrays.get(self._asked("Gradients.get", tensor)))

    @overload
    def remove(self, tensor: Tensorlike[G]) -> G | None: ...
    @overload
    def remove(self, tensor: TensorId) -> Array | None: ...
    def remove(self, tensor: Tensorlike[Any] | TensorId) -> Any:
        """Take the gradient of `tensor` out of the store and return it; None if there is none.

        Args:
            tensor: a tensor, whose gradient is a plain tensor of its type; or an id, whose gradient
                is a read-only array.

        Raises:
            MissingGradientError: if it lacks a part, as for ``grads[tensor]``.
        """
        return self._handed(tensor, self.arrays.pop(self._asked("Gradients.remove", tensor), None))

    def _handed(self, tensor: Tensorlike[Any] | TensorId, array: Any) -> Any:
        """Return an entry as it is handed out; None if there is none."""
        if array is None:
            return None
        array = dense_of(array)
        if isinstance(tensor, TensorId):
            return read_only(array)
        return tensor.wrap_gradient(array, self.origins)

    @overload
    def insert(self, tensor: Tensorlike[G], gradient: G | Array) -> None: ...
    @overload
    def insert(self, tensor: TensorId, gradient: Array) -> None: ...
    def insert(self, tensor: Tensorlike[Any] | TensorId, gradient: Any) -> None:
        """Add `gradient` to the entry of `tensor`; without an entry, make one from a copy.

        An entry that nobody else holds is added to in place.

        Args:
            tensor: a tensor, or an id, of which shape and dtype are known once it has an entry.
            gradient: a plain tensor or an array.

        Raises:
            ArgumentTypeError: if `gradient` is neither a plain tensor nor a numpy array.
            UntracedTensorError: if it is a tensor that owns a tape.
            ShapeError: if its shape is not that of `tensor`.
            DTypeError: if its dtype is not that of `tensor`.

        >>> import numpy as np
        >>> import tapetensor as tt
        >>> grads, key = tt.Gradients(), tt.TensorId.new()
        >>> for _ in range(2):
        ...     grads.insert(key, np.array([1.0, 2.0]))
        >>> grads.get(key)
        array([2., 4.])
        """
        unique_id = _id_of("Gradients.insert", tensor)
        array = array_of("Gradients.insert", gradient)
        if (history := getattr(gradient, "history", None)) is not None and history is not OWN:
            self._came_of((history,))
        existing = self.arrays.get(unique_id)
        if not isinstance(tensor, TensorId):
            _check_gradient("Gradients.insert", tensor, array)
        elif existing is not None:
            check_matching(
                "Gradients.insert", "the gradient so far", existing, "the one to add", array
            )
        if existing is None:
            self.arrays[unique_id] = array.copy()
            return
        check_one_library("Gradients.insert", (existing, array))
        del existing
        self._add(unique_id, array)

    def _came_of(self, origins: tuple[Any, ...]) -> None:
        self.origins += origins
        if len(self.origins) > _MOST_PASSES:
            self.origins = (one_pass(self.origins),)

    def _add(self, unique_id: int, array: Array) -> None:
        """Add an array to an entry, in place if nobody else can see that."""
        existing: Any = self.arrays[unique_id]
        if (
            are_added_in_place(existing, array)
            and existing.base is None
            and existing.flags.writeable
            and array.dtype == existing.dtype
            and array.shape == existing.shape
            and getrefcount(existing) == _REFERENCES_OF_UNSHARED
        ):
            existing += array
        else:
            self.arrays[unique_id] = existing + array

    def __contains__(self, tensor: Tensorlike[Any] | TensorId) -> bool:
        """Tell whether there is a gradient for `tensor`, which may be an id."""
        return _id_of("in Gradients", tensor) in self.arrays

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.arrays)

    def __iter__(self) -> Iterator[TensorId]:
        """Iterate over the ids that have a gradient."""
        return iter([TensorId(one) for one in self.arrays])

    @property
    def is_leaky(self) -> bool:
        """Whether a backward pass leaves the gradients of intermediate tensors as well."""
        return self._leaky

    @property
    def leafs(self) -> frozenset[int] | None:
        """The ids that `retain_leafs` declared; None without a declaration."""
        return self._leafs

    def array(self, unique_id: int) -> Array | None:
        """Return the array for an id, the stored one and no copy: read it, never write to it.

        Raises:
            MissingGradientError: if it lacks a part, as for ``grads[tensor]``.
        """
        self.check_complete("Gradients.array", {unique_id: f"the tensor with id {unique_id}"})
        array = self.arrays.get(unique_id)
        return None if array is None else dense_of(array)

    def _asked(self, op: str, tensor: Tensorlike[Any] | TensorId) -> int:
        """Return the id of a tensor whose gradient is asked for, which lacks nothing."""
        unique_id = _id_of(op, tensor)
        if self.gaps:
            is_id = isinstance(tensor, TensorId)
            named = f"the tensor with id {unique_id}" if is_id else tensor
            self.check_complete(op, {unique_id: named})
        return unique_id

    def check_complete(self, op: str, wanted: Mapping[int, Any]) -> None:
        """Raise MissingGradientError if a gradient that is asked for lacks a part.

        Args:
            op: what asks.
            wanted: by id the tensor, or its name.
        """
        for one in self.gaps:
            concerned = [name_of(wanted[key]) for key in wanted if one.concerns(key)]
            if concerned:
                raise one.error(op, concerned)

    def retain_leafs(self, tensors: Iterable[Tensorlike[Any]]) -> None:
        """Declare `tensors` leafs, beside those declared before, and drop all other entries.

        Raises:
            ArgumentTypeError: if `tensors` are not several tensors.
        """
        # A tensor can be iterated, over its rows.
        if not isinstance(tensors, Iterable) or hasattr(tensors, "wrap_gradient"):
            raise ArgumentTypeError(
                "Gradients.retain_leafs: expected several tensors, got "
                f"{type(tensors).__name__}; write [weight, bias], say"
            )
        ids = frozenset([_id_of("Gradients.retain_leafs", tensor) for tensor in tensors])
        self._leafs = ids if self._leafs is None else self._leafs | ids
        self.drop_non_leafs()

    def declare(self, ids: frozenset[int]) -> None:
        """Declare leafs by their ids, in the place of those declared before."""
        self._leafs = ids

    def drop_non_leafs(self) -> None:
        """Drop the entries of tensors that are not declared leafs; without a declaration, none."""
        if self._leafs is not None:
            self.arrays = {key: a for key, a in self.arrays.items() if key in self._leafs}

    def zero(self) -> None:
        """Set every gradient to zeros; the entries stay."""
        self.gaps, self.origins = (), ()
        self.arrays = {key: zeros_of(array) for key, array in self.arrays.items()}

    def merge(self, other: Gradients) -> None:
        """Add every gradient of `other` to this store; `other` stays as it is.

        The leafs that either declares are declared in the sum, and it is leaky if either is. If
        `other` alone declares some, the entries of this store are declared, too.

        Raises:
            ArgumentTypeError: if `other` is not a Gradients.
            ShapeError: if the two disagree on the shape of an id.
            DTypeError: if the two disagree on the dtype of an id.
            ArgumentValueError: if both hold the gradients of one backward pass, because both passes
                carried them, say.
        """
        check_kind("Gradients.merge", "other", other, Gradients, "Gradients")
        passes = [one for one in self.origins if isinstance(one, BackwardPass)]
        if any(one is mine for one in other.origins for mine in passes):
            raise ArgumentValueError(
                "Gradients.merge: both stores hold the gradients of one backward pass, which would "
                "count twice; let one of the two passes carry them, x.trace(grads), and not both"
            )
        own = frozenset(self.arrays) if self._leafs is None else self._leafs
        merged = dict(self.arrays)
        for key, array in other.arrays.items():
            existing = merged.get(key)
            if existing is not None:
                check_matching(
                    "Gradients.merge", "a gradient", existing, "the other of its id", array
                )
            merged[key] = array if existing is None else existing + array
        self.arrays = merged
        self.gaps += other.gaps
        self._came_of(other.origins)
        self._leaky = self._leaky or other._leaky
        if other._leafs is not None:
            self._leafs = own | other._leafs

    def global_norm(self) -> float:
        """Return the Euclidean norm of all gradients taken together.

            sqrt(sum of squares over every element of every gradient)

        Summed in float64. Zero for an empty store.
        """
        return global_norm(self.arrays.values())

    def clip_by_global_norm(self, max_norm: float) -> float:
        """Scale all gradients by ``min(1, max_norm / norm)`` and return the norm before that.

        Args:
            max_norm: > 0; an infinity only looks for gradients that are not finite.

        Raises:
            ArgumentTypeError: if `max_norm` is not a number.
            ArgumentValueError: if it is not positive.
            NumericalInstabilityError: if the norm is not finite; the gradients stay as they are.

        Source: Pascanu, Mikolov & Bengio (2013), "On the difficulty of training recurrent
            neural networks", algorithm 1.
        """
        norm, factor = clipping("Gradients.clip_by_global_norm", self.arrays.values(), max_norm)
        if factor is not None:
            self._change(lambda values: values * factor)
        return norm

    def clip_by_value(self, limit: float) -> None:
        """Clip every number of every gradient to ``[-limit, limit]``; a NaN stays one.

        It changes the direction of the gradient, which `clip_by_global_norm` does not.

        Args:
            limit: > 0.

        Raises:
            ArgumentTypeError: if `limit` is not a number.
            ArgumentValueError: if it is not positive.
        """
        bound = as_number("Gradients.clip_by_value", "limit", limit, above=0, at_most=math.inf)
        self._change(lambda values: np.clip(values, -bound, bound))

    def _change(self, change: Callable[[Array], Array]) -> None:
        self.arrays = {key: changed(array, change) for key, array in self.arrays.items()}

    def __copy__(self) -> Gradients:
        """Return a store with the same entries that changes independently of this one."""
        return Gradients.of(self.arrays.copy(), self._leafs, self._leaky, self.gaps, self.origins)

    def __deepcopy__(self, memo: object) -> Gradients:
        """Return the same as `copy.copy`: the arrays are never written to."""
        return self.__copy__()

    @override
    def __reduce__(self) -> Never:
        """Refuse to be pickled: elsewhere the ids would name other tensors, or none."""
        raise ArgumentTypeError(
            "pickle: Gradients are keyed by ids that mean nothing in another process; "
            "save them by name: {name: grads[p] for name, p in model.parameters().items()}"
        )

    @override
    def __repr__(self) -> str:
        """Show how many gradients there are, and of which kind of store."""
        kind = "leaky, " if self._leaky else ""
        return f"Gradients({kind}{len(self.arrays)} tensors)"

    def _repr_html_(self) -> str:
        """Return a table of the gradients, for a notebook's cell."""
        rows = [
            (str(key), str(tuple(array.shape)), str(array.dtype), f"{global_norm([array]):.4g}")
            for key, array in self.arrays.items()
        ]
        return table(repr(self), [("id of the tensor", "shape", "dtype", "norm"), *rows])

    def accumulate(self, arrays: dict[int, Array]) -> None:
        """Add the arrays of a backward pass, which nobody else writes to, to the entries."""
        for key, array in arrays.items():
            if key in self.arrays:
                self._add(key, array)
            else:
                self.arrays[key] = array


def _id_of(op: str, tensor: object) -> int:
    if isinstance(tensor, TensorId):
        return int(tensor)
    unique_id = getattr(tensor, "id", None)
    if not isinstance(unique_id, int) or not hasattr(tensor, "wrap_gradient"):
        raise ArgumentTypeError(f"{op}: expected a tensor, got {type(tensor).__name__}")
    return int(unique_id)


def array_of(op: str, gradient: object) -> Array:
    """Return the array of a gradient, which is a plain tensor or an array.

    Raises:
        ArgumentTypeError: if it is neither.
        UntracedTensorError: if it is a tensor that owns a tape.
    """
    if hasattr(gradient, "wrap_gradient") and hasattr(gradient, "detach"):
        if getattr(gradient, "owns_tape", False):
            raise UntracedTensorError(
                f"{op}: the gradient owns a tape, which would be lost; write gradient.detach()"
            )
        gradient = gradient.detach()._array
    if not is_array(gradient):
        raise ArgumentTypeError(
            f"{op}: expected a tensor or a numpy array, got {type(gradient).__name__}"
        )
    return as_array(op, "the gradient", gradient)


def _check_gradient(op: str, tensor: Tensorlike[Any], array: Array) -> None:
    if tuple(tensor.shape) != array.shape:
        raise ShapeError(
            f"{op}: a gradient of shape {array.shape} does not fit "
            f"a tensor of shape {tuple(tensor.shape)}"
        )
    dtype = getattr(tensor, "dtype", array.dtype)
    if dtype != array.dtype:
        raise DTypeError(
            f"{op}: a gradient of dtype {array.dtype} does not fit a tensor of dtype {dtype}"
        )


def _references_of_unshared() -> int:
    """Return the reference count of an array that only the store holds, as `_add` sees it."""
    store = Gradients.of({0: np.zeros(1)}, None, is_leaky=False)
    existing = store.arrays[0]
    return getrefcount(existing)


_REFERENCES_OF_UNSHARED = _references_of_unshared()


def global_norm(arrays: Iterable[Array]) -> float:
    """Return the Euclidean norm of all elements of all arrays, summed in float64."""
    return _number(_norm, *map(values_of, arrays))


def _norm(*arrays: Array) -> float:
    return math.sqrt(sum(float(np.sum(np.square(a, dtype=np.float64))) for a in arrays))


def clipping(op: str, arrays: Iterable[Array], max_norm: float) -> tuple[float, float | None]:
    """Return the norm of the arrays and the factor that brings it down to `max_norm`, if it must.

    Raises:
        ArgumentTypeError: if `max_norm` is not a number.
        ArgumentValueError: if it is not positive.
        NumericalInstabilityError: if the norm is not finite.
    """
    bound = as_number(op, "max_norm", max_norm, above=0, at_most=math.inf)
    norm = global_norm(arrays)
    run_check(_check_norm, norm, op)
    if isinstance(norm, Captured):
        # A program does not know it yet.
        return norm, _number(_factor, norm, bound)
    return norm, _factor(norm, bound) if norm > bound else None


def _check_norm(norm: float, op: str) -> None:
    if not math.isfinite(norm):
        raise NumericalInstabilityError(
            f"{op}: the norm of the gradients is {norm}; "
            "look for the op that made a NaN or an infinity before clipping"
        )


def _factor(norm: float, bound: float) -> float:
    return bound / norm if norm > bound else 1.0


def _number(function: Callable[..., float], *args: Any) -> float:
    """Call a function that returns a number; let captured arguments capture the call."""
    captured = captured_among(args)
    if captured is None:
        return function(*args)
    number: float = captured.capture_number(function, args)
    return number
