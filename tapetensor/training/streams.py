"""Generators and counters on which a training depends, found from the arguments of `fit`.

`tapetensor.checkpointing` knows how to find what a function reaches. Of that a checkpoint holds the
states of all generators of random numbers, and the numbers that training changes: an iterator of a
class of one's own counts where it is in an attribute. What else keeps a place can be named only.
"""

from __future__ import annotations

import io
import json
import random
import warnings
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from tapetensor.arguments import check_rng
from tapetensor.arrays.libraries import to_numpy
from tapetensor.data import Batches
from tapetensor.nn import Module
from tapetensor.surroundings.places import (
    COMMON_GENERATORS,
    Attributes,
    Contents,
    GeneratorState,
    Name,
    Place,
    Slot,
    attributes_of,
)
from tapetensor.surroundings.reachable import Reach
from tapetensor.tensor import Tensor

# Of so many objects and containers, of so many items each, it is found out whether numbers change.
_MOST_HOLDERS, _MOST_ITEMS = 10_000, 64


class Streams:
    """The generators that a training draws from, and the numbers by which it counts.

    Args:
        streams: all that has a state, by names that are the same in every run.
        opaque: what keeps a place that cannot be read, in words, each after what reads it.
    """

    def __init__(self, streams: Mapping[str, Stream], opaque: Sequence[tuple[str, str]]) -> None:
        self._streams = streams
        self._opaque = opaque

    @property
    def names(self) -> list[str]:
        """The names of all."""
        return list(self._streams)

    @property
    def kinds(self) -> list[str]:
        """The names of the generators, which ranks compare."""
        return [name for name, one in self._streams.items() if isinstance(one, _Random)]

    def read(self) -> dict[str, Any]:
        """Return the states, as JSON has them."""
        return {name: _plain(one.read()) for name, one in self._streams.items()}

    def write(self, states: Mapping[str, Any]) -> None:
        """Put what is named back into states that it had."""
        for name, state in states.items():
            self._streams[name].write(state)

    def check(self, states: Any) -> None:
        """Raise ValueError, or what a generator raises, for states that were none of these."""
        if not isinstance(states, dict) or states.keys() != self._streams.keys():
            raise ValueError(f"streams: the states are not those of {', '.join(self.names)}")
        now = self.read()
        try:
            self.write(states)
        finally:
            self.write(now)

    def tell_of_opaque(self, *, is_resumed: bool) -> None:
        """Warn of what keeps a place that no checkpoint holds: of batches at once, for they are
        drawn from it, of the rest where a training goes on.
        """
        for name, told in self._opaque:
            if is_resumed or name == "batches":
                warnings.warn(
                    f"fit: {told}, which keeps a place of its own that no checkpoint holds: a "
                    "training that goes on begins it anew. Make it inside the function, count in "
                    "an attribute, or draw from a numpy Generator",
                    RuntimeWarning,
                    stacklevel=3,
                )

    @contextmanager
    def of_rank(self, rank: int, step: int) -> Iterator[None]:
        """Let generators draw numbers for this rank and step alone, and put them back after it.

        So they are alike on all ranks between the steps, batches are drawn as one process draws
        them, and the file that rank 0 writes will do for every rank.
        """
        generators = [one for one in self._streams.values() if isinstance(one, _Random)]
        put_back = [one.seed(rank, step) for one in generators]
        try:
            yield
        finally:
            for action in put_back:
                action()


class Stream(ABC):
    """Something with a state."""

    @abstractmethod
    def read(self) -> Any:
        """Return the state, of what JSON has and arrays."""

    @abstractmethod
    def write(self, state: Any) -> None:
        """Put back a state; raise an error for what is none."""


class _Random(Stream):
    """A generator."""

    def __init__(self, generator: Any) -> None:
        # All kinds of numpy's bits take a seed and have a state; their base in the stubs has not.
        self._generator = generator

    @abstractmethod
    def seed(self, rank: int, step: int) -> Callable[[], None]:
        """Draw a state for a rank and step; return what puts back the state from before."""


class _Numpys(_Random):
    """The bits of a numpy Generator, and how many children it has had by `spawn`."""

    @override
    def read(self) -> Any:
        return {"state": self._generator.state, "children": self._children()}

    @override
    def write(self, state: Any) -> None:
        self._generator.state = state["state"]
        if self._children() != state["children"]:
            old = self._generator.seed_seq
            seed = np.random.SeedSequence(
                old.entropy,
                spawn_key=old.spawn_key,
                pool_size=old.pool_size,
                n_children_spawned=state["children"],
            )
            self._generator.__setstate__((self._generator.state, seed))

    @override
    def seed(self, rank: int, step: int) -> Callable[[], None]:
        before = self._generator.state
        drawn = int(np.random.Generator(self._generator).integers(1 << 63))
        seed = np.random.SeedSequence(drawn, spawn_key=(rank, step))
        self._generator.state = type(self._generator)(seed).state
        # Children count on: the next step has others.
        return partial(setattr, self._generator, "state", before)

    def _children(self) -> int:
        return getattr(getattr(self._generator, "seed_seq", None), "n_children_spawned", 0)


class _Legacy(_Random):
    """numpy's older generator, which is also behind the functions of `numpy.random`."""

    @override
    def read(self) -> Any:
        return self._generator.get_state(legacy=False)

    @override
    def write(self, state: Any) -> None:
        self._generator.set_state(state)

    @override
    def seed(self, rank: int, step: int) -> Callable[[], None]:
        before = self.read()
        drawn = self._generator.randint(1 << 32, dtype=np.uint32)
        kind: Any = getattr(np.random, before["bit_generator"])
        seed = np.random.SeedSequence(int(drawn), spawn_key=(rank, step))
        self.write(np.random.RandomState(kind(seed)).get_state(legacy=False))
        return partial(self.write, before)


class _Pythons(_Random):
    """A generator of Python's own."""

    @override
    def read(self) -> Any:
        return self._generator.getstate()

    @override
    def write(self, state: Any) -> None:
        version, numbers, gauss = state
        self._generator.setstate((version, tuple(numbers), gauss))

    @override
    def seed(self, rank: int, step: int) -> Callable[[], None]:
        before = self.read()
        self._generator.seed(f"{self._generator.getrandbits(63)}, {rank}, {step}")
        return partial(self.write, before)


class _Numbers(Stream):
    """The numbers that a training changes, among all that it reaches."""

    def __init__(self, places: Iterable[Place]) -> None:
        self._holders: dict[str, _Holder] = {}
        known: set[object] = set()
        named: Counter[str] = Counter()
        # Containers last, of which there may be as many as data.
        for place in sorted(places, key=lambda place: isinstance(place, Contents)):
            holder = _holder_of(place)
            if holder is not None and holder.key not in known and len(known) < _MOST_HOLDERS:
                known.add(holder.key)
                named[holder.name] += 1
                self._holders[f"{holder.name} {named[holder.name]}"] = holder
        self._first = {name: holder.numbers() for name, holder in self._holders.items()}

    @override
    def read(self) -> Any:
        """Return the numbers that are other ones than in the beginning, by where they are."""
        found = {name: holder.numbers() for name, holder in self._holders.items()}
        changed = {
            name: {key: one for key, one in numbers.items() if one != self._first[name].get(key)}
            for name, numbers in found.items()
        }
        return {name: numbers for name, numbers in changed.items() if numbers}

    @override
    def write(self, state: Any) -> None:
        for numbers in state.values():
            if not all(map(is_number, numbers.values())):
                raise ValueError(f"numbers: {numbers!r} are no numbers by name")
        # A place that the program does not have any more is one on which nothing depends.
        for name, holder in self._holders.items():
            holder.put(self._first[name] | state.get(name, {}))


class _Holder(NamedTuple):
    """A place that may hold numbers: a variable, the attributes of an object, a list, a dictionary.

    The numbers in it go by texts.
    """

    name: str
    # What tells it from others.
    key: object
    numbers: Callable[[], dict[str, Any]]
    put: Callable[[dict[str, Any]], None]


def _holder_of(place: Place) -> _Holder | None:
    # Of tensors it is the array that is a place, and has no name.
    if isinstance(place, Slot | Name) and place.name:
        variable = place

        def value() -> dict[str, Any]:
            found = variable.read()
            return {"": found} if is_number(found) else {}

        def set_value(numbers: dict[str, Any]) -> None:
            if numbers and value() != numbers:
                variable.write(numbers[""])

        return _Holder(place.name, (id(place.owner), place.name), value, set_value)
    if not isinstance(place, Attributes | Contents):
        return None
    is_object = isinstance(place, Attributes)
    owner = place.owner if isinstance(place, Attributes) else place.container
    items: Any = attributes_of(owner) if is_object else owner
    if not isinstance(items, dict | list) or len(items) > _MOST_ITEMS:
        return None
    kind: Any = dict if isinstance(items, dict) else list

    def keys() -> dict[str, Any]:
        if len(items) > _MOST_ITEMS:
            return {}
        found = range(len(items)) if isinstance(items, list) else dict.keys(items)
        return {one if isinstance(one, str) else repr(one): one for one in found}

    def numbers() -> dict[str, Any]:
        found = {text: kind.__getitem__(items, key) for text, key in keys().items()}
        return {text: one for text, one in found.items() if is_number(one)}

    def put(wanted: dict[str, Any]) -> None:
        now, places = numbers(), keys()
        for text, number in wanted.items():
            if now.get(text) != number and (text in places or is_object):
                kind.__setitem__(items, places.get(text, text), number)
        for text in now.keys() - wanted.keys():
            # An attribute that hides one of the class since.
            if is_object:
                kind.__delitem__(items, places[text])

    return _Holder(type(owner).__qualname__, id(items), numbers, put)


def is_number(value: object) -> bool:
    """Tell whether a value is an int or a float, and no bool."""
    return type(value) in (int, float)


def found_streams(
    model: Module, around: Mapping[str, object], given: Any, *, is_asked_for: bool
) -> Streams:
    """Return the generators and counters of a training, each once.

    Args:
        around: the arguments of `fit` but the model, by name.
        given: the generators that were passed as `rng`.
        is_asked_for: whether there is a checkpoint, or a rank, to give states to; without one
            nothing is looked for.
    """
    bits: list[Any] = []
    extra = () if given is None else given
    for one in extra if isinstance(extra, Iterable) else [extra]:
        check_rng("fit", one)
        bits.append(one.bit_generator)
    if not is_asked_for:
        return Streams({}, [])
    reached = {name: Reach([one]) for name, one in {"model": model, **around}.items()}
    for reach in reached.values():
        bits += [
            one.rng.bit_generator
            for one in reach.closed
            if isinstance(one, Batches) and one.rng is not None
        ]
    places = list(chain.from_iterable(one.places for one in reached.values()))
    states = [one.generator for one in places if isinstance(one, GeneratorState)]
    bits += [one for one in states if isinstance(one, np.random.BitGenerator)]
    # Libraries draw from these without a word.
    states = [*COMMON_GENERATORS.values(), *states]
    legacy = _once(one for one in states if isinstance(one, np.random.RandomState))
    pythons = _once(one for one in states if isinstance(one, random.Random))
    seeded = [one for one in pythons if not isinstance(one, random.SystemRandom)]
    streams: dict[str, Stream] = {
        **{f"{type(one).__name__} {at}": _Numpys(one) for at, one in enumerate(_once(bits))},
        **{f"RandomState {at}": _Legacy(one) for at, one in enumerate(legacy)},
        **{f"Random {at}": _Pythons(one) for at, one in enumerate(seeded)},
        "numbers": _Numbers(places),
    }
    opaque = [(name, told) for name in reached for told in _opaque_in(name, reached[name])]
    return Streams(streams, opaque)


def _once(values: Iterable[Any]) -> list[Any]:
    return list({id(one): one for one in values}.values())


def _opaque_in(name: str, reach: Reach) -> Iterator[str]:
    """Yield, in words, what keeps a place that nobody can read or set back."""
    drawn = [one.generator for one in reach.places if isinstance(one, GeneratorState)]
    for one in [*reach.closed, *drawn]:
        # A file that is written to has no place that matters.
        is_log = isinstance(one, io.IOBase) and not one.readable()
        if (isinstance(one, Iterator) and not is_log) or isinstance(one, random.SystemRandom):
            yield f"{name} {_holding(one, reach)} a {type(one).__name__}"


def _holding(value: object, reach: Reach) -> str:
    """Return by which name something is reached."""
    for place in reach.places:
        if isinstance(place, Slot | Name) and place.read() is value:
            return f"reads {place.name!r},"
        if isinstance(place, Attributes):
            for name, one in (attributes_of(place.owner) or {}).items():
                if one is value:
                    return f"reads {type(place.owner).__name__}.{name},"
    return "reads"


def _plain(state: Any) -> Any:
    return json.loads(json.dumps(state, default=np.ndarray.tolist))


def print_of(batch: object) -> int | None:
    """Return a number that tells batches apart; None if one holds what has no numbers."""
    if isinstance(batch, Mapping):
        batch = [*batch, *batch.values()]
    if isinstance(batch, tuple | list):
        prints = [print_of(part) for part in batch]
        return None if None in prints else zlib.crc32(repr(prints).encode())
    if isinstance(batch, int | float | str | bytes | None):
        return zlib.crc32(repr(batch).encode())
    array = to_numpy(batch._array) if isinstance(batch, Tensor) else batch
    if not isinstance(array, np.ndarray) or array.dtype.hasobject:
        return None
    return zlib.crc32(array.tobytes())
