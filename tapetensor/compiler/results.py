"""The results of a trace, written as the source that makes them again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from tapetensor.compiler.lazy import LazyArray
from tapetensor.compiler.program import Node
from tapetensor.compiler.refusals import trace_error
from tapetensor.compiler.structure import holds_arrays, is_named_tuple
from tapetensor.gradients import Gradients
from tapetensor.tape import OwnedTape
from tapetensor.tensor.base import TensorBase


class ResultWriter:
    """Writes results as source.

    Args:
        bind: gives the name of a known object.
        known: the source of each tensor that came in.
        ids: the source of each id that came in.
    """

    def __init__(
        self, bind: Callable[[Any], str], known: dict[int, str], ids: dict[int, str]
    ) -> None:
        # The nodes that the results are made of, and the lines that make tensors.
        self.leaving: list[Node] = []
        self.made: list[str] = []
        self._bind = bind
        self._ids = ids
        self._tensors = known

    def write(self, value: Any) -> str:
        """Return the source of a result."""
        bind = self._bind
        if isinstance(value, TensorBase):
            return self._tensor(value)
        if isinstance(value, LazyArray | np.ndarray):
            return self.array(value)
        if isinstance(value, Gradients):
            leafs = bind(value._leafs)
            return f"gradients_of({self.entries(value)}, {leafs}, {value._leaky})"
        if value.__class__ in (tuple, list):
            items = "".join([f"{self.write(item)}, " for item in value])
            return f"({items})" if isinstance(value, tuple) else f"[{items}]"
        if is_named_tuple(value):
            items = ", ".join([self.write(item) for item in value])
            return f"{bind(value.__class__)}({items})"
        if value.__class__ is dict:
            items = ", ".join([f"{bind(key)}: {self.write(item)}" for key, item in value.items()])
            return f"{{{{{items}}}}}"
        if dataclasses.is_dataclass(value) and holds_arrays(value):
            items = ", ".join(
                [
                    f"{field.name}={self.write(getattr(value, field.name))}"
                    for field in dataclasses.fields(value)
                ]
            )
            return f"{bind(value.__class__)}({items})"
        return bind(value)

    def array(self, value: Any) -> str:
        """Return the source of an array."""
        if not isinstance(value, LazyArray):
            return self._bind(value)
        self.leaving.append(value.node)
        return f"{{{len(self.leaving) - 1}}}"

    def entries(self, store: Gradients) -> str:
        """Return the source of the dict of a store of gradients."""
        items = ", ".join(
            [f"{self._id(key)}: {self.array(array)}" for key, array in store._arrays.items()]
        )
        return f"{{{{{items}}}}}"

    def _tensor(self, tensor: Any) -> str:
        known = self._tensors.get(id(tensor))
        if known is not None:
            return known
        if isinstance(tensor._tape, OwnedTape):
            raise trace_error(
                "a result owns a tape, which cannot leave a compiled function; "
                "call backward() inside, or return x.detach()"
            )
        local = f"r{len(self.made)}"
        cls = self._bind(tensor.__class__)
        unique_id = self._id(tensor._id)
        self.made.append(f"{local} = wrap({cls}, {self.array(tensor._data)}, {unique_id}, None)")
        self._tensors[id(tensor)] = local
        return local

    def _id(self, unique_id: int) -> str:
        known = self._ids.get(unique_id)
        if known is None:
            known = f"i{len(self.made)}"
            self.made.append(f"{known} = next_id()")
            self._ids[unique_id] = known
        return known


def gradients_of(arrays: dict[int, Any], leafs: frozenset[int] | None, is_leaky: bool) -> Gradients:
    """Return a store that holds `arrays`."""
    store = Gradients()
    store._arrays, store._leafs, store._leaky = arrays, leafs, is_leaky
    return store
