"""The values after the ``=`` of a module's field, from which `build` makes the field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tapetensor.arguments import as_size
from tapetensor.arrays.array import Array
from tapetensor.errors import ArgumentTypeError

# Stands for a default that is not there; None may be one.
MISSING: Any = object()
# The shape, the dtype and a generator in, the first values out.
Initializer: TypeAlias = Callable[[tuple[int, ...], "np.dtype[Any]", np.random.Generator], Array]


class Field(NamedTuple):
    """How one field is built.

    Attributes:
        kind: the name of the function below that declared it; empty for none.
        initializer: makes the first values of a tensor field.
        options: further arguments for the constructor of a module field.
        length: how many modules a list field holds, or the name of the type variable that says it;
            None for a field that is not a list.
        default: the value of a field that is given none; every module gets a copy.
    """

    kind: str = ""
    initializer: Initializer | None = None
    options: tuple[tuple[str, Any], ...] = ()
    length: int | str | None = None
    default: Any = MISSING


def parameter(initializer: Initializer) -> Any:
    """Declare a tensor field that is trained.

        scale: Tensor1D[N] = parameter(nn.init.ones)

    Args:
        initializer: called with shape, dtype and generator; see `tapetensor.nn.init`.
    """
    return Field("parameter", _checked("parameter", initializer))


def buffer(initializer: Initializer) -> Any:
    """Declare a tensor field that is kept with the module but not trained.

        running_mean: Tensor1D[N] = buffer(nn.init.zeros)

    Args:
        initializer: called with shape, dtype and generator; see `tapetensor.nn.init`.
    """
    return Field("buffer", _checked("buffer", initializer))


def options(**arguments: Any) -> Any:
    """Give arguments to the constructor of a module field.

    drop: Dropout = options(p=0.1)
    """
    return Field("options", options=tuple(arguments.items()))


def repeat(count: int | str, **arguments: Any) -> Any:
    """Declare how many modules a list field holds.

        blocks: list[Block[L[64]]] = repeat(4)

    Args:
        count: how many, > 0; or the name of a type variable of the class, which then says it.
        **arguments: further arguments for the constructor of each.
    """
    if not isinstance(count, str):
        as_size("repeat", "count", count, low=1)
    return Field("repeat", options=tuple(arguments.items()), length=count)


def _checked(name: str, initializer: object) -> Initializer:
    if not callable(initializer):
        raise ArgumentTypeError(
            f"{name}: expected an initializer, a function of shape, dtype and rng, "
            f"got {initializer!r}; write {name}(nn.init.zeros), say"
        )
    return initializer
