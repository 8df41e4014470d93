"""Functions that make tensors."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor, Tensor0D, Tensor1D, Tensor2D
from tests.typing.check import assert_type, check
from tests.typing.operands import m

# The annotation gives the sizes; without one, bare ints widen (see limits.py).
rng = np.random.default_rng(0)
zeros_m: Tensor2D[L[2], L[3]] = tt.zeros((2, 3))
check(assert_type(zeros_m, Tensor2D[L[2], L[3]]), (2, 3))
zeros_float64: Tensor1D[L[4], NoneTape, np.float64] = tt.zeros((4,), np.float64)
check(assert_type(zeros_float64, Tensor1D[L[4], NoneTape, np.float64]), (4,))
zeros_int64: Tensor1D[L[4], NoneTape, np.int64] = tt.zeros((4,), np.int64)
check(assert_type(zeros_int64, Tensor1D[L[4], NoneTape, np.int64]), (4,))
zeros_bool_: Tensor1D[L[4], NoneTape, np.bool_] = tt.zeros((4,), np.bool_)
check(assert_type(zeros_bool_, Tensor1D[L[4], NoneTape, np.bool_]), (4,))
ones_m: Tensor2D[L[2], L[3]] = tt.ones((2, 3))
check(assert_type(ones_m, Tensor2D[L[2], L[3]]), (2, 3))
full_m: Tensor2D[L[2], L[3]] = tt.full((2, 3), 2.0)
check(assert_type(full_m, Tensor2D[L[2], L[3]]), (2, 3))
full_float64: Tensor1D[L[4], NoneTape, np.float64] = tt.full((4,), 2.0, np.float64)
check(assert_type(full_float64, Tensor1D[L[4], NoneTape, np.float64]), (4,))
normal_m: Tensor2D[L[2], L[3]] = tt.normal((2, 3), rng=rng)
check(assert_type(normal_m, Tensor2D[L[2], L[3]]), (2, 3))
normal_float64: Tensor1D[L[4], NoneTape, np.float64] = tt.normal((4,), np.float64, rng=rng)
check(assert_type(normal_float64, Tensor1D[L[4], NoneTape, np.float64]), (4,))
uniform_m: Tensor2D[L[2], L[3]] = tt.uniform((2, 3), rng=rng)
check(assert_type(uniform_m, Tensor2D[L[2], L[3]]), (2, 3))

# Dims that are declared once keep their size.
FEATURES: L[3] = 3
pair: tuple[L[2], L[3]] = (2, 3)
check(assert_type(tt.zeros(pair), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(tt.zeros(pair, np.int64), Tensor2D[L[2], L[3], NoneTape, np.int64]), (2, 3))
check(assert_type(tt.ones(pair), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(tt.full(pair, 1), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(tt.normal(pair, rng=rng), Tensor2D[L[2], L[3]]), (2, 3))
check(
    assert_type(
        tt.uniform(pair, np.float64, rng=rng, low=-1), Tensor2D[L[2], L[3], NoneTape, np.float64]
    ),
    (2, 3),
)
check(
    assert_type(
        tt.normal(pair, np.float64, rng=rng, mean=1.0, std=2),
        Tensor2D[L[2], L[3], NoneTape, np.float64],
    ),
    (2, 3),
)
count: Tensor1D[L[3], NoneTape, np.int64] = tt.arange(FEATURES)
check(count, (3,))
steps: Tensor1D[L[3]] = tt.arange(3, np.float32)
check(steps, (3,))
identity: Tensor2D[L[3], L[3]] = tt.eye(3)
check(identity, (3, 3))
doubles: Tensor2D[L[3], L[3], NoneTape, np.float64] = tt.eye(FEATURES, np.float64)
check(doubles, (3, 3))
check(assert_type(tt.zeros(m.shape), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(tt.zeros(()), Tensor0D), ())
check(assert_type(tt.zeros([2, 3]), Tensor[Any]), (2, 3))
check(assert_type(tt.ones([2, 3], np.int64), Tensor[Any, NoneTape, np.int64]), (2, 3))
check(assert_type(tt.full([2, 3], 7.0), Tensor[Any]), (2, 3))
zeros_like: Tensor1D[L[3]] = tt.zeros((FEATURES,))
check(zeros_like, (3,))

# `from_numpy`: the dtype comes from the array, the shape from the argument.
array = np.ones((2, 3), dtype=np.float64)
check(assert_type(tt.from_numpy(array, pair), Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))
check(assert_type(tt.from_numpy(array, pair, np.float32), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(tt.from_numpy([[1.0, 2.0, 3.0]] * 2, pair), Tensor2D[L[2], L[3]]), (2, 3))
check(
    assert_type(
        tt.from_numpy([[1, 2, 3]] * 2, pair, np.int64), Tensor2D[L[2], L[3], NoneTape, np.int64]
    ),
    (2, 3),
)
check(assert_type(tt.from_numpy(array), Tensor[Any, NoneTape, np.float64]), (2, 3))
check(assert_type(tt.from_numpy(array, dtype=np.float32), Tensor[Any]), (2, 3))
check(assert_type(tt.from_numpy([1.0, 2.0]), Tensor[Any]), (2,))

# `from_array`: the same for an array of any library.
check(assert_type(tt.from_array(array, pair), Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))
check(assert_type(tt.from_array(array), Tensor[Any, NoneTape, np.float64]), (2, 3))

# `from_memmap`: the same for a file.
with TemporaryDirectory() as folder:
    np.save(f"{folder}/x.npy", array)
    mapped: np.ndarray[Any, np.dtype[np.float64]] = np.load(f"{folder}/x.npy", mmap_mode="r")
    check(
        assert_type(tt.from_memmap(mapped, pair), Tensor2D[L[2], L[3], NoneTape, np.float64]),
        (2, 3),
    )
    check(assert_type(tt.from_memmap(mapped), Tensor[Any, NoneTape, np.float64]), (2, 3))
labels: Tensor1D[L[2], NoneTape, np.int64] = tt.from_numpy([1, 0], (2,), np.int64)
check(labels, (2,))
