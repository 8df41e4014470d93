"""One forward for both tapes: training records, inference does not, the types say which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import OwnedTape, Tensor, Tensor1D, Tensor2D, Tensor3D
from tapetensor.typing import Ds, M, N, T
from tests.typing.check import assert_type, check


@dataclass
class Block(Generic[N, M]):
    """Two layers around which the input is added; any leading dims, any tape."""

    widen: Tensor2D[N, M]
    shift: Tensor1D[M]
    narrow: Tensor2D[M, N]

    def forward(self, x: Tensor[tuple[*Ds, N], T]) -> Tensor[tuple[*Ds, N], T]:
        hidden = (x @ self.widen + self.shift).gelu()
        return x + hidden @ self.narrow


def normalize(x: Tensor[tuple[*Ds, N], T]) -> Tensor[tuple[*Ds, N], T]:
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = centered.square().mean(axis=-1, keepdims=True)
    return centered / (variance + 1e-5).sqrt()


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    block: Block[L[8], L[16]] = Block(
        tt.normal((8, 16), rng=rng, std=0.1), tt.zeros((16,)), tt.normal((16, 8), rng=rng, std=0.1)
    )
    flat: Tensor2D[L[5], L[8]] = tt.normal((5, 8), rng=rng)
    sequences: Tensor3D[L[2], L[5], L[8]] = tt.normal((2, 5, 8), rng=rng)

    check(assert_type(block.forward(flat), Tensor2D[L[5], L[8]]), (5, 8))
    check(
        assert_type(
            normalize(block.forward(sequences.trace())), Tensor3D[L[2], L[5], L[8], OwnedTape]
        ),
        (2, 5, 8),
    )

    grads = normalize(block.forward(sequences.trace())).abs().sum().backward()
    check(assert_type(grads[block.widen], Tensor2D[L[8], L[16]]), (8, 16))
    check(assert_type(grads[sequences], Tensor3D[L[2], L[5], L[8]]), (2, 5, 8))
    assert grads[block.narrow].abs().max().item() > 0.0
