"""dfdx: "modules can have different behaviour, based on whether a tape is attached"."""

from __future__ import annotations

from typing import Literal as L
from typing import assert_type

import numpy as np

import tapetensor as tt
from tapetensor import OwnedTape, Tensor1D
from tapetensor.typing import F, S, T

rng = np.random.default_rng(0)
x: Tensor1D[L[64]] = tt.ones((64,))

plain = assert_type(x.dropout(0.5, rng=rng), Tensor1D[L[64]])
assert plain is x
traced = assert_type(x.trace().dropout(0.5, rng=rng), Tensor1D[L[64], OwnedTape])
assert set(traced.detach().tolist()) == {0.0, 2.0}


def thinned(one: tt.Tensor[S, T, F]) -> tt.Tensor[S, T, F]:
    return one.dropout(0.5, rng=rng)


assert_type(thinned(x.trace()), Tensor1D[L[64], OwnedTape]).sum().backward()


# What drops whatever the tape is a product with a mask.
mask: Tensor1D[L[64]] = tt.from_numpy((rng.random(64) >= 0.5) * np.float32(2), (64,))
assert set((x * mask).numpy().tolist()) == {0.0, 2.0}
