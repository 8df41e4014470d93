"""What an op refuses: the error names the op and the mistake, and costs nobody a tape."""

from __future__ import annotations

import inspect
import os
import re
import traceback
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.errors import ShapeError
from tests.ops.calling import on_every, result_of, tensors_of, traced_at
from tests.ops.rows import Case, Each, Refusal, Row, given, is_float_array
from tests.ops.samples import CASES, OPS, ROWS

# What reads a tensor or its tape, and ops with no argument that could be bad, for any tensor.
_REFUSES_NOTHING = {
    "id", "array", "tape", "shape", "dtype", "ndim", "size", "owns_tape", "tape_type", "history",
    "numpy", "tolist", "wrap_gradient",
    "abs", "__abs__", "flatten", "detach", "split_tape", "with_empty_tape",
}  # fmt: skip
_FLOAT_ONLY = [
    case
    for case in CASES
    if not case.op.takes_integers and case.sample.float_positions and case.op.name != "astype"
]
_OF_SEVERAL = [case for case in CASES if len(case.sample.float_positions) > 1]


@pytest.mark.parametrize("row", [row for row in ROWS if row.refusals], ids=lambda row: row.name)
def test_a_mistake_raises_an_error_that_names_it_and_moves_nothing(row: Row) -> None:
    # Not a test each: what pytest does around one takes longer.
    for number, refusal in enumerate(row.refusals):
        for value, traced in product(refusal.values, (False, True)):
            try:
                _assert_refused(row, refusal, value, traced)
            except BaseException as error:
                error.add_note(f"This is refusal {number} of {row.name}, {value=!s:.99}, {traced=}")
                raise


@pytest.mark.parametrize(
    "compute", [lambda x: x @ x, lambda x: x + x.transpose(), lambda x: x.reshape((3, 3))]
)
def test_the_traceback_of_shapes_that_do_not_fit_shows_neither_numpy_nor_the_rule(
    compute: Callable[[Any], Any],
) -> None:
    with pytest.raises(ShapeError) as refused:
        compute(tt.ones((4, 2)))

    shown = "".join(traceback.format_exception(refused.value))

    assert shown.count("Traceback") == 1
    assert "tapetensor/rules/" not in shown.replace(os.sep, "/")


def _assert_refused(row: Row, refusal: Refusal, value: Any, traced: bool) -> None:
    def filled(argument: Any) -> Any:
        return value if isinstance(argument, Each) else argument

    sample = refusal.sample
    leafs = tensors_of(sample)
    operands = traced_at(leafs, sample.float_positions if traced else ())
    arguments = [filled(one) for one in operands]
    options = {name: filled(one) for name, one in sample.options.items()}

    with pytest.raises(refusal.error, match=refusal.message) as raised:
        row.call(*arguments, **options)

    assert issubclass(refusal.error, tt.TapeTensorError)
    message = str(raised.value)
    assert re.match(rf"r?{row.name}\b", message)
    if "must be a number" in message:
        several = [name for name, one in sample.options.items() if isinstance(one, Each)]
        assert all(f"{name} must" in message for name in several)
    for position in sample.float_positions:
        x, leaf = operands[position], leafs[position]
        assert x.owns_tape == traced
        np.testing.assert_array_equal(x.detach().numpy(), sample.operands[position])
        if traced:
            gradient = x.square().sum().backward()[leaf].numpy()
            np.testing.assert_array_equal(gradient, 2.0 * sample.operands[position])


def test_every_public_function_and_method_refuses_something() -> None:
    methods = {name for name in dir(tt.ones(())) if not name.startswith("_")}
    functions = {name for name in dir(tt.tensor) if inspect.isfunction(getattr(tt, name, None))}
    public = {name for name in methods | functions if not name[0].isupper()}
    # Another dtype is the only mistake that can be made with one operand and nothing else.
    refusing = {
        case.op.name
        for case in _FLOAT_ONLY
        if all(len(one.operands) == 1 and not one.options for one in case.op.samples)
    }
    refusing |= {row.name for row in ROWS if row.refusals}
    refusing |= {name for op in OPS if op.name in refusing for name in op.covers}

    ops = {name for op in OPS for name in op.covers}
    assert (public | ops) - refusing - _REFUSES_NOTHING == set()


@on_every(_FLOAT_ONLY)
def test_ops_on_floats_refuse_integers(case: Case) -> None:
    for dtype in (np.int64, np.int8, np.bool_):
        integers = [
            np.ones(operand.shape, dtype) if is_float_array(operand) else operand
            for operand in case.sample.operands
        ]
        operands = tensors_of(given(*integers))

        with pytest.raises(tt.DTypeError, match=rf"{case.op.name}:.*{np.dtype(dtype)}"):
            result_of(case, operands)


@on_every(_OF_SEVERAL)
def test_float_dtypes_do_not_mix(case: Case) -> None:
    for odd_one in case.sample.float_positions:
        operands = tensors_of(case.sample)
        operands[odd_one] = operands[odd_one].astype(np.float32)
        operands = traced_at(operands, case.sample.float_positions)

        with pytest.raises(tt.DTypeError, match="float32") as raised:
            result_of(case, operands)

        message = str(raised.value)
        assert message.startswith(f"{case.op.name}: dtypes differ")
        assert "float64" in message
        assert all(operands[position].owns_tape for position in case.sample.float_positions)


@pytest.mark.parametrize("name", ["max", "min"])
def test_the_largest_and_the_smallest_of_a_mask_are_masks(name: str) -> None:
    assert getattr(tt.from_numpy(np.array([True, False])), name)().dtype == np.bool_
