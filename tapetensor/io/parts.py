"""The parts whose states can be saved: modules, optimizers, generators, notes."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import beside
from tapetensor.errors import ArgumentTypeError, TapeTensorError
from tapetensor.io.disk import Header, header_of
from tapetensor.nn import Module
from tapetensor.optim import Optimizer
from tapetensor.tape import NoneTape
from tapetensor.tensor import Tensor


@final
@dataclass
class Notes:
    """Numbers and strings that a file holds beside tensors: ``Notes({"epoch": 3})``.

    Args:
        value: a value that JSON has: numbers, strings, booleans, None, lists, and dicts by string.
            Floats come back to the bit.

    Raises:
        ArgumentTypeError: if it is something else.
    """

    value: Any

    def __post_init__(self) -> None:
        try:
            json.dumps(self.value)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"Notes: only what JSON has can be noted ({error})") from error
        _check_comes_back(self.value)


def _check_comes_back(value: object) -> None:
    """Raise ArgumentTypeError for what JSON takes and gives back as something else."""
    if isinstance(value, tuple):
        raise ArgumentTypeError(
            f"Notes: the tuple {value!r} would come back as a list; note a list"
        )
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise ArgumentTypeError(
                    f"Notes: the key {key!r} would come back as a text; note it as {str(key)!r}"
                )
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            _check_comes_back(one)


Part: TypeAlias = Module | Optimizer | np.random.Generator | Notes


class State(ABC):
    """The state of a part, as arrays that can be saved and restored."""

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """Return the state by name. The arrays may change with the part."""

    @abstractmethod
    def differences(self, headers: Mapping[str, Header]) -> list[str]:
        """Return a sentence for each name, shape and dtype that does not fit."""

    def needed(self, headers: Mapping[str, Header]) -> list[str]:
        """Return the names of the arrays to read, after all of them were found to fit."""
        return list(headers)

    @abstractmethod
    def refusals(self, arrays: Mapping[str, Array]) -> list[str]:
        """Return a sentence for each value that cannot be restored."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Restore the state from arrays that were not refused."""


def state_of(op: str, part: object) -> State:
    """Return the state of a part; refuse what has none."""
    if isinstance(part, Module):
        return _ModuleState(part)
    if isinstance(part, Optimizer):
        return _OptimizerState(part)
    if isinstance(part, np.random.Generator):
        bits = part.bit_generator
        # On a second one of its kind, which shows whether numpy takes it.
        return _TextState(f"a {type(bits).__name__}", bits, "state", type(bits), longest=100_000)
    if isinstance(part, Notes):
        return _TextState("Notes", part, "value", lambda: Notes(None), longest=100_000_000)
    raise ArgumentTypeError(
        f"{op}: expected a Module, an Optimizer, a numpy Generator or Notes, "
        f"got {type(part).__name__}"
    )


class _ModuleState(State):
    """Parameters and buffers. One that goes by several names is saved under each."""

    def __init__(self, module: Module) -> None:
        self._tensors = {**module.parameters(), **module.buffers()}
        self._names: dict[int, list[str]] = {}
        for name, tensor in self._tensors.items():
            self._names.setdefault(id(tensor), []).append(name)

    @override
    def arrays(self) -> dict[str, Array]:
        return {name: tensor._array for name, tensor in self._tensors.items()}

    @override
    def differences(self, headers: Mapping[str, Header]) -> list[str]:
        found = {name: headers[name] for name in self.needed(headers)}
        return _differences("model", self.arrays(), self._names.values(), found)

    def _is_counter(self, name: str) -> bool:
        """Tell whether it is PyTorch's count of batches, on which none of our layers depends."""
        owner, _, last = name.rpartition("num_batches_tracked")
        return not last and f"{owner}running_mean" in self._tensors

    @override
    def needed(self, headers: Mapping[str, Header]) -> list[str]:
        return [name for name in headers if not self._is_counter(name)]

    @override
    def refusals(self, arrays: Mapping[str, Array]) -> list[str]:
        refused: list[str] = []
        for names in self._names.values():
            given = [name for name in names if name in arrays]
            refused += [
                f"{given[0]} = {name}: one tensor in the model, two values"
                for name in given[1:]
                if not np.array_equal(arrays[given[0]], arrays[name], equal_nan=True)
            ]
        return refused

    @override
    def restore(self, arrays: Mapping[str, Array]) -> None:
        tensors: Mapping[str, Tensor[Any, NoneTape, Any]] = self._tensors
        for name, array in arrays.items():
            # A model that was moved stays where it is.
            tensors[name]._array = beside(array, tensors[name]._array)


class _OptimizerState(State):
    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer

    @override
    def arrays(self) -> dict[str, Array]:
        return self._optimizer.state_arrays()

    @override
    def differences(self, headers: Mapping[str, Header]) -> list[str]:
        arrays = self.arrays()
        return _differences("optimizer", arrays, [[name] for name in arrays], headers)

    @override
    def refusals(self, arrays: Mapping[str, Array]) -> list[str]:
        try:
            self._optimizer.check_arrays(arrays)
        except TapeTensorError as error:
            return [str(error)]
        return []

    @override
    def restore(self, arrays: Mapping[str, Array]) -> None:
        self._optimizer.restore_arrays(arrays)


class _TextState(State):
    """An attribute that JSON can write, as an array of the bytes of that text.

    Args:
        called: what messages call the owner.
        twin: makes another owner, which raises an error for a value that is of no use.
        longest: how many bytes the text has at most.
    """

    def __init__(
        self, called: str, owner: object, attribute: str, twin: Callable[[], object], longest: int
    ) -> None:
        self._called = called
        self._owner = owner
        self._attribute = attribute
        self._twin = twin
        self._longest = longest

    @override
    def arrays(self) -> dict[str, Array]:
        text = json.dumps(getattr(self._owner, self._attribute), default=np.ndarray.tolist)
        return {"state": np.frombuffer(text.encode(), np.uint8)}

    @override
    def differences(self, headers: Mapping[str, Header]) -> list[str]:
        found = headers.get("state")
        if headers.keys() != {"state"} or found is None:
            return [f"expected is one array, state; found are {', '.join(headers) or 'none'}"]
        if found.dtype != "uint8" or len(found.shape) != 1 or found.shape[0] > self._longest:
            return [f"state: {found.dtype} of shape {found.shape}, expected is a text as uint8"]
        return []

    @override
    def refusals(self, arrays: Mapping[str, Array]) -> list[str]:
        try:
            setattr(self._twin(), self._attribute, json.loads(arrays["state"].tobytes()))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            return [f"state: not that of {self._called} ({error})"]
        return []

    @override
    def restore(self, arrays: Mapping[str, Array]) -> None:
        setattr(self._owner, self._attribute, json.loads(arrays["state"].tobytes()))


def _differences(
    owner: str,
    arrays: Mapping[str, Array],
    groups: Iterable[list[str]],
    found: Mapping[str, Header],
) -> list[str]:
    """Return where what was found differs from the arrays; of each group one name will do."""
    told = []
    for name, array in arrays.items():
        header = header_of(array)
        other = found.get(name, header)
        if other.shape != header.shape:
            told.append(f"{name}: shape {other.shape}, expected is {header.shape}")
        if other.dtype != header.dtype:
            told.append(f"{name}: dtype {other.dtype}, expected is {header.dtype}")
    missing = [names for names in groups if found.keys().isdisjoint(names)]
    told += [f"{' = '.join(names)}: missing" for names in missing]
    return told + [f"{name}: not in the {owner}" for name in found if name not in arrays]
