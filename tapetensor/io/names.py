"""Loading by other names, in part, and from float16 and bfloat16.

PyTorch gives the weights of an attention other names. Ours has four layers, ``w_q``, ``w_k``,
``w_v`` and ``w_o``, as dfdx's. PyTorch's holds the weights of the first three on top of one another
as ``in_proj_weight``, and calls the last ``out_proj``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, final

import numpy as np
from typing_extensions import override

from tapetensor.arguments import as_flag, check_function
from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import to_numpy
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, StateMismatchError
from tapetensor.io.disk import Header, Source, header_of
from tapetensor.nn import DecoderBlock, Module, MultiHeadAttention, UnbiasedMultiHeadAttention

Names: TypeAlias = Mapping[str, str | None] | Callable[[str], str | None]

# Every number of the first is one of the second.
_WIDER = {(half, full) for half in ("float16", "bfloat16") for full in ("float32", "float64")}
_SHOWN = 4


@final
@dataclass(frozen=True)
class Loaded:
    """A report of what was loaded, which prints as a few lines.

    Attributes:
        taken: the names of the model whose arrays were loaded.
        left: the names of the file that were left out.
        missing: the names of the model that have kept their values.
        converted: the dtypes in the file of converted arrays, by the names of the model.
    """

    taken: tuple[str, ...]
    left: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    converted: Mapping[str, str] = field(default_factory=dict)

    @override
    def __str__(self) -> str:
        """Say how many there are of each, and the first names."""
        lines = [f"taken: {len(self.taken)} of {len(self.taken) + len(self.missing)}"]
        if self.converted:
            dtypes = " and ".join(sorted(set(self.converted.values())))
            lines.append(f"converted from {dtypes}: {_listed(self.converted)}")
        if self.missing:
            lines.append(f"missing, as before: {_listed(self.missing)}")
        if self.left:
            lines.append(f"left out: {_listed(self.left)}")
        return "\n".join(lines)


class _Entry(NamedTuple):
    """An array of the file, or a third of it."""

    header: Header
    theirs: str
    third: int | None = None


def chosen(
    op: str, module: Module, source: Source, names: Names | None, strict: bool
) -> tuple[Source, Loaded]:
    """Return the arrays that a module takes of a source, in its own names and dtypes.

    Args:
        names: the module's name of each name in the source, None to leave it out; names that a
            mapping does not have stay as they are.
        strict: whether all names must be there, and no others.
    """
    strict = as_flag(op, "strict", strict)
    tensors = {**module.parameters(), **module.buffers()}
    expected = {name: header_of(tensor._array) for name, tensor in tensors.items()}
    renamed = _renamed(op, source, names)
    found = {ours: _Entry(source.headers[theirs], theirs) for ours, theirs in renamed.items()}
    # PyTorch's count of batches is left out, on which none of our layers depends.
    found = {
        name: entry
        for name, entry in _in_our_names(found, _attentions_of(module)).items()
        if not (
            name.endswith("num_batches_tracked")
            and name.removesuffix("num_batches_tracked") + "running_mean" in tensors
        )
    }
    taken = {name: entry for name, entry in found.items() if name in expected}
    entries = taken if not strict else found
    headers = {name: one.header for name, one in entries.items()}
    converted = {}
    for name, entry in taken.items():
        if (entry.header.dtype, expected[name].dtype) in _WIDER:
            converted[name] = entry.header.dtype
            headers[name] = Header(entry.header.shape, expected[name].dtype)
    groups: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        groups.setdefault(id(tensor), []).append(name)
    missing = [same for same in groups.values() if taken.keys().isdisjoint(same)]
    if not strict:
        if not taken and groups:
            raise _nothing_taken(op, source, expected)
        # What is missing is given what it has already.
        headers |= {same[0]: expected[same[0]] for same in missing}

    def array_of(name: str) -> Array:
        entry = entries.get(name)
        if entry is None:
            return np.array(to_numpy(tensors[name]._array), order="C")
        array = source.array(entry.theirs)
        if entry.third is not None:
            array = np.array(np.split(array, 3)[entry.third], order="C")
        return array.astype(headers[name].dtype) if name in converted else array

    used = {entry.theirs for entry in taken.values()}
    left = tuple([name for name in source.headers if name not in used])
    lacking = tuple([name for same in missing for name in same])
    return Source(headers, array_of), Loaded(tuple(taken), left, lacking, converted)


def cure_of_prefix(there: Collection[str], expected: Collection[str]) -> str:
    """Return how all names of a model are had that stand behind a prefix; empty if none do.

    So they do in a checkpoint of several parts, and after DataParallel and compile of PyTorch's.
    """
    first = next(iter(expected), "")
    prefixes = [name.removesuffix(first) for name in there if name.endswith(f".{first}")]
    found = [one for one in prefixes if all(one + name in there for name in expected)]
    if not found:
        return ""
    prefix = found[0]
    return (
        f"\nthe model's names are there behind {' and '.join(map(repr, found))}: "
        f"names=lambda name: name.removeprefix({prefix!r}) if name.startswith({prefix!r}) else None"
    )


def _renamed(op: str, source: Source, names: Names | None) -> dict[str, str]:
    """Return the name in the source of each name of the model."""
    if names is None:
        return {name: name for name in source.headers}
    if isinstance(names, Mapping):
        unknown = [repr(name) for name in names if name not in source.headers]
        if unknown:
            raise ArgumentValueError(
                f"{op}: names has {_listed(unknown)}, which is not there; there is "
                f"{_listed(source.headers) or 'nothing'}"
            )
        given = {name: names.get(name, name) for name in source.headers}
    elif callable(names):
        check_function(op, "names", names, ("name",))
        given = {name: names(name) for name in source.headers}
    else:
        raise ArgumentTypeError(
            f"{op}: names must be a dict or a function from a name there to one of the model, "
            f"got {type(names).__name__}"
        )
    renamed: dict[str, str] = {}
    for theirs, ours in given.items():
        if ours is None:
            continue
        if not isinstance(ours, str):
            raise ArgumentTypeError(
                f"{op}: names must give a name, or None to leave one out; for {theirs!r} it gives "
                f"{type(ours).__name__}"
            )
        if ours in renamed:
            raise ArgumentValueError(
                f"{op}: names gives {ours!r} to both {renamed[ours]!r} and {theirs!r}; give None "
                "to the one that is to be left out"
            )
        renamed[ours] = theirs
    return renamed


def _nothing_taken(op: str, source: Source, expected: Mapping[str, Header]) -> StateMismatchError:
    there = _listed(source.headers) or "nothing"
    told = f"names there are {there}; the model has {_listed(expected)}"
    cure = cure_of_prefix(source.headers, expected) or "; give the model's names with names="
    return StateMismatchError(
        f"{op}: no name is one of the model, nothing was loaded: {told}{cure}",
        [told],
    )


def _listed(names: Mapping[str, object] | list[str] | tuple[str, ...]) -> str:
    # Whoever wrote the file chose its names; what a terminal would obey is spelled out.
    shown = [one if one.isprintable() else repr(one) for one in [*names][:_SHOWN]]
    first = ", ".join(shown)
    return first if len(names) <= _SHOWN else f"{first} and {len(names) - _SHOWN} more"


_FIRST_THREE = ("w_q", "w_k", "w_v")
_KINDS = ("weight", "bias")


def _attentions_of(module: Module) -> dict[str, str]:
    """Return what the names of each attention begin with here, and there."""
    modules = {"": module, **module.modules()}
    found = {}
    for path, one in modules.items():
        if isinstance(one, MultiHeadAttention | UnbiasedMultiHeadAttention):
            here = there = f"{path}." if path else ""
            block, _, name = path.rpartition(".")
            if name == "cross_attn" and isinstance(modules[block], DecoderBlock):
                there = here.removesuffix("cross_attn.") + "multihead_attn."
            found[here] = there
    return found


def _in_our_names(found: Mapping[str, _Entry], attentions: Mapping[str, str]) -> dict[str, _Entry]:
    """Return entries by name, ours where an attention has PyTorch's."""
    ours = dict(found)
    for here, there in attentions.items():
        for kind in _KINDS:
            packed, last = f"{there}in_proj_{kind}", f"{there}out_proj.{kind}"
            names = [f"{here}{name}.{kind}" for name in _FIRST_THREE]
            parts = _thirds(found[packed]) if packed in found else []
            # Where a file has both, theirs stay under their names, which are then refused.
            if parts and ours.keys().isdisjoint(names):
                del ours[packed]
                ours.update(zip(names, parts, strict=True))
                if last in ours:
                    ours[f"{here}w_o.{kind}"] = ours.pop(last)
    return ours


def _thirds(entry: _Entry) -> list[_Entry]:
    """Return three equal parts along the first axis, if there are."""
    (shape, dtype), theirs, _ = entry
    if not shape or shape[0] % 3:
        return []
    header = Header((shape[0] // 3, *shape[1:]), dtype)
    return [_Entry(header, theirs, third) for third in range(3)]


def in_pytorch_names(op: str, part: object, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays of a module by the names that PyTorch has for them."""
    if not isinstance(part, Module):
        raise ArgumentTypeError(
            f"{op}: PyTorch has names for a Module, not for {type(part).__name__}"
        )
    theirs = dict(arrays)
    for here, there in _attentions_of(part).items():
        for kind in [one for one in _KINDS if f"{here}w_o.{one}" in theirs]:
            first = [to_numpy(theirs.pop(f"{here}{name}.{kind}")) for name in _FIRST_THREE]
            last = theirs.pop(f"{here}w_o.{kind}")
            if {one.shape for one in first} != {last.shape[:1] * last.ndim}:
                raise ArgumentValueError(
                    f"{op}: the attention {here.removesuffix('.') or 'itself'} has key_features "
                    "or value_features of its own, which PyTorch's has not"
                )
            theirs[f"{there}in_proj_{kind}"] = np.concatenate(first)
            theirs[f"{there}out_proj.{kind}"] = last
    return theirs
