"""docs/reference: every public name is there, once."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import tapetensor
from tapetensor import compiler, data, distributed, io, losses, metrics, nn, onnx, optim, training

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
LISTED = [
    # A function that its file is called after goes by both names, or the file would be shown.
    re.sub(r"\.(\w+)\.\1$", r".\1", name)
    for path in sorted(REFERENCE.glob("*.md"))
    for name in re.findall(r"^::: (\S+)$", path.read_text(), re.MULTILINE)
]
ROOMS = [tapetensor, compiler, data, distributed, io, losses, metrics, nn, onnx, optim, training]
# Other spellings of Tensor and of shapes, and names, without documentation of their own.
_ALIAS = re.compile(r"Tensor\dD|Rank\d|MAX_PLANS|Tape|TYPE_CHECKING")


def public(room: ModuleType) -> set[str]:
    """Return what a package offers under its own name: all but its rooms and its errors."""
    names = vars(room).items()
    return {
        f"{room.__name__}.{name}"
        for name, value in names
        if not name.startswith("_")
        and name != "annotations"
        and not isinstance(value, ModuleType)
        and not (isinstance(value, type) and issubclass(value, tapetensor.TapeTensorError))
        and not _ALIAS.fullmatch(name)
        and getattr(value, "__module__", "tapetensor").startswith("tapetensor")
    }


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_name_is_in_the_reference(room: ModuleType) -> None:
    # `build`, `compile` and `ravel` are imported when first asked for, and stand with their kin.
    lazy = {"tapetensor.build", "tapetensor.compile", "tapetensor.ravel"}

    assert public(room) - set(LISTED) - lazy == set()


def test_no_name_is_listed_twice() -> None:
    assert sorted(set(LISTED)) == sorted(LISTED)
