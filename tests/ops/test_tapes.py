"""Who has the tape after an op: the result, and the operands that had it before."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import numpy as np

import tapetensor as tt
from tests.ops.calling import gradients_of, on_every, reference_of, result_of, tensors_of, traced_at
from tests.ops.rows import Case
from tests.ops.samples import CASES

_RECORDED = [case for case in CASES if case.op.is_differentiable]
_WITHOUT_DERIVATIVE = [
    case for case in CASES if not case.op.is_differentiable and case.sample.float_positions
]
_OF_SEVERAL = [case for case in _RECORDED if len(case.sample.float_positions) > 1]

_OF_EQUALS = [
    case
    for case in _OF_SEVERAL
    if len({case.sample.operands[position].shape for position in case.sample.float_positions}) == 1
]


def _owns_tapes(operands: list[Any]) -> list[bool]:
    return [isinstance(x, tt.Tensor) and x.owns_tape for x in operands]


@on_every(CASES)
def test_plain_operands_record_nothing_and_stay_usable(case: Case) -> None:
    operands = tensors_of(case.sample)

    first = result_of(case, operands)
    second = result_of(case, operands)

    assert not first.owns_tape
    assert first.tape_type is tt.NoneTape
    assert not any(_owns_tapes(operands))
    assert first.id != second.id
    np.testing.assert_array_equal(first.numpy(), second.numpy(), strict=True)


@on_every(_RECORDED)
def test_the_result_has_the_value_and_the_tape_and_the_operand_keeps_its_own(case: Case) -> None:
    plain = result_of(case, tensors_of(case.sample))
    operands = traced_at(tensors_of(case.sample), case.sample.float_positions)
    before = _owns_tapes(operands)

    result = result_of(case, operands)

    assert result.owns_tape
    assert _owns_tapes(operands) == before
    np.testing.assert_array_equal(result.detach().numpy(), plain.numpy(), strict=True)
    for position in case.sample.float_positions:
        values = operands[position].detach().numpy()
        np.testing.assert_array_equal(values, case.sample.operands[position])


@on_every(_WITHOUT_DERIVATIVE)
def test_the_result_of_an_op_without_derivative_has_no_tape(case: Case) -> None:
    operands = traced_at(tensors_of(case.sample), case.sample.float_positions)

    result = result_of(case, operands)

    assert not result.owns_tape
    for position in case.sample.float_positions:
        assert operands[position].owns_tape


@on_every(_OF_SEVERAL)
def test_plain_and_traced_operands_mix_in_every_way(case: Case, rng: np.random.Generator) -> None:
    positions = case.sample.float_positions
    operands = tensors_of(case.sample)
    cotangent = tt.from_numpy(np.asarray(rng.standard_normal(np.shape(reference_of(case)))))
    expected = gradients_of(case, operands, cotangent)

    mixes = chain.from_iterable(combinations(positions, n) for n in range(1, len(positions)))
    for traced in mixes:
        mixed = traced_at(operands, traced)
        result = result_of(case, mixed)

        assert result.owns_tape
        # The step names all operands, so a plain one gets its gradient too.
        gradients = result.backward(cotangent)
        for position, gradient in zip(positions, expected, strict=True):
            np.testing.assert_array_equal(gradients.array(operands[position].id), gradient)


@on_every(_OF_EQUALS)
def test_one_traced_tensor_given_twice_gets_the_sum_of_both_gradients(
    case: Case, rng: np.random.Generator
) -> None:
    operands, positions = tensors_of(case.sample), case.sample.float_positions
    x = operands[positions[0]]
    traced = x.trace()
    result = result_of(case, [traced if i in positions else y for i, y in enumerate(operands)])

    cotangent = tt.from_numpy(np.asarray(rng.standard_normal(result.shape)))
    apart = [tt.from_numpy(x.numpy()) if i in positions else y for i, y in enumerate(operands)]
    expected = sum(gradients_of(case, apart, cotangent))
    found = result.backward(cotangent)[x].numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
