"""Checkpoints of every op and layer, and of what ordinary functions name."""

from __future__ import annotations

import gc
import itertools
import logging
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tests.arrays import foreign
from tests.arrays.placing import abroad, home
from tests.checkpointing.trials import VALUES, Scale, Trial, outcome
from tests.nn.layer_rows import ROWS
from tests.ops.calling import gradients_of, on_every, result_of, tensors_of
from tests.ops.rows import Case
from tests.ops.samples import CASES


def test_what_ordinary_functions_name_is_no_trouble(tmp_path: Any) -> None:
    log = logging.getLogger("checkpointed")
    lock = threading.Lock()
    scratch = np.empty(1 << 18)
    with (tmp_path / "log.txt").open("w") as file:

        def f(x: Any) -> Any:
            with lock:
                file.write("run\n")
                log.debug("%s", x.shape)
                np.copyto(scratch[:12], x.detach().numpy().ravel())
            return nn.init.zeros is not None and (x * float(np.sqrt(4.0))).sum()

        trial = Trial(f, lambda: file.write("between\n"))
        assert outcome(trial, is_checkpointed=True) == outcome(trial, is_checkpointed=False)


def test_what_does_not_lead_to_the_result_may_differ() -> None:
    numbers = itertools.count(1)

    def f(x: Any) -> Any:
        twin = x
        for _ in range(next(numbers)):
            twin = twin * 3.0
        return x.exp()

    trial = Trial(f, lambda: None)
    assert outcome(trial, is_checkpointed=True) == outcome(trial, is_checkpointed=False)


def test_what_was_found_is_let_go_of_with_the_tape() -> None:
    holder = Scale(Scale(3.0))
    found = weakref.ref(holder.value)
    y = tt.checkpoint(lambda x: x * holder.value.value, tt.from_numpy(VALUES).trace())
    gc.disable()
    try:
        holder.value = None
        assert found() is not None
        y.sum().backward()
        del y
        assert found() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("is_foreign", [False, True])
@pytest.mark.parametrize("kind", ROWS)
def test_a_layer_in_a_checkpoint_trains_as_without(kind: Any, is_foreign: bool) -> None:
    row = ROWS[kind]
    values = np.random.default_rng(3).standard_normal(row.shape(2, 4))
    read: Any = home if is_foreign else tt.Tensor.numpy
    results: list[list[Any]] = []
    for is_checkpointed in (False, True):
        layer, x = row.make(4, np.random.default_rng(5)), tt.from_numpy(values)
        if is_foreign:
            layer, x = layer.to(foreign), abroad(values)

        def run(x: Any, layer: Any = layer) -> Any:
            return row.run(layer, x)

        y = tt.checkpoint(run, x.trace()) if is_checkpointed else run(x.trace())
        grads = y.sin().sum().backward()
        found = [grads.get(one) for one in (x, *layer.parameters().values())]
        found += layer.buffers().values()
        results.append([one if one is None else read(one).tolist() for one in found])
    assert results[0] == results[1]


@on_every([case for case in CASES if case.op.is_differentiable])
def test_an_op_in_a_checkpoint_has_its_own_gradients(case: Case) -> None:
    operands, positions = tensors_of(case.sample), case.sample.float_positions
    first = positions[0]

    def f(x: Any) -> Any:
        return result_of(case, [*operands[:first], x, *operands[first + 1 :]])

    y = tt.checkpoint(f, operands[first].trace())
    cotangent = tt.ones(y.shape, y.dtype.type)
    found = y.backward(cotangent)

    expected = gradients_of(case, operands, cotangent, [first])
    for position, gradient in zip(positions, expected, strict=True):
        if gradient is not None:
            np.testing.assert_array_equal(found[operands[position]].numpy(), gradient)
