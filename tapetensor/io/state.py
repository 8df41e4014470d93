"""The parts whose states can be saved, and their states as arrays by name, as a file holds them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np

from tapetensor.arguments import as_flag, check_kind
from tapetensor.arrays.array import Array, check_unmasked, native
from tapetensor.arrays.libraries import beside, to_numpy
from tapetensor.errors import (
    ArgumentTypeError,
    FileFormatError,
    StateMismatchError,
    TapeTensorError,
)
from tapetensor.io.disk import PICKLE, Header, Source, header_of
from tapetensor.io.names import Loaded, Names, chosen, cure_of_prefix, in_pytorch_names
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


class State(NamedTuple):
    """The state of a part, as functions of arrays by name.

    Attributes:
        arrays: returns the state. The arrays may change with the part.
        differences: returns a sentence for each name, shape and dtype that does not fit.
        refusals: returns a sentence for each value that cannot be restored.
        restore: restores the state from arrays that were not refused.
    """

    arrays: Callable[[], dict[str, Array]]
    differences: Callable[[Mapping[str, Header]], list[str]]
    refusals: Callable[[Mapping[str, Array]], list[str]]
    restore: Callable[[Mapping[str, Array]], None]


def state_of(op: str, part: object) -> State:
    """Return the state of a part; refuse what has none."""
    if isinstance(part, Module):
        return _state_of_module(part)
    if isinstance(part, Optimizer):
        return _state_of_optimizer(part)
    if isinstance(part, np.random.Generator):
        bits = part.bit_generator
        # On a second one of its kind, which shows whether numpy takes it.
        return _state_of_text(f"a {type(bits).__name__}", bits, "state", type(bits), 100_000)
    if isinstance(part, Notes):
        return _state_of_text("Notes", part, "value", lambda: Notes(None), 100_000_000)
    raise ArgumentTypeError(
        f"{op}: expected a Module, an Optimizer, a numpy Generator or Notes, "
        f"got {type(part).__name__}"
    )


def _state_of_module(module: Module) -> State:
    """Return the state of parameters and buffers, each under all names by which it goes."""
    tensors: Mapping[str, Tensor[Any, NoneTape, Any]] = {
        **module.parameters(),
        **module.buffers(),
    }
    groups: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        groups.setdefault(id(tensor), []).append(name)

    def arrays() -> dict[str, Array]:
        return {name: tensor._array for name, tensor in tensors.items()}

    def differences(headers: Mapping[str, Header]) -> list[str]:
        return _differences("model", arrays(), groups.values(), headers)

    def refusals(given: Mapping[str, Array]) -> list[str]:
        refused: list[str] = []
        for names in groups.values():
            given_names = [name for name in names if name in given]
            refused += [
                f"{given_names[0]} = {name}: one tensor in the model, two values"
                for name in given_names[1:]
                if not np.array_equal(given[given_names[0]], given[name], equal_nan=True)
            ]
        return refused

    def restore(given: Mapping[str, Array]) -> None:
        for name, array in given.items():
            # A model that was moved stays where it is.
            tensors[name]._array = beside(array, tensors[name]._array)

    return State(arrays, differences, refusals, restore)


def _state_of_optimizer(optimizer: Optimizer) -> State:
    def differences(headers: Mapping[str, Header]) -> list[str]:
        arrays = optimizer.state_arrays()
        return _differences("optimizer", arrays, [[name] for name in arrays], headers)

    def refusals(arrays: Mapping[str, Array]) -> list[str]:
        try:
            optimizer.check_arrays(arrays)
        except TapeTensorError as error:
            return [str(error)]
        return []

    return State(optimizer.state_arrays, differences, refusals, optimizer.restore_arrays)


def _state_of_text(
    called: str, owner: object, attribute: str, twin: Callable[[], object], longest: int
) -> State:
    """Return the state of an attribute that JSON can write, as an array of the bytes of that text.

    Args:
        called: what messages call the owner.
        twin: makes another owner, which raises an error for a value that is of no use.
        longest: how many bytes the text has at most.
    """

    def arrays() -> dict[str, Array]:
        text = json.dumps(getattr(owner, attribute), default=np.ndarray.tolist)
        return {"state": np.frombuffer(text.encode(), np.uint8)}

    def differences(headers: Mapping[str, Header]) -> list[str]:
        found = headers.get("state")
        if headers.keys() != {"state"} or found is None:
            return [f"expected is one array, state; found are {', '.join(headers) or 'none'}"]
        if found.dtype != "uint8" or len(found.shape) != 1 or found.shape[0] > longest:
            return [f"state: {found.dtype} of shape {found.shape}, expected is a text as uint8"]
        return []

    def refusals(given: Mapping[str, Array]) -> list[str]:
        try:
            setattr(twin(), attribute, json.loads(given["state"].tobytes()))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            return [f"state: not that of {called} ({error})"]
        return []

    def restore(given: Mapping[str, Array]) -> None:
        setattr(owner, attribute, json.loads(given["state"].tobytes()))

    return State(arrays, differences, refusals, restore)


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


def state_dict(part: Part, *, for_pytorch: bool = False) -> dict[str, Array]:
    """Return copies of the arrays of a part's state, by their names in files.

    For a module these are PyTorch's names and layouts wherever the layers are the same, so
    ``torch_model.load_state_dict({name: torch.from_numpy(a) for name, a in ...})`` takes them.

    Args:
        part: a module, an optimizer, a numpy Generator or Notes.
        for_pytorch: whether the weights of attentions are packed as PyTorch's.

    Raises:
        ArgumentTypeError: if it is none of these.
        ArgumentValueError: if an attention cannot be one of PyTorch's.

    >>> from tapetensor import io, nn
    >>> model = nn.Sequential(nn.Linear(3, 2, rng=np.random.default_rng(0)), nn.ReLU())
    >>> {name: array.shape for name, array in io.state_dict(model).items()}
    {'0.weight': (2, 3), '0.bias': (2,)}
    """
    arrays = state_of("state_dict", part).arrays()
    if as_flag("state_dict", "for_pytorch", for_pytorch):
        arrays = in_pytorch_names("state_dict", part, arrays)
    return {name: np.array(to_numpy(array), order="C") for name, array in arrays.items()}


def load_state_dict(
    part: Part, arrays: Mapping[str, Array], *, names: Names | None = None, strict: bool = True
) -> Loaded:
    """Load the arrays that `state_dict` returned into a part; the arrays are copied.

    Names and layouts can be changed before: ``arrays["w"].T``.

    Args:
        part: a module, an optimizer, a numpy Generator or Notes.
        arrays: by name; for a tensor with two names, one of them will do.
        names: as in `load`.
        strict: as in `load`.

    Returns:
        A report, as of `load`.

    Raises:
        StateMismatchError: if names, shapes, dtypes or values do not fit; the part is as before.
        ArgumentTypeError: if an argument is of the wrong kind.
        ArgumentValueError: if `names` gives one name twice, or has one that is not there.

    >>> from tapetensor import io, nn
    >>> layer = nn.Linear(2, 1, rng=np.random.default_rng(0))
    >>> arrays = {"weight": np.ones((1, 2), "f4"), "bias": np.zeros(1, "f4")}
    >>> print(io.load_state_dict(layer, arrays))
    taken: 2 of 2
    >>> layer.weight
    Tensor([[1., 1.]], shape=(1, 2), dtype=float32, NoneTape)
    """
    state, source = state_of("load_state_dict", part), in_memory("load_state_dict", arrays)
    loaded, values = read_by_name(
        "load_state_dict", "the arrays do", part, state, source, names, strict
    )
    state.restore(values)
    return loaded


def read_by_name(
    op: str,
    subject: str,
    part: Part,
    state: State,
    source: Source,
    names: Names | None,
    strict: bool,
) -> tuple[Loaded, dict[str, Array]]:
    """Return what is taken from a source for a part, and the arrays, which the state takes.

    Args:
        subject: what the source is, and the beginning of a verb: "the arrays do".
    """
    source, loaded = source_for(op, part, source, names, strict)
    try:
        values = read(f"{op}: {subject}", {"": (state, source)})[""]
    except StateMismatchError as error:
        if strict:
            expected = state.arrays() if isinstance(part, Module) else {}
            cure = cure_of_prefix(source.headers, expected)
            raise StateMismatchError(f"{error.args[0]}{cure}", error.differences) from None
        cure = "\nstrict=False loads by name; leave out what is of another shape or dtype, with "
        first = error.differences[0].split(":")[0]
        raise StateMismatchError(
            f"{error.args[0]}{cure}names={{{first!r}: None}}", error.differences
        ) from None
    return loaded, values


def source_for(
    op: str, part: Part, source: Source, names: Names | None = None, strict: bool = True
) -> tuple[Source, Loaded]:
    """Return what is taken of a source for a part, by the part's names, and a report."""
    if isinstance(part, Module):
        return chosen(op, part, source, names, strict)
    if names is not None or strict is not True:
        raise ArgumentTypeError(
            f"{op}: names= and strict=False are for a Module, got {type(part).__name__}, which is "
            "loaded whole"
        )
    return source, Loaded(tuple(source.headers))


def read(subject: str, parts: Mapping[str, tuple[State, Source]]) -> dict[str, dict[str, Array]]:
    """Return the arrays for all states from their sources, none of which any state refuses.

    Args:
        subject: the beginning of the message for what does not fit: what is read, and a verb.
        parts: by the prefix that messages give the names.
    """
    for prefix, (_, source) in parts.items():
        for name, header in source.headers.items():
            if header.dtype == PICKLE:
                raise FileFormatError(
                    f"{subject.rpartition(' ')[0]}: {prefix}{name} is a pickle, which may run "
                    "anything when it is loaded, and is not read; "
                    f"io.load(..., names={{{name!r}: None}}) does without it"
                )
    _refuse(subject, {p: state.differences(one.headers) for p, (state, one) in parts.items()})
    arrays = {p: {name: one.array(name) for name in one.headers} for p, (_, one) in parts.items()}
    _refuse(subject, {p: state.refusals(arrays[p]) for p, (state, _) in parts.items()})
    return arrays


def _refuse(subject: str, differences: Mapping[str, list[str]]) -> None:
    listed = [prefix + one for prefix, several in differences.items() for one in several]
    if listed:
        lines = "".join([f"\n  {one}" for one in listed])
        raise StateMismatchError(f"{subject} not fit, nothing was loaded:{lines}", listed)


def in_memory(op: str, arrays: Mapping[str, Array]) -> Source:
    """Return arrays in memory as a source; refuse what is no array by a name."""
    check_kind(op, "the state", arrays, Mapping, "arrays by name")
    for name, array in arrays.items():
        if not isinstance(name, str) or not isinstance(array, np.ndarray):
            raise ArgumentTypeError(
                f"{op}: {name!r} must be the name of a numpy array, "
                f"got {type(array).__name__}; of a PyTorch tensor take numpy()"
            )
        check_unmasked(op, repr(name), array)

    def copied(name: str) -> Array:
        array = arrays[name]
        return np.array(array, native(array.dtype), order="C")

    return Source({name: header_of(array) for name, array in arrays.items()}, copied)
