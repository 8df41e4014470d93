"""Bad input of every kind, to every public function on tensors: two tables.

Each row must raise an error of the tree that names the op. It runs on a plain and on a traced
tensor, and leaves both as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tapetensor as tt
from tests.properties.bad_creation_rows import CREATION
from tests.properties.bad_operand_rows import ON_TENSORS
from tests.properties.bad_window_rows import ON_IMAGES

READERS = {
    *["id", "shape", "dtype", "ndim", "size", "owns_tape", "tape_type", "numpy"],
    # No argument that could be bad, for any tensor.
    *["abs", "flatten", "detach", "split_tape", "with_empty_tape"],
    "wrap_gradient",
}


def _rows(table: dict[str, list[tuple[Any, list[Any]]]]) -> list[Any]:
    return [
        pytest.param(op, call, bad, id=f"{op}-{number}-{str(bad)[:24]!r}")
        for op, groups in table.items()
        for number, (call, arguments) in enumerate(groups)
        for bad in arguments
    ]


@pytest.mark.parametrize(("op", "call", "bad"), _rows(CREATION))
def test_bad_input_to_a_creation_function_is_refused_by_name(
    op: str, call: Callable[[Any], object], bad: Any
) -> None:
    with pytest.raises(tt.TapeTensorError, match=rf"^{op}\b"):
        call(bad)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(("op", "call", "bad"), _rows(ON_TENSORS | ON_IMAGES))
def test_bad_input_to_an_op_is_refused_by_name_and_leaves_the_tensor_usable(
    op: str, call: Callable[[Any, Any], object], bad: Any, traced: bool
) -> None:
    leaf: Any = tt.full((2, 3), 2.0)
    x = leaf.trace() if traced else leaf
    # Rows that prepare their operand first work on a second handle.
    handle = x.with_empty_tape()

    with pytest.raises(tt.TapeTensorError, match=rf"^{op}\b"):
        call(handle, bad)
    if traced:
        assert x.square().sum().backward()[leaf].numpy().tolist() == [[4.0] * 3] * 2
    assert x.numpy().tolist() == [[2.0] * 3] * 2


def test_every_public_function_and_method_has_a_row() -> None:
    methods = {name for name in dir(tt.Tensor) if not name.startswith("_")}
    functions = {name for name in dir(tt.tensor) if callable(getattr(tt, name, None))}
    functions -= {name for name in functions if name[0].isupper()}

    assert (methods | functions) - READERS <= {*CREATION, *ON_TENSORS, *ON_IMAGES}
