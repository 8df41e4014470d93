"""A small model learns the distribution of a large one."""
# ruff: noqa: D101, D102, D103

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Tensor2D, losses, nn, optim
from tapetensor.typing import B, T


class Student(nn.Module):
    layer: nn.Linear[L[5], L[4]]

    def forward(self, x: Tensor2D[B, L[5], T]) -> Tensor2D[B, L[4], T]:
        return self.layer.forward(x)


class Teacher(nn.Module):
    hidden: nn.Linear[L[5], L[16]]
    out: nn.Linear[L[16], L[4]]

    def forward(self, x: Tensor2D[B, L[5], T]) -> Tensor2D[B, L[4], T]:
        return self.out.forward(self.hidden.forward(x).relu())


def main() -> None:
    rng = np.random.default_rng(0)
    teacher, student = tt.build(Teacher, rng=rng), tt.build(Student, rng=rng)
    x: Tensor2D[L[6], L[5]] = tt.normal((6, 5), rng=rng)
    optimizer = optim.Sgd(student, lr=0.1)
    for _ in range(3):
        wanted = (teacher.forward(x) / 2.0).softmax()
        logits = student.forward(x.trace()) / 2.0
        loss = losses.cross_entropy_with_probabilities(logits, wanted)
        optimizer.step(loss.backward(wrt=student))
    assert student.forward(x).shape == (6, 4)


if __name__ == "__main__":
    main()
