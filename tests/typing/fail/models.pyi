# Layers, losses and optimizers put together wrongly.

from typing import Literal as L

import numpy as np

from tapetensor import Gradients, io
from tapetensor.losses import (
    binary_cross_entropy,
    cross_entropy,
    mse,
    nll,
    quantile,
    soft_margin,
    triplet_margin,
)
from tapetensor.nn import Linear, Module
from tapetensor.optim import RMSprop, Sgd, exponential_moving_average, schedules
from tests.typing.operands import m, m77, md, mi, s, v, vi, w

hidden: Linear[L[3], L[8]]
out: Linear[L[9], L[2]]
rng: np.random.Generator

# Layers.
out.forward(hidden.forward(m))  # type: ignore[arg-type]  # 8 features meet 9
hidden.forward(w)  # type: ignore[arg-type]  # an input of 6 features
hidden.forward(s)  # type: ignore[arg-type]  # a scalar has no features
hidden.forward(md)  # type: ignore[arg-type]  # float64 into a float32 layer
hidden.forward(mi)  # type: ignore[arg-type]  # integers into a layer
hidden.eval()  # type: ignore[attr-defined]  # there is no mode: the tape of the input says it
hidden.train()  # type: ignore[attr-defined]  # there is no mode: the tape of the input says it
Linear(3, 8)  # type: ignore[call-overload]  # initial values need an rng

def wants_layer(layer: Linear[L[3], L[8]]) -> None: ...

wants_layer(out)  # type: ignore[arg-type]  # other sizes
wants_layer(Linear(8, 3, rng=rng))  # type: ignore[arg-type]  # the wrong way round

# Losses.
mse(m.trace(), v)  # type: ignore[arg-type]  # prediction and target differ in shape
mse(m, md)  # type: ignore[arg-type]  # prediction and target differ in dtype
quantile(m.trace(), v, 0.5)  # type: ignore[arg-type]  # prediction and target differ in shape
binary_cross_entropy(m, md)  # type: ignore[arg-type]  # prediction and target differ in dtype
nll(m, v)  # type: ignore[misc, type-var]  # labels are integers
mse(m, m).backward()  # type: ignore[call-arg]  # nothing was traced
cross_entropy(m, v)  # type: ignore[misc, type-var]  # labels are integers
cross_entropy(m, vi)  # type: ignore[misc]  # two rows and three labels
cross_entropy(m, vi, axis=0)  # type: ignore[call-overload]  # the classes are last, or on axis 1
triplet_margin(m, m.trace(), m)  # type: ignore[misc]  # the anchor owns no tape
soft_margin(m, m)  # type: ignore[type-var]  # signs are integers

# Optimizers.
class Mlp(Module):
    hidden: Linear[L[3], L[8]]
    out: Linear[L[8], L[2]]

model: Mlp
other: Mlp
optimizer: Sgd
grads: Gradients
optimizer.step(other, grads)  # type: ignore[arg-type, call-arg]  # it is bound to its model
optimizer.step(m)  # type: ignore[arg-type]  # a tensor is no gradients
optimizer.step(grads, unused="ignore")  # type: ignore[arg-type]  # there are two choices
Sgd(model, check_finite="stop")  # type: ignore[arg-type]  # a flag, and no choice
Sgd(model, lr=schedules.constant(0.1))  # type: ignore[arg-type]  # at which step?
RMSprop(m)  # type: ignore[arg-type]  # a tensor is no model
exponential_moving_average(m, m, decay=0.9)  # type: ignore[type-var]  # a tensor is no model
io.save("model.npz", m)  # type: ignore[arg-type]  # a tensor is no model
io.load_checkpoint("run.npz", model=grads)  # type: ignore[arg-type]  # gradients have no names
Mlp(hidden=hidden, out=out)  # type: ignore[arg-type]  # the output layer has other sizes
Mlp(hidden=hidden)  # type: ignore[call-arg]  # a field is missing
model.hidden.forward(m77)  # type: ignore[arg-type]  # an input of 7 features
