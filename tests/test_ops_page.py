"""docs/reference/ops.md: every op in its family, as its docstring says, with names that exist."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import pytest

from docs.site import ops
from tests.ops.samples import OPS


def _rows() -> Iterator[tuple[str, str, str]]:
    for rows in ops.ops().values():
        yield from rows


def test_every_op_is_in_one_family() -> None:
    listed = [name for name, _, _ in _rows()]
    public = {name for op in OPS for name in op.covers if not name.startswith("_")}

    assert len(listed) == len(set(listed))
    assert public - {"custom_op"} <= set(listed)


def test_the_pages_are_what_is_written_of_the_docstrings() -> None:
    # python -m docs.site.ops
    assert (ops.REFERENCE / "ops.md").read_text() == ops.table()
    assert (ops.REFERENCE / "tensor.md").read_text() == ops.reference()


def test_what_an_op_is_called_in_numpy_is_there() -> None:
    for _, name, _ in _rows():
        assert not name or callable(operator.attrgetter(name)(np))


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_what_an_op_is_called_in_pytorch_is_there() -> None:
    torch = pytest.importorskip("torch")
    missing = []
    for _, _, name in _rows():
        try:
            operator.attrgetter(name or "Tensor")(torch)
        except AttributeError:
            if not hasattr(torch.Tensor, name):
                missing.append(name)

    assert missing == []
