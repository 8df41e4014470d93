"""Pictures of the history of a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tapetensor.arguments import check_kind
from tapetensor.arrays.array import is_numpys
from tapetensor.errors import UntracedTensorError
from tapetensor.tape import OwnedTape
from tapetensor.tape.gradients import Tensorlike
from tapetensor.tensor.base import TensorBase, check_tensor
from tapetensor.typing import D, S, T


class Pictures(TensorBase[S, T, D]):
    """How what made a tensor is looked at."""

    __slots__ = ()

    def to_html(
        self: Pictures[S, OwnedTape, D], *, names: Mapping[str, Tensorlike[Any]] | None = None
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
        self: Pictures[S, OwnedTape, D],
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
