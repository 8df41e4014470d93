"""A check that all ranks have the same model, before anything is computed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from tapetensor.distributed.transport import Transport
from tapetensor.errors import DistributedError
from tapetensor.nn import Module

# How many differences a message lists.
_LISTED = 10


def check_agreement(op: str, transport: Transport, model: Module, *settings: str) -> None:
    """Compare names, shapes and dtypes of parameters and buffers over all ranks, and settings.

    Raises:
        DistributedError: on every rank, if one differs from rank 0, with all differences.
    """
    lines = [*settings, *_described("parameter", model.parameters())]
    lines += _described("buffer", model.buffers())
    text = "\n".join(lines).encode()
    # A few bytes travel where all is well, and the whole text only where it is not.
    if len(set(transport.gather(hashlib.sha256(text).digest()))) == 1:
        return
    texts = [one.decode().split("\n") for one in transport.gather(text)]
    differences = [
        line for rank, other in enumerate(texts) for line in _differences(rank, texts[0], other)
    ]
    listed = "".join([f"\n  {line}" for line in differences[:_LISTED]])
    more = f"\n  and {len(differences) - _LISTED} more" if len(differences) > _LISTED else ""
    raise DistributedError(
        f"{op}: the ranks differ; give each the same model and the same settings:{listed}{more}"
    )


def _described(kind: str, tensors: dict[str, Any]) -> list[str]:
    # Each tensor goes by its first name, so that shared tensors must be the same ones, too.
    first: dict[int, str] = {}
    lines = []
    for name, tensor in tensors.items():
        known = first.setdefault(tensor.id, name)
        shared = "" if known == name else f", the same as {known}"
        lines.append(f"{kind} {name}: shape {tensor.shape}, {tensor.dtype}{shared}")
    return lines


def _differences(rank: int, expected: Sequence[str], found: Sequence[str]) -> list[str]:
    missing = [line for line in expected if line not in set(found)]
    extra = [line for line in found if line not in set(expected)]
    lines = [f"rank 0 alone, not rank {rank}: {line}" for line in missing]
    lines += [f"rank {rank} alone, not rank 0: {line}" for line in extra]
    if not lines and list(expected) != list(found):
        lines.append(f"rank {rank} has them in another order than rank 0")
    return lines
