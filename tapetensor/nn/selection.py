"""Some of the parameters of a model, for training a part of it and freezing the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from typing_extensions import override

from tapetensor.errors import ArgumentTypeError, ArgumentValueError
from tapetensor.tape import NoneTape
from tapetensor.tensor.ownership import HasParameters
from tapetensor.tensor.tensor import Tensor


class Selection:
    """Some of the parameters of a model, for an optimizer and for `backward`.

    The rest is frozen: ``backward(wrt=selection)`` runs no pullback that only leads to a frozen
    parameter, and an optimizer of the selection neither updates it nor holds state for it.

    A name stands for the parameter of that dotted name, or for all within the field of that name:
    ``"hidden"`` for ``"hidden.weight"`` and ``"hidden.bias"``. A tensor that goes by two names, as
    tied weights do, is left out if one of them is.

    Args:
        model: a module, or another selection.
        only: the names to select; None for all.
        without: the names to leave out of those.

    Raises:
        ArgumentTypeError: if `model` has no parameters(), or the names are not several strings.
        ArgumentValueError: if a name is that of no parameter, or none are left.

    >>> from typing import Literal as L
    >>> import numpy as np
    >>> import tapetensor as tt
    >>> from tapetensor import nn
    >>> class Mlp(nn.Module):
    ...     hidden: nn.Linear[L[4], L[8]]
    ...     out: nn.Linear[L[8], L[2]]
    >>> model = tt.build(Mlp, rng=np.random.default_rng(0))
    >>> nn.Selection(model, without=["hidden", "out.bias"])
    Selection(out.weight)
    """

    def __init__(
        self,
        model: HasParameters,
        *,
        only: Iterable[str] | None = None,
        without: Iterable[str] = (),
    ) -> None:
        if not callable(getattr(model, "parameters", None)) or isinstance(model, type):
            raise ArgumentTypeError(
                f"Selection: expected a model with parameters(), got {type(model).__name__}"
            )
        self._model = model
        self._only = None if only is None else _as_names("only", only)
        self._without = _as_names("without", without)
        known = list(model.parameters())
        for name in [*(self._only or ()), *self._without]:
            if not any(_is_within(one, name) for one in known):
                raise ArgumentValueError(
                    f"Selection: there is no parameter {name!r}; there are {', '.join(known)}"
                )
        if not self.parameters():
            raise ArgumentValueError("Selection: no parameter is left to train")

    def parameters(self) -> dict[str, Tensor[Any, NoneTape, Any]]:
        """Return the selected tensors by dotted name, in the order of the model."""
        parameters: Mapping[str, Any] = self._model.parameters()
        # By id, for a tensor that goes by two names is one tensor: tied weights.
        frozen = {
            tensor.id
            for name, tensor in parameters.items()
            if any(_is_within(name, one) for one in self._without)
        }
        return {
            name: tensor
            for name, tensor in parameters.items()
            if (self._only is None or any(_is_within(name, one) for one in self._only))
            and tensor.id not in frozen
        }

    @override
    def __repr__(self) -> str:
        """Show the names."""
        return f"Selection({', '.join(self.parameters())})"


def _as_names(argument: str, names: object) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ArgumentTypeError(
            f"Selection: {argument} must be several names, got {names!r}; write ['hidden'], say"
        )
    several = tuple(names)
    if not all(isinstance(name, str) for name in several):
        raise ArgumentTypeError(f"Selection: {argument} must be names, got {several!r}")
    return several


def _is_within(parameter: str, name: str) -> bool:
    return parameter == name or parameter.startswith(name + ".")
