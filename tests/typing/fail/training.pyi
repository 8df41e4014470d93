# Training loops whose parts do not agree.

from typing import Any, TypeAlias
from typing import Literal as L

from tapetensor import OwnedTape, Tensor0D, Tensor1D, Tensor2D
from tapetensor.data import batches
from tapetensor.nn import Linear, Module
from tapetensor.optim import Sgd
from tapetensor.training import EarlyStopping, evaluate, fit
from tapetensor.typing import B, T
from tests.typing.operands import m, m77, md

Batch: TypeAlias = tuple[Tensor2D[Any, L[3]], Tensor2D[Any, L[2]]]

class Net(Module):
    out: Linear[L[3], L[2]]
    def forward(self, x: Tensor2D[B, L[3], T]) -> Tensor2D[B, L[2], T]: ...

class Other(Module):
    out: Linear[L[3], L[2]]
    def forward(self, x: Tensor2D[B, L[3], T]) -> Tensor2D[B, L[2], T]: ...

def loss_of(model: Net, batch: Batch) -> Tensor0D[OwnedTape]: ...
def plain_loss_of(model: Net, batch: Batch) -> Tensor0D: ...
def losses_of(model: Net, batch: Batch) -> Tensor1D[L[2], OwnedTape]: ...
def error(model: Net, batch: Batch) -> Tensor0D: ...
def name(model: Net, batch: Batch) -> str: ...

model: Net
other: Other
optimizer: Sgd
target: Tensor2D[L[2], L[2]]
pairs: list[Batch]

# Batches that the loss does not take.
fit(model, optimizer, loss_of, batches(m, m, size=2), epochs=1)  # type: ignore[misc]  # targets of 3 columns
fit(model, optimizer, loss_of, batches(m77, target, size=2), epochs=1)  # type: ignore[misc]  # 7 features
fit(model, optimizer, loss_of, batches(md, target, size=2), epochs=1)  # type: ignore[misc]  # float64
fit(model, optimizer, loss_of, batches(m, size=2), epochs=1)  # type: ignore[misc]  # no targets
fit(model, optimizer, loss_of, [m], epochs=1)  # type: ignore[misc]  # no targets
fit(model, optimizer, loss_of, lambda: batches(m, m, size=2), epochs=1)  # type: ignore[misc]  # from a function, too

# A loss that is none, or of another model.
fit(model, optimizer, plain_loss_of, pairs, epochs=1)  # type: ignore[arg-type]  # nothing was traced
fit(model, optimizer, losses_of, pairs, epochs=1)  # type: ignore[arg-type]  # no scalar
fit(other, optimizer, loss_of, pairs, epochs=1)  # type: ignore[arg-type]  # the loss takes a Net
fit(m, optimizer, loss_of, pairs, epochs=1)  # type: ignore[arg-type, type-var]  # a tensor is no model
fit(model, m, loss_of, pairs, epochs=1)  # type: ignore[arg-type]  # a tensor is no optimizer

# Metrics that do not fit.
fit(model, optimizer, loss_of, pairs, epochs=1, metrics={"e": error}, validation=[m])  # type: ignore[misc]  # held-out batches without targets
fit(model, optimizer, loss_of, pairs, epochs=1, metrics={"n": name}, validation=pairs)  # type: ignore[dict-item]  # a name is no number
evaluate(model, {"e": error}, batches(m, m, size=2))  # type: ignore[misc]  # targets of 3 columns
evaluate(other, {"e": error}, pairs)  # type: ignore[dict-item]  # the metric takes a Net

# Settings.
fit(model, optimizer, loss_of, pairs)  # type: ignore[call-arg]  # for how long?
fit(model, optimizer, loss_of, pairs, epochs=1, schedule=0.1)  # type: ignore[arg-type]  # a number is no schedule
fit(model, optimizer, loss_of, pairs, epochs=1, ranks=2)  # type: ignore[arg-type]  # distributed.world(2)
EarlyStopping("loss", mode="best")  # type: ignore[arg-type]  # small or large?
