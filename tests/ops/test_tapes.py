"""Who owns the tape after an op: the result of one that takes it, nobody else."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tests.ops.calling import gradients_of, on_every, reference_of, result_of, tensors_of, traced_at
from tests.ops.rows import Case
from tests.ops.samples import CASES

_TAKING = [case for case in CASES if case.op.is_differentiable]
_BORROWING = [
    case for case in CASES if not case.op.is_differentiable and case.sample.float_positions
]
_OF_SEVERAL = [case for case in _TAKING if len(case.sample.float_positions) > 1]

_OF_EQUALS = [
    case
    for case in _OF_SEVERAL
    if len({case.sample.operands[position].shape for position in case.sample.float_positions}) == 1
]
_GETITEM = next(
    case for case in CASES if case.op.name == "getitem" and len(case.sample.operands) == 2
)


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


@on_every(_TAKING)
def test_a_traced_operand_is_spent_and_the_result_owns_its_tape(case: Case) -> None:
    operands = traced_at(tensors_of(case.sample), case.sample.float_positions)

    result = result_of(case, operands)

    assert result.owns_tape
    assert not any(_owns_tapes(operands))
    for position in case.sample.float_positions:
        spent = operands[position]
        with pytest.raises(tt.MovedTensorError, match=rf"square.* is spent, .*{case.op.name}"):
            spent.square()
        # It can still be read.
        np.testing.assert_array_equal(spent.numpy(), case.sample.operands[position])


@on_every(_BORROWING)
def test_an_op_without_derivative_borrows_traced_operands(case: Case) -> None:
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
        for position in positions:
            assert not mixed[position].owns_tape
            if position in traced:
                with pytest.raises(tt.MovedTensorError):
                    mixed[position].square()
            else:
                mixed[position].square()

        # The record names all operands, so a plain one gets its gradient too.
        gradients = result.backward(cotangent)
        for position, gradient in zip(positions, expected, strict=True):
            np.testing.assert_array_equal(gradients.array(operands[position].id), gradient)


@on_every(_OF_EQUALS)
def test_one_traced_tensor_given_twice_is_refused_and_not_spent(case: Case) -> None:
    operands = tensors_of(case.sample)
    x = operands[case.sample.float_positions[0]].trace()
    for position in case.sample.float_positions:
        operands[position] = x

    with pytest.raises(tt.MovedTensorError, match=rf"{case.op.name}.*twice.*share"):
        result_of(case, operands)

    assert x.owns_tape


@on_every(CASES)
def test_a_spent_operand_is_refused_and_the_others_are_not_spent(case: Case) -> None:
    positions = case.sample.float_positions
    for spent_position in positions:
        operands = traced_at(tensors_of(case.sample), positions)
        operands[spent_position].square()

        with pytest.raises(tt.MovedTensorError, match="is spent, 'square' took its tape"):
            result_of(case, operands)

        for position in positions:
            assert operands[position].owns_tape is (position != spent_position)


def test_an_index_must_not_be_spent() -> None:
    index = tt.arange(2).trace()
    index.square()

    with pytest.raises(tt.MovedTensorError, match=r"getitem.*'square'"):
        result_of(_GETITEM, [tt.zeros((3,)), index])


def test_a_mask_that_was_compared_from_a_traced_tensor_is_plain() -> None:
    x = tt.from_numpy([-1.0, 2.0], shape=(2,))
    traced = x.trace()

    kept = tt.where(traced > 0.0, traced, 0.0)

    np.testing.assert_array_equal(kept.sum().backward()[x].numpy(), [0.0, 1.0])
