"""Methods that hand tapes from tensor to tensor, the backward pass that uses one up, pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Never, Protocol, overload

import numpy as np
from typing_extensions import TypeIs, TypeVar

from tapetensor.arguments import as_flag, check_choice, check_kind
from tapetensor.arrays.array import is_numpys
from tapetensor.arrays.libraries import check_matching
from tapetensor.arrays.stand_ins import plain
from tapetensor.errors import (
    ArgumentTypeError,
    DTypeError,
    ShapeError,
    UntracedTensorError,
    at_the_call,
)
from tapetensor.pictures import calling_place
from tapetensor.tape import NoneTape, OwnedTape, Tape
from tapetensor.tape.gradients import Gradients, Tensorlike
from tapetensor.tape.history import OWN, History, detached_step, is_kept, joined, next_id
from tapetensor.tape.replay import Unused
from tapetensor.tensor.base import (
    FloatingBase,
    TensorBase,
    check_plain,
    check_tensor,
    check_usable,
    rewrap,
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
    """Who has a tape, and how what made a tensor is looked at."""

    __slots__ = ()

    def trace(
        self: Ownership[S, NoneTape, D], grads: Gradients | None = None
    ) -> Tensor[S, OwnedTape, D]:
        """Return a tensor with the same id and data that has a tape; `self` stays plain.

        Ops on it are recorded. It may be used any number of times, in any order: the gradients of
        its uses add up.

        Args:
            grads: gradients of earlier passes, which the tape carries. `backward` reads them when
                it runs and returns their sum with its own; the store itself stays as it is. A store
                that several tapes carry counts once where they meet.

        Raises:
            UntracedTensorError: if `self` has a tape already.

        >>> import tapetensor as tt
        >>> x = tt.from_numpy([3.0], shape=(1,))
        >>> (x.trace() * x).sum().backward()[x]
        Tensor([6.], shape=(1,), dtype=float32, NoneTape)
        """
        return _begun("trace", self, grads)

    def traced(
        self: Ownership[S, NoneTape, D], grads: Gradients | None = None
    ) -> Tensor[S, OwnedTape, D]:
        """Return what `trace` returns, under the name that dfdx has for it.

        Args:
            grads: gradients of earlier passes, which the tape carries, as for `trace`.

        Raises:
            UntracedTensorError: if `self` has a tape already.
        """
        return _begun("traced", self, grads)

    def split_tape(self) -> tuple[Tensor[S, NoneTape, D], T]:
        """Return the plain value, with the same id, and the tape, on its own; `self` stays.

        Gradients of the value flow on as those of `self` do. Ops on it are not recorded before
        `put_tape` has given it the tape again.

        Raises:
            TapeClosedError: if a context has closed the tape.
        """
        check_usable("split_tape", self)
        tape: Any = NoneTape() if self.tape is None else self.tape.apart(self.history)
        return _handle(self, None, self.history), tape

    def put_tape(self: Ownership[S, NoneTape, D], tape: NewTape) -> Tensor[S, NewTape, D]:
        """Return a tensor with the same id and data that has `tape`; `self` stays plain.

        A tape may be put on any number of tensors.

        Raises:
            UntracedTensorError: if `self` has a tape already.
            ArgumentTypeError: if `tape` is not a tape.
            TapeClosedError: if a context has closed it.
        """
        if self.tape is not None:
            raise _traced_already("put_tape", self, "an op on the two tensors merges their tapes")
        if isinstance(tape, NoneTape):
            return _handle(self, None, self.history)
        check_kind("put_tape", "the argument", tape, OwnedTape, "a tape")
        tape.check_usable("put_tape")
        result = _with_tape(self, tape.rejoined())
        result.history = joined(next_id(), result.history, tape.history)
        return result

    def with_empty_tape(self) -> Tensor[S, T, D]:
        """Return a second handle: same id, same data, a tape of the same kind; dfdx's name.

        Nothing is lost by it: what both handles lead to adds up.

        Raises:
            TapeClosedError: if a context has closed the tape of `self`.
        """
        check_usable("with_empty_tape", self)
        return _handle(self, self.tape, self.history)

    def retaped(self, tape_type: type[NewTape]) -> Tensor[S, NewTape, D]:
        """Return a second handle: same id, same data, with a tape or without, as is asked for.

        Args:
            tape_type: `OwnedTape` or `NoneTape`, often another tensor's ``tape_type``.

        Raises:
            ArgumentTypeError: if `tape_type` is neither.
            TapeClosedError: if a context has closed the tape of `self`.
        """
        check_usable("retaped", self)
        if tape_type is OwnedTape:
            if self.tape is None:
                return _with_tape(self, OwnedTape.active())
            return _handle(self, self.tape, self.history)
        if tape_type is NoneTape:
            return _handle(self, None, self.history)
        raise ArgumentTypeError(f"retaped: expected OwnedTape or NoneTape, got {tape_type!r}")

    def detach(self) -> Tensor[S, NoneTape, D]:
        """Return the value as a constant: plain, the same data, a new id; `self` stays as it is.

        Where it is used no gradient flows back to `self`. (The plain part of `split_tape` keeps the
        id, so gradients do flow through that.)

        >>> import tapetensor as tt
        >>> x = tt.from_numpy([3.0], shape=(1,))
        >>> (x.trace() * x.detach()).sum().backward()[x]
        Tensor([3.], shape=(1,), dtype=float32, NoneTape)
        """
        constant = rewrap(self, plain(self._array), next_id(), None)
        if self.tape is not None:
            constant.history = detached_step(constant._id)
        elif is_kept(self.history):
            constant.history = OWN
        return constant

    @overload
    def backward(
        self: FloatingBase[tuple[()], OwnedTape, F],
        cotangent: None = None,
        *,
        wrt: HasParameters | Tensorlike[Any] | Iterable[Tensorlike[Any]] | None = None,
        retain: bool = False,
        unused: Unused = "ignore",
        check_finite: bool = False,
    ) -> Gradients: ...
    @overload
    def backward(
        self: FloatingBase[S, OwnedTape, F],
        cotangent: Tensor[S, NoneTape, F],
        *,
        wrt: HasParameters | Tensorlike[Any] | Iterable[Tensorlike[Any]] | None = None,
        retain: bool = False,
        unused: Unused = "ignore",
        check_finite: bool = False,
    ) -> Gradients: ...
    # Of a plain tensor: nobody has the argument, whose name is in the checkers' messages.
    @overload
    def backward(
        self: TensorBase[S, NoneTape, D], write_trace_on_an_input_of_the_loss: Never, **_: object
    ) -> Gradients: ...
    def backward(  # type: ignore[misc]  # the last overload cannot be called
        self,
        cotangent: Tensor[Any, NoneTape, Any] | None = None,
        *,
        wrt: HasParameters | Tensorlike[Any] | Iterable[Tensorlike[Any]] | None = None,
        retain: bool = False,
        unused: Unused = "ignore",
        check_finite: bool = False,
    ) -> Gradients:
        """Run the recorded ops backwards and return the gradients, with those carried by the tape.

        The history before `self` is used up, as in PyTorch: the arrays that its ops keep are freed
        step by step, also if variables still hold intermediate values.

        Args:
            cotangent: the cotangent of `self`; may be left out for a scalar, where it is 1.
            wrt: a module (its parameters), a tensor or several tensors to differentiate by.
                Pullbacks that contribute to none of them are not run. Without it every leaf gets
                its gradient, or every leaf that the carried gradients declare.
            retain: whether to leave the history as it is, for another backward pass through it.
            unused: "error" to refuse recorded ops that do not lead to `self`.
            check_finite: whether to look for a NaN or an infinity in every gradient on the way,
                which costs about as much again as the backward pass.

        Raises:
            UntracedTensorError: if `self` has no tape.
            TapeUsedError: if an earlier backward pass has used up what gradients have to flow
                through.
            ShapeError: if there is no cotangent and `self` is not a scalar, or its shape is wrong.
            DTypeError: if `self` is not floating, or the dtype of the cotangent is wrong.
            TapeClosedError: if the context that the tape belongs to was left.
            MissingGradientError: if a gradient in `wrt` would lack a part, or ops do not lead to
                `self` and `unused` is "error".
            NumericalInstabilityError: if `check_finite` and a gradient is not finite; it names the
                op whose pullback made it.

        After an error nothing is used up.

        >>> import tapetensor as tt
        >>> x = tt.from_numpy([3.0], shape=(1,))
        >>> h = x.trace().square()
        >>> h.sum().backward(retain=True)[x]
        Tensor([6.], shape=(1,), dtype=float32, NoneTape)
        >>> (h * h).sum().backward()[x]
        Tensor([108.], shape=(1,), dtype=float32, NoneTape)
        """
        # First, because it may run code of the caller's: a generator, a module's parameters().
        with at_the_call:
            wanted = None if wrt is None else _wanted(wrt)
            tape, seed = tape_and_seed(self, cotangent)
            if retain is not False:
                as_flag("backward", "retain", retain)
            if check_finite is not False:
                as_flag("backward", "check_finite", check_finite)
            if unused != "ignore":
                check_choice("backward", "unused", unused, ("ignore", "error"))
            return tape.run_backward(
                self.history, self._id, seed, wanted,
                retain=retain, unused=unused, finite=check_finite, place=calling_place(),
            )  # fmt: skip

    def to_html(
        self: Ownership[S, OwnedTape, D], *, names: Mapping[str, Tensorlike[Any]] | None = None
    ) -> str:
        """Return an HTML page that draws the recorded ops before the tensor; it needs no network.

        The pullbacks run once for it, for their times and for the shapes of what they give; what
        is recorded is not used up. Inside `source_lines` an op knows the line that ran it.

        Args:
            names: names for inputs, such as ``model.parameters()``.

        Raises:
            ArgumentTypeError: if `names` are not tensors by name.
            UntracedTensorError: if the tensor has no tape.
            TapeClosedError: if its tape is closed.

        >>> import tapetensor as tt
        >>> page = tt.ones((2, 3)).trace().exp().sum().to_html()
        >>> page.count('role="button"')
        3
        """
        _check_names("to_html", names)
        return _tape_of("to_html", self).to_html(_output(self), names=names)

    def tree(
        self: Ownership[S, OwnedTape, D],
        *,
        names: Mapping[str, Tensorlike[Any]] | None = None,
        ascii: bool | None = None,
    ) -> str:
        """Return the recorded ops before the tensor as text, the latest first.

        Args:
            names: names for inputs, such as ``model.parameters()``.
            ascii: whether to draw with plain characters; None means if the terminal needs it.

        Raises:
            ArgumentTypeError: if `names` are not tensors by name.
            UntracedTensorError: if the tensor has no tape.
            TapeClosedError: if its tape is closed.
        """
        _check_names("tree", names)
        return _tape_of("tree", self).tree(_output(self), names=names, ascii=ascii)

    def _repr_html_(self) -> str | None:
        """Return the picture for a notebook, or None, for the plain repr."""
        tape = self.tape
        if tape is None or tape.is_closed:
            return None
        return tape.apart(self.history)._repr_html_(_output(self))


def tape_and_seed(
    tensor: TensorBase[Any, Any, Any], cotangent: TensorBase[Any, Any, Any] | None
) -> tuple[OwnedTape, Array]:
    """Return what a backward pass starts from.

    Raises:
        UntracedTensorError: if the tensor has no tape.
        ShapeError: if there is no cotangent and it is not a scalar, or its shape is wrong.
        DTypeError: if it is not floating, or the dtype of the cotangent is wrong.
        TapeClosedError: if the context that the tape belongs to was left.
    """
    tape = tensor.tape
    if tape is None:
        raise UntracedTensorError(
            "backward: this tensor has no tape, so nothing was recorded; "
            "trace an input first: loss(model.forward(x.trace())).backward()"
        )
    tape.check_usable("backward")
    if tensor._array.dtype.kind != "f":
        raise DTypeError(f"backward: a tensor of dtype {tensor._array.dtype} has no gradient")
    return tape, _seed(tensor, cotangent)


def _seed(tensor: TensorBase[Any, Any, Any], cotangent: TensorBase[Any, Any, Any] | None) -> Array:
    if cotangent is None:
        if tensor._array.shape != ():
            raise ShapeError(
                f"backward: only a scalar has a default cotangent, this tensor has shape "
                f"{tensor._array.shape}; reduce it first (mean(), sum()) or pass a cotangent"
            )
        data: Any = tensor._array
        if is_numpys(data):
            # A fifth of what the function below takes.
            return np.array(1, data.dtype)
        return np.ones_like(data)
    check_plain("backward", "the cotangent", cotangent, "detach() it")
    check_matching("backward", "the cotangent", cotangent._array, "the tensor", tensor._array)
    return cotangent._array


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


def _traced_already(op: str, tensor: TensorBase[Any, Any, Any], cure: str) -> UntracedTensorError:
    return UntracedTensorError(f"{op}: the tensor has {tape_state(tensor)} already; {cure}")


def _begun(
    op: str, tensor: TensorBase[Any, Any, Any], grads: Gradients | None
) -> Tensor[Any, Any, Any]:
    """Return a handle of a plain tensor with the tape of all that is traced, or one of its own."""
    if tensor.tape is not None:
        raise _traced_already(op, tensor, f"drop the second {op}()")
    if grads is None:
        return _with_tape(tensor, OwnedTape.active())
    check_kind(op, "carried gradients", grads, Gradients, "Gradients")
    return _with_tape(tensor, OwnedTape(grads))


def _with_tape(tensor: TensorBase[Any, Any, Any], tape: OwnedTape) -> Tensor[Any, Any, Any]:
    """Return a handle of a plain tensor that has a tape."""
    history = tensor.history
    return _handle(tensor, tape, None if history is OWN else history)


def _handle(
    tensor: TensorBase[Any, Any, Any], tape: OwnedTape | None, history: History
) -> Tensor[Any, Any, Any]:
    data = tensor._array
    if tape is not None and tape.level is not None:
        data = tape.level.operand(data, tensor._id)
    result = rewrap(tensor, data, tensor._id, tape)
    result.history = history
    return result


def _tape_of(op: str, tensor: TensorBase[Any, Any, Any]) -> OwnedTape:
    tape = tensor.tape
    if tape is None:
        raise UntracedTensorError(
            f"{op}: the tensor of shape {tensor._array.shape} has no tape, so nothing is recorded; "
            "begin with x.trace()"
        )
    tape.check_usable(op)
    return tape.apart(tensor.history)


def _check_names(op: str, names: Mapping[str, object] | None) -> None:
    if names is None:
        return
    check_kind(op, "names", names, Mapping, "tensors by name, such as model.parameters()")
    for name, tensor in names.items():
        check_tensor(op, f"names[{name!r}]", tensor)


def _output(tensor: TensorBase[Any, Any, Any]) -> TensorBase[Any, Any, Any] | None:
    """Return where to start measuring; None inside `grad` and `compile`, which would see it."""
    return tensor if is_numpys(tensor._array) else None


def compute_gradients(
    loss: FloatingBase[S, OwnedTape, F],
    *,
    wrt: HasParameters | Tensorlike[Any] | Iterable[Tensorlike[Any]] | None = None,
) -> Gradients:
    """Run the recorded ops backwards and return the gradients of the sum of the loss's elements.

    For a scalar the same as ``loss.backward()``; another shape is taken with a cotangent of ones.

    Args:
        loss: of any shape.
        wrt: what to differentiate with respect to, as for `backward`.

    Raises:
        ArgumentTypeError: if `loss` is not a tensor.
        UntracedTensorError: if it owns no tape.
        TapeUsedError: if an earlier backward pass has used up the recorded ops.
        TapeClosedError: if the context that its tape belongs to was left, or the tape cleared.
        DTypeError: if it is not floating.

    >>> import tapetensor as tt
    >>> x = tt.from_numpy([1.0, 3.0], shape=(2,))
    >>> tt.compute_gradients(x.trace().square())[x]
    Tensor([2., 6.], shape=(2,), dtype=float32, NoneTape)
    """
    check_tensor("compute_gradients", "the loss", loss)
    assert isinstance(loss, Ownership)
    check_usable("compute_gradients", loss)
    ones = rewrap(loss, np.ones_like(loss._array), next_id(), None)
    return loss.backward(ones, wrt=wrt)


def owns_tape(
    x: Tensor[S, NoneTape, D] | Tensor[S, OwnedTape, D],
) -> TypeIs[Tensor[S, OwnedTape, D]]:
    """Tell whether a tensor owns a tape, so that checkers know which of two types it has.

    What the property `Tensor.owns_tape` says, which no checker narrows by. In a `forward` with an
    overload for each tape it parts the two: behind ``if tt.owns_tape(x):`` mypy, pyright, pyrefly
    and ty take `x` for the traced tensor, and after it for the plain one.

    Args:
        x: a tensor, plain or traced.

    Raises:
        ArgumentTypeError: if `x` is not a tensor.

    >>> import tapetensor as tt
    >>> x = tt.ones((2,))
    >>> tt.owns_tape(x), tt.owns_tape(x.trace())
    (False, True)
    """
    check_tensor("owns_tape", "x", x)
    return x.owns_tape
