"""Pictures of tapes: what is known of each op, where it ran, and that looking changes nothing."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import TapeClosedError, UntracedTensorError
from tests.pictures.test_page import ops_of


def line() -> int:
    """Return the number of the line that calls."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_every_op_has_shape_dtype_bytes_and_the_time_of_its_pullbacks() -> None:
    x: tt.Tensor2D[Any, Any] = tt.ones((4, 3))
    w: tt.Tensor2D[Any, Any] = tt.ones((3, 2))

    facts = ops_of((x.trace() @ w).relu().sum().to_html(names={"x": x, "w": w}))

    assert set(facts) == {"x", "w", "matmul", "relu", "sum"}
    assert facts["matmul"]["shape"] == "(4, 2)"
    assert facts["matmul"]["dtype"] == "float32"
    assert facts["matmul"]["bytes"] == "32 (32 B)"
    assert facts["matmul"]["backward time"].endswith("s")
    assert facts["sum"]["shape"] == "()"
    assert facts["w"]["shape"] == "(3, 2)"
    assert facts["w"].keys() == {"shape", "dtype", "bytes", "operands", "place"}


def test_options_and_operands_without_a_gradient_are_told() -> None:
    table: tt.Tensor2D[Any, Any] = tt.ones((5, 2))
    labels: tt.Tensor1D[Any, tt.NoneTape, np.int64] = tt.from_numpy(np.array([1, 3]))

    rows = nn.Embedding(5, 2, rng=np.random.default_rng(0)).forward(labels.trace())
    joined = tt.concat((table.trace(), table.exp()))

    assert ops_of(rows.to_html())["take"]["no gradient to"] == "operand 1"
    assert ops_of(joined.to_html())["concat"]["options"] == "axis=0"


def test_the_picture_of_an_integer_or_a_vector_on_a_tape_needs_no_cotangent() -> None:
    numbers: tt.Tensor1D[Any, tt.NoneTape, np.int64] = tt.from_numpy(np.array([1, 2]))

    assert "2 ops" in tt.ones((3, 2)).trace().exp().log().tree()
    assert "0 ops" in numbers.trace().tree()


def test_source_lines_are_those_of_the_caller_and_kept_where_tapes_merge() -> None:
    layer = nn.Linear(3, 3, rng=np.random.default_rng(0))
    x: tt.Tensor2D[Any, Any] = tt.ones((2, 3))
    with tt.source_lines():
        first = layer.forward(x.trace()); at_linear = line()  # fmt: skip  # noqa: E702
        second = x.trace().exp().log().sqrt(); at_exp = line()  # fmt: skip  # noqa: E702
        both = first + second

    facts = ops_of(both.to_html())
    assert facts["linear"]["place"] == f"{__file__}:{at_linear}"
    assert facts["exp"]["place"] == f"{__file__}:{at_exp}"
    assert facts["add"]["place"] == f"{__file__}:{at_exp + 1}"


def test_errors_name_ops_inside_source_lines_and_say_where_a_gradient_is_not_finite() -> None:
    with tt.source_lines():
        h = tt.ones((2,)).trace().exp()
    h.sum().backward()
    with pytest.raises(tt.TapeUsedError, match=r"^backward: what 'exp' recorded was used up"):
        h.log().sum().backward()
    with tt.source_lines(), np.errstate(all="ignore"):
        bad = tt.full((2,), -1.0).trace().sqrt().sum()
    with (
        np.errstate(all="ignore"),
        pytest.raises(
            tt.NumericalInstabilityError, match=r"from 'sqrt at .*test_tape_pictures\.py:\d+'"
        ),
    ):
        bad.backward(check_finite=True)


def test_a_bare_tape_draws_what_it_knows_and_all_when_told_its_tensor() -> None:
    value, tape = tt.ones((2, 3)).trace().exp().sum().split_tape()

    assert ops_of(tape.to_html())["exp"].keys() == {"operands", "place"}
    assert "Shapes and times are known" in tape.to_html()
    assert ops_of(tape.to_html(value))["exp"]["shape"] == "(2, 3)"
    assert "(2, 3) float32" in tape.tree(value)


def test_a_tape_that_is_driven_by_hand_shows_its_slots() -> None:
    tape = tt.GradientTape()
    x = tape.alloc(np.ones((2, 2)))
    tape.record_matmul(x, tape.alloc(np.ones((2, 3))))

    assert ops_of(tape.to_html())["matmul"]["bytes"] == "48 (48 B)"
    assert tape.tree(ascii=True).splitlines()[1] == "#2 matmul  (2, 3) float64  48 B"
    assert "<iframe" in tape._repr_html_()


def test_a_notebook_shows_traced_tensors_as_pictures_and_others_as_text() -> None:
    x = tt.ones((2,)).trace()
    y = x.exp()

    cell = y._repr_html_() or ""
    assert cell.startswith(f"<pre>{y!r}</pre><iframe")
    assert x._repr_html_() is None
    assert tt.ones((2,))._repr_html_() is None
    assert tt.ones((2,)).trace()._repr_html_() is None


def test_a_tensor_without_a_usable_tape_is_refused() -> None:
    plain: Any = tt.ones((2,))
    with pytest.raises(UntracedTensorError, match=r"to_html: the tensor of shape \(2,\) has no"):
        plain.to_html()
    with tt.GradientContext():
        closed = tt.ones((2,)).trace().exp()
    with pytest.raises(TapeClosedError, match="to_html: the tape was closed"):
        closed.to_html()
    assert closed._repr_html_() is None
