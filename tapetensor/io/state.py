"""The state of a part as arrays by name, as a file would hold it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tapetensor.arguments import as_flag, check_kind
from tapetensor.arrays.array import Array, check_unmasked, native
from tapetensor.arrays.libraries import to_numpy
from tapetensor.errors import ArgumentTypeError, FileFormatError, StateMismatchError
from tapetensor.io.disk import PICKLE, Source, header_of
from tapetensor.io.names import (
    Chosen,
    Loaded,
    Names,
    check_for_module,
    cure_of_prefix,
    in_pytorch_names,
)
from tapetensor.io.parts import Part, State, state_of
from tapetensor.nn import Module


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
    state, source = state_of("load_state_dict", part), Arrays("load_state_dict", arrays)
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
    check_for_module(op, part, names, strict)
    loaded = Loaded(tuple(source.headers))
    if isinstance(part, Module):
        source = chosen = Chosen(op, part, source, names, strict)
        loaded = chosen.report
    try:
        values = read(f"{op}: {subject}", {"": state}, source)[""]
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


def read(subject: str, states: Mapping[str, State], source: Source) -> dict[str, dict[str, Array]]:
    """Return the arrays for all states from a source, none of which any state refuses.

    Args:
        subject: the beginning of the message for what does not fit: what is read, and a verb.
        states: by the prefix that their names have in the source.
    """
    named = source.headers.items()
    parted = {
        prefix: {name.removeprefix(prefix): one for name, one in named if name.startswith(prefix)}
        for prefix in states
    }
    for prefix, headers in parted.items():
        for name, header in headers.items():
            if header.dtype == PICKLE:
                raise FileFormatError(
                    f"{subject.rpartition(' ')[0]}: {prefix}{name} is a pickle, which may run "
                    "anything when it is loaded, and is not read; "
                    f"io.load(..., names={{{name!r}: None}}) does without it"
                )
    _refuse(subject, {p: state.differences(parted[p]) for p, state in states.items()})
    arrays = {
        prefix: {name: source.array(prefix + name) for name in state.needed(parted[prefix])}
        for prefix, state in states.items()
    }
    _refuse(subject, {prefix: state.refusals(arrays[prefix]) for prefix, state in states.items()})
    return arrays


def restore(states: Mapping[str, State], arrays: Mapping[str, Mapping[str, Array]]) -> None:
    """Give all states what `read` returned."""
    for prefix, state in states.items():
        state.restore(arrays[prefix])


def _refuse(subject: str, differences: Mapping[str, list[str]]) -> None:
    listed = [prefix + one for prefix, several in differences.items() for one in several]
    if listed:
        lines = "".join([f"\n  {one}" for one in listed])
        raise StateMismatchError(f"{subject} not fit, nothing was loaded:{lines}", listed)


class Arrays:
    """Arrays in memory, as a source."""

    def __init__(self, op: str, arrays: Mapping[str, Array]) -> None:
        check_kind(op, "the state", arrays, Mapping, "arrays by name")
        for name, array in arrays.items():
            if not isinstance(name, str) or not isinstance(array, np.ndarray):
                raise ArgumentTypeError(
                    f"{op}: {name!r} must be the name of a numpy array, "
                    f"got {type(array).__name__}; of a PyTorch tensor take numpy()"
                )
            check_unmasked(op, repr(name), array)
        self._arrays: Mapping[str, Array] = arrays
        self.headers = {name: header_of(array) for name, array in arrays.items()}

    def array(self, name: str) -> Array:
        """Return a copy of an array, in C order."""
        array = self._arrays[name]
        return np.array(array, native(array.dtype), order="C")
