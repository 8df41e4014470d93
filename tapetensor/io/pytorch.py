"""The names that PyTorch gives to the weights of an attention, which differ from ours.

Ours has four layers, ``w_q``, ``w_k``, ``w_v`` and ``w_o``, as dfdx's. PyTorch's holds the weights
of the first three on top of one another as ``in_proj_weight``, and calls the last ``out_proj``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.arrays.libraries import to_numpy
from tapetensor.errors import ArgumentTypeError, ArgumentValueError
from tapetensor.io.headers import Header
from tapetensor.nn import DecoderBlock, Module, MultiHeadAttention, UnbiasedMultiHeadAttention

_Found = TypeVar("_Found")

_FIRST_THREE = ("w_q", "w_k", "w_v")
_KINDS = ("weight", "bias")


def attentions_of(module: Module) -> dict[str, str]:
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


def in_our_names(
    found: Mapping[str, _Found],
    attentions: Mapping[str, str],
    thirds: Callable[[_Found], list[_Found]],
) -> dict[str, _Found]:
    """Return what was found by name, where PyTorch's names were found for an attention by ours.

    Args:
        found: headers or arrays.
        attentions: what `attentions_of` the module returned.
        thirds: takes the first three layers apart, or nothing where there are not three.
    """
    ours = dict(found)
    for here, there in attentions.items():
        for kind in _KINDS:
            packed, last = f"{there}in_proj_{kind}", f"{there}out_proj.{kind}"
            names = [f"{here}{name}.{kind}" for name in _FIRST_THREE]
            parts = thirds(found[packed]) if packed in found else []
            # Where a file has both, theirs stay under their names, which are then refused.
            if parts and ours.keys().isdisjoint(names):
                del ours[packed]
                ours.update(zip(names, parts, strict=True))
                if last in ours:
                    ours[f"{here}w_o.{kind}"] = ours.pop(last)
    return ours


def thirds_of_header(header: Header) -> list[Header]:
    """Return the headers of three equal parts along the first axis, if there are."""
    if not header.shape or header.shape[0] % 3:
        return []
    rows, *others = header.shape
    return [Header((rows // 3, *others), header.dtype)] * 3


def in_pytorch_names(op: str, part: object, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays of a module by the names that PyTorch has for them.

    Raises:
        ArgumentTypeError: if the part is no module.
        ArgumentValueError: if an attention has sizes that PyTorch's cannot have.
    """
    if not isinstance(part, Module):
        raise ArgumentTypeError(
            f"{op}: PyTorch has names for a Module, not for {type(part).__name__}"
        )
    theirs = dict(arrays)
    for here, there in attentions_of(part).items():
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
