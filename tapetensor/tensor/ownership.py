"""Methods that hand tapes from tensor to tensor, and the backward pass that uses one up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, overload

import numpy as np
from typing_extensions import TypeVar

from tapetensor.arguments import as_flag, as_size, check_kind
from tapetensor.arrays.array import is_numpys
from tapetensor.arrays.libraries import check_matching
from tapetensor.arrays.stand_ins import plain
from tapetensor.errors import (
    ArgumentTypeError,
    DTypeError,
    MissingGradientError,
    NumericalInstabilityError,
    ShapeError,
    UntracedTensorError,
)
from tapetensor.pictures import users_place
from tapetensor.tape import NoneTape, OwnedTape, Tape
from tapetensor.tape.gaps import Gap
from tapetensor.tape.gradients import Gradients, Tensorlike
from tapetensor.tape.ids import next_id
from tapetensor.tape.origins import PARTED
from tapetensor.tape.recorder import Unused, check_unused, op_name
from tapetensor.tensor.base import (
    FloatingBase,
    Taker,
    TensorBase,
    check_not_spent,
    check_plain,
    check_tensor,
    check_usable,
    moved_error,
    rewrap,
    take_tape,
    tape_state,
)
from tapetensor.typing import D, F, S, T

if TYPE_CHECKING:
    from tapetensor.arrays.array import Array
    from tapetensor.tensor.tensor import Tensor

NewTape = TypeVar("NewTape", bound=Tape)


class HasParameters(Protocol):
    """A module, as far as `backward` needs to know one."""

    def parameters(self) -> Mapping[str, Tensorlike[Any]]:
        """Return the parameters by dotted name."""


class Ownership(TensorBase[S, T, D]):
    """Who owns the tape."""

    __slots__ = ()

    def trace(
        self: Ownership[S, NoneTape, D], grads: Gradients | None = None
    ) -> Tensor[S, OwnedTape, D]:
        """Return a tensor with the same id and data that owns a fresh tape; `self` stays plain.

        Args:
            grads: gradients of earlier passes, which the tape carries. `backward` reads them when
                it runs and returns their sum with its own; the store itself stays as it is. A store
                that several tapes carry counts once where they meet.

        Raises:
            UntracedTensorError: if `self` owns a tape already.
            MovedTensorError: if `self` is spent.

        >>> import tapetensor as tt
        >>> x = tt.from_numpy([3.0], shape=(1,))
        >>> (x.trace() * x).sum().backward()[x]
        Tensor([6.], shape=(1,), dtype=float32, NoneTape)
        """
        _check_untaped("trace", self, "drop the second trace(), or write x.share()")
        return _traced("trace", self, _carrying("trace", grads))

    def traced(
        self: Ownership[S, NoneTape, D], grads: Gradients | None = None
    ) -> Tensor[S, OwnedTape, D]:
        """Like `trace`, but consuming: `self` is spent afterwards, and its buffer may be reused.

        Args:
            grads: gradients of earlier passes, which the tape carries, as for `trace`.

        Raises:
            UntracedTensorError: if `self` owns a tape already.
            MovedTensorError: if `self` is spent.
        """
        _check_untaped("traced", self, "drop the second traced(), or write x.share()")
        result = _traced("traced", self, _carrying("traced", grads))
        # Another thread may have spent it; as in `take_tape`, nothing comes between.
        taker: Any = self.tape
        if taker is not None:
            raise moved_error("traced", self, op_name(taker))
        self.tape = Ownership.traced
        return result

    def split_tape(self) -> tuple[Tensor[S, NoneTape, D], T]:
        """Part the value from its tape: a plain tensor with the same id, and the tape.

        `self` is spent if it owned a tape; a plain tensor stays usable and gives a `NoneTape`. What
        is computed from the value while the tape is apart is a constant.

        Raises:
            MovedTensorError: if `self` is spent.
        """
        check_usable("split_tape", self)
        plain = _retaped(self, None)
        if self.tape is None:
            none: Any = NoneTape()
            return plain, none
        tape: Any = take_tape(self, Ownership.split_tape)
        plain.origins = PARTED
        return plain, tape

    def put_tape(self: Ownership[S, NoneTape, D], tape: NewTape) -> Tensor[S, NewTape, D]:
        """Return a tensor with the same id and data that owns `tape`; `self` stays plain.

        Raises:
            UntracedTensorError: if `self` owns a tape already.
            MovedTensorError: if `self` is spent, or `tape` was put on another tensor before.
            ArgumentTypeError: if `tape` is not a tape.
        """
        _check_untaped("put_tape", self, "merge two tapes by an op on the two tensors")
        if isinstance(tape, NoneTape):
            return _retaped(self, None)
        check_kind("put_tape", "the argument", tape, OwnedTape, "a tape")
        tape.check_usable("put_tape")
        return _traced("put_tape", self, tape.move())

    def with_empty_tape(self) -> Tensor[S, T, D]:
        """Return a second handle: same id, same data, an empty tape of the same kind.

        What is computed from both handles adds up when the two meet again in an op.

        Raises:
            MovedTensorError: if `self` is spent.
        """
        check_usable("with_empty_tape", self)
        return _retaped(self, None) if self.tape is None else _lent("with_empty_tape", self)

    @overload
    def share(self) -> Self: ...
    @overload
    def share(self, n: Literal[1]) -> tuple[Self]: ...
    @overload
    def share(self, n: Literal[2]) -> tuple[Self, Self]: ...
    @overload
    def share(self, n: Literal[3]) -> tuple[Self, Self, Self]: ...
    @overload
    def share(self, n: Literal[4]) -> tuple[Self, Self, Self, Self]: ...
    @overload
    def share(self, n: int) -> tuple[Self, ...]: ...
    def share(self, n: int | None = None) -> Any:
        """Return handles that each own the whole record: use any of them, and gradients are right.

            y = x.share()          one handle more; x goes on as before
            a, b = x.share(2)      as many handles; x is spent

        All have the id and the data of `self`. Where they meet again, what came before them counts
        once; where they do not, each leads back to it. It takes neither time nor memory that grows
        with the record. Of a plain value the handles are plain, and it stays usable.

        Shape: that of `self`.
        Derivative: the gradients of all handles that lead to a result add up.

        Args:
            n: how many handles, >= 1; without it, one more than there is.

        Raises:
            MovedTensorError: if `self` is spent.
            TapeClosedError: if the tape of `self` is closed.
            ArgumentTypeError: if `n` is not an integer.
            ArgumentValueError: if it is less than 1.

        >>> import tapetensor as tt
        >>> x = tt.from_numpy([3.0], shape=(1,))
        >>> a, b = x.trace().square().share(2)
        >>> (a.sum() * b.sum()).backward()[x]
        Tensor([108.], shape=(1,), dtype=float32, NoneTape)
        """
        check_usable("share", self)
        if n is None:
            tape: Any = self.tape
            return _retaped(self, None if tape is None else tape.fork())
        count = as_size("share", "n", n, low=1)
        return tuple(forks(self, count, Ownership.share))

    def retaped(self, tape_type: type[NewTape]) -> Tensor[S, NewTape, D]:
        """Return a second handle: same id, same data, an empty tape of the kind asked for.

        Args:
            tape_type: `OwnedTape` or `NoneTape`, often another tensor's ``tape_type``.

        Raises:
            MovedTensorError: if `self` is spent.
            ArgumentTypeError: if `tape_type` is neither.
        """
        check_usable("retaped", self)
        if tape_type is OwnedTape:
            return _lent("retaped", self)
        if tape_type is NoneTape:
            return _untaped(self)
        raise ArgumentTypeError(f"retaped: expected OwnedTape or NoneTape, got {tape_type!r}")

    def detach(self) -> Tensor[S, NoneTape, D]:
        """Return the value as a constant: plain, the same data, a new id; `self` keeps its tape.

        Where it is used no gradient flows back to `self`. (The plain part of `split_tape` keeps the
        id, so gradients do flow through that.)

        Raises:
            MovedTensorError: if `self` is spent.

        >>> import tapetensor as tt
        >>> x = tt.from_numpy([3.0], shape=(1,))
        >>> (x.trace() * x.detach()).sum().backward()[x]
        Tensor([3.], shape=(1,), dtype=float32, NoneTape)
        """
        check_not_spent("detach", self)
        return rewrap(self, plain(self.array), next_id(), None)

    @overload
    def backward(
        self: FloatingBase[tuple[()], OwnedTape, F],
        cotangent: None = None,
        *,
        wrt: HasParameters | Tensorlike[Any] | Iterable[Tensorlike[Any]] | None = None,
        unused: Unused = "ignore",
        check_finite: bool = False,
    ) -> Gradients: ...
    @overload
    def backward(
        self: FloatingBase[S, OwnedTape, F],
        cotangent: Tensor[S, NoneTape, F],
        *,
        wrt: HasParameters | Tensorlike[Any] | Iterable[Tensorlike[Any]] | None = None,
        unused: Unused = "ignore",
        check_finite: bool = False,
    ) -> Gradients: ...
    def backward(
        self,
        cotangent: Tensor[Any, NoneTape, Any] | None = None,
        *,
        wrt: HasParameters | Tensorlike[Any] | Iterable[Tensorlike[Any]] | None = None,
        unused: Unused = "ignore",
        check_finite: bool = False,
    ) -> Gradients:
        """Replay the tape and return the gradients, those that it carried included.

        `self` is spent.

        Args:
            cotangent: the cotangent of `self`; may be left out for a scalar, where it is 1.
            wrt: what to differentiate with respect to: a module (its parameters), a tensor or
                several. Pullbacks that contribute to none of them are not run. Without it every
                leaf gets its gradient, or every one that the carried gradients declare.
            unused: "error" to refuse a tape with ops on it that do not lead to `self`.
            check_finite: whether to look for a NaN or an infinity in every gradient on the way,
                which costs about as much again as the backward pass.

        Raises:
            UntracedTensorError: if `self` owns no tape.
            MovedTensorError: if `self` is spent.
            ShapeError: if there is no cotangent and `self` is not a scalar, or its shape is wrong.
            DTypeError: if `self` is not floating, or the dtype of the cotangent is wrong.
            TapeClosedError: if the context that the tape belongs to was left.
            MissingGradientError: if ops do not lead to `self` and `unused` is "error".
            NumericalInstabilityError: if `check_finite` and a gradient is not finite; it names the
                op whose pullback made it, and `self` is not spent.
        """
        # First, because it may run code of the caller's: a generator, a module's parameters().
        wanted = None if wrt is None else _wanted(wrt)
        tape, seed = tape_and_seed(self, cotangent)
        as_flag("backward", "check_finite", check_finite)
        check_unused("backward", tape.recorded(), self._id, unused, wanted)
        take_tape(self, Ownership.backward)
        try:
            return tape.replay(self._id, seed, wanted, finite=check_finite)
        except (MissingGradientError, NumericalInstabilityError):
            self.tape = tape
            raise


def tape_and_seed(
    tensor: TensorBase[Any, Any, Any], cotangent: TensorBase[Any, Any, Any] | None
) -> tuple[OwnedTape, Array]:
    """Return what a backward pass starts from; the tensor is not spent yet.

    Raises:
        UntracedTensorError: if the tensor owns no tape.
        MovedTensorError: if it is spent.
        ShapeError: if there is no cotangent and it is not a scalar, or its shape is wrong.
        DTypeError: if it is not floating, or the dtype of the cotangent is wrong.
        TapeClosedError: if the context that the tape belongs to was left.
    """
    check_usable("backward", tensor)
    tape = tensor.tape
    if tape is None:
        raise UntracedTensorError(
            "backward: this tensor owns no tape, so nothing was recorded; "
            "trace an input first: loss(model.forward(x.trace())).backward()"
        )
    if tensor.array.dtype.kind != "f":
        raise DTypeError(f"backward: a tensor of dtype {tensor.array.dtype} has no gradient")
    seed = _seed(tensor, cotangent)
    if not isinstance(tape, OwnedTape):
        # Another thread has spent it since it was checked.
        raise moved_error("backward", tensor, op_name(tape))
    return tape, seed


def forks(
    tensor: TensorBase[Any, Any, Any], count: int, taker: Taker
) -> list[Tensor[Any, Any, Any]]:
    """Return handles of one tensor that each own its whole record; the tensor is spent.

    Args:
        tensor: not spent; of a plain one the handles are plain, and it stays usable.
        count: how many handles.
        taker: the op that takes the tape, for the message of a later use.
    """
    if tensor.tape is None:
        return [_retaped(tensor, None) for _ in range(count)]
    tape = take_tape(tensor, taker)
    return [_retaped(tensor, tape.fork()) for _ in range(count)]


def _carrying(op: str, grads: Gradients | None) -> OwnedTape:
    """Return a fresh tape that carries `grads`."""
    if grads is not None:
        check_kind(op, "carried gradients", grads, Gradients, "Gradients")
    return OwnedTape(grads)


def _seed(tensor: TensorBase[Any, Any, Any], cotangent: TensorBase[Any, Any, Any] | None) -> Array:
    if cotangent is None:
        if tensor.array.shape != ():
            raise ShapeError(
                f"backward: only a scalar has a default cotangent, this tensor has shape "
                f"{tensor.array.shape}; reduce it first (mean(), sum()) or pass a cotangent"
            )
        data: Any = tensor.array
        if is_numpys(data):
            # A fifth of what the function below takes.
            return np.array(1, data.dtype)
        return np.ones_like(data)
    check_plain("backward", "the cotangent", cotangent, "detach() it")
    check_matching("backward", "the cotangent", cotangent.array, "the tensor", tensor.array)
    return cotangent.array


def _wanted(wrt: object) -> dict[int, Any]:
    """Return the ids to differentiate by, with what messages call them: names or tensors."""
    if isinstance(wrt, TensorBase):
        return {wrt._id: wrt}
    parameters = None if isinstance(wrt, type) else getattr(wrt, "parameters", None)
    tensors = parameters() if callable(parameters) else wrt
    if isinstance(tensors, Mapping):
        return {_id(tensor): name for name, tensor in tensors.items()}
    if isinstance(tensors, str | bytes) or not isinstance(tensors, Iterable):
        raise ArgumentTypeError(
            f"backward: wrt must be a module, a tensor or several, got {type(wrt).__name__}"
        )
    return {_id(tensor): tensor for tensor in tensors}


def _id(tensor: Any) -> int:
    if not isinstance(tensor, TensorBase):
        if hasattr(tensor, "parameters"):
            raise ArgumentTypeError(
                f"backward: wrt takes one module or several tensors, got a {type(tensor).__name__} "
                "among several; write [*a.parameters().values(), *b.parameters().values()]"
            )
        check_tensor("backward", "wrt", tensor)
    unique_id: int = tensor._id
    return unique_id


def _check_untaped(op: str, tensor: TensorBase[Any, Any, Any], cure: str) -> None:
    check_not_spent(op, tensor)
    if tensor.tape is not None:
        raise UntracedTensorError(f"{op}: the tensor owns {tape_state(tensor)} already; {cure}")


def _traced(op: str, tensor: TensorBase[Any, Any, Any], tape: OwnedTape) -> Tensor[Any, Any, Any]:
    """Return a handle that owns `tape`, which notes if the plain tensor was computed."""
    result = _retaped(tensor, tape)
    if tensor.origins is not None and tensor.origins is not PARTED:
        tape.gaps[tensor._id] = Gap.computed(op, tensor)
    return result


def _lent(op: str, tensor: TensorBase[Any, Any, Any]) -> Tensor[Any, Any, Any]:
    """Return a handle that owns an empty tape, which notes whose record it needs."""
    tape = OwnedTape()
    owned, unique_id = tensor.tape, tensor._id
    if isinstance(owned, OwnedTape):
        if owned.has_record(unique_id):
            tape.gaps[unique_id] = Gap.lent(op, tensor)
        elif unique_id in owned.gaps:
            gap = owned.gaps[unique_id]
            tape.gaps[unique_id] = gap._replace(op=op, place=users_place()) if gap.is_lent else gap
        return _retaped(tensor, tape)
    return _traced(op, tensor, tape)


def _untaped(tensor: TensorBase[Any, Any, Any]) -> Tensor[Any, Any, Any]:
    """Return a plain handle, which remembers what is on the tape that it was taken from."""
    result = _retaped(tensor, None)
    if isinstance(tensor.tape, OwnedTape) and tensor.tape.leads_on(tensor._id):
        result.origins = tensor.tape.history(tensor._id)
    return result


def _retaped(tensor: TensorBase[Any, Any, Any], tape: OwnedTape | None) -> Tensor[Any, Any, Any]:
    data = tensor.array
    if tape is not None and tape.level is not None:
        data = tape.level.operand(data, tensor._id)
    result = rewrap(tensor, data, tensor._id, tape)
    result.origins = tensor.origins
    return result
