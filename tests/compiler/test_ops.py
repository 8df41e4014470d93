"""Every op of the table, compiled: the same results and gradients as in eager mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.errors import TraceError
from tests.ops.calling import gradients_of, on_every, result_of, tensors_of, traced_at
from tests.ops.rows import Case
from tests.ops.samples import CASES

# Ops whose result has a shape that depends on values.
_BY_MASK = "shape that depends on the values"


def _data(value: Any) -> list[Any]:
    if isinstance(value, tt.Tensor):
        return [value.numpy()]
    if isinstance(value, tuple | list):
        return [array for item in value for array in _data(item)]
    return [np.asarray(value)]


def _assert_same(found: Any, expected: Any) -> None:
    for one, other in zip(_data(found), _data(expected), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def _compiled_once(function: Any, *args: Any) -> tuple[Any, Any]:
    """Return a compiled function and its first result; skip what depends on values by design."""
    compiled = tt.compile(function)
    try:
        return compiled, compiled(*args)
    except TraceError as error:
        if _BY_MASK in str(error):
            pytest.skip("a mask as an index is refused")
        raise


@on_every(CASES)
def test_a_compiled_op_gives_what_the_op_gives_call_after_call(case: Case) -> None:
    operands = tensors_of(case.sample)
    expected = result_of(case, operands)

    # Not the row: a plan would guard all that it holds, which takes ten times as long.
    call, options = case.op.call, case.sample.options
    compiled, first = _compiled_once(lambda *inputs: call(*inputs, **options), *operands)

    _assert_same(first, expected)
    _assert_same(compiled(*operands), expected)
    _assert_same(first, expected)


@on_every([case for case in CASES if case.op.is_differentiable])
def test_compiled_gradients_are_those_of_eager_mode(case: Case, rng: np.random.Generator) -> None:
    operands = tensors_of(case.sample)
    output = result_of(case, tensors_of(case.sample))
    cotangent: Any = tt.from_numpy(np.asarray(rng.standard_normal(output.shape)))
    expected = gradients_of(case, operands, cotangent)

    call, options, positions = case.op.call, case.sample.options, case.sample.float_positions

    def gradients(seed: Any, *inputs: Any) -> Any:
        grads = call(*traced_at(list(inputs), positions), **options).backward(seed)
        arrays = [grads.array(inputs[position].id) for position in positions]
        return [one for one in arrays if one is not None]

    present = [one for one in expected if one is not None]
    compiled, first = _compiled_once(gradients, cotangent, *operands)

    _assert_same(first, present)
    _assert_same(compiled(cotangent, *operands), present)


@on_every([case for case in CASES if case.op.is_differentiable])
def test_compiled_gradients_are_those_of_eager_mode_if_the_cotangent_is_made_inside(
    case: Case,
) -> None:
    operands = tensors_of(case.sample)
    shape = result_of(case, operands).shape
    expected = gradients_of(case, operands, tt.from_numpy(np.full(shape, 2.0)))
    call, options, positions = case.op.call, case.sample.options, case.sample.float_positions

    def gradients(*inputs: Any) -> Any:
        cotangent: Any = tt.from_numpy(np.full(shape, 2.0))
        grads = call(*traced_at(list(inputs), positions), **options).backward(cotangent)
        read = [inputs[position] for position in positions]
        return [grads[one] for one in read if grads.array(one.id) is not None]

    found = _compiled_once(gradients, *operands)[1]

    _assert_same(found, [one for one in expected if one is not None])


@on_every([case for case in CASES if len(case.sample.operands) > 1])
def test_a_compiled_op_takes_what_is_made_inside_beside_an_argument(case: Case) -> None:
    operands = tensors_of(case.sample)
    expected = result_of(case, operands)
    call, options = case.op.call, case.sample.options
    for position, argument in enumerate(operands):
        if isinstance(argument, tt.Tensor):
            made = [one.numpy() if isinstance(one, tt.Tensor) else one for one in operands]

            def run(x: Any, at: int = position, made: list[Any] = made) -> Any:
                given = [tt.from_numpy(one) if isinstance(one, np.ndarray) else one for one in made]
                return call(*given[:at], x, *given[at + 1 :], **options)

            _assert_same(_compiled_once(run, argument)[1], expected)
