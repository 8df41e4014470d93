"""Layers of every kind: what goes in says what comes out, for both tapes."""

from __future__ import annotations

from typing import Any, Generic, NewType
from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor1D, Tensor2D, Tensor3D, Tensor4D, nn
from tapetensor.typing import B, N, T
from tests.typing.check import assert_type, check

Batch = NewType("Batch", int)
batch = Batch(3)
rng = np.random.default_rng(0)
rows: Tensor2D[Batch, L[8]] = tt.ones((batch, 8))
tokens: Tensor3D[Batch, L[5], L[8]] = tt.ones((batch, 5, 8))
memory: Tensor3D[Batch, L[7], L[8]] = tt.ones((batch, 7, 8))
images: Tensor4D[Batch, L[2], L[4], L[4]] = tt.ones((batch, 2, 4, 4))

# Weights that are one vector or one matrix.
unbiased: nn.UnbiasedLinear[L[8], L[2]] = nn.UnbiasedLinear(8, 2, rng=rng)
check(assert_type(unbiased.forward(rows), Tensor2D[Batch, L[2]]), (3, 2))
check(
    assert_type(unbiased.forward(tokens.trace()), Tensor3D[Batch, L[5], L[2], OwnedTape]), (3, 5, 2)
)
bias = tt.build(nn.Bias1d[L[8]], rng=rng)
check(assert_type(bias.forward(tokens.trace()), Tensor3D[Batch, L[5], L[8], OwnedTape]), (3, 5, 8))
channels = tt.build(nn.Bias2d[L[2]], rng=rng)
check(assert_type(channels.forward(images), Tensor4D[Batch, L[2], L[4], L[4]]), (3, 2, 4, 4))
check(assert_type(nn.PReLU().forward(rows.trace()), Tensor2D[Batch, L[8], OwnedTape]), (3, 8))
slopes: nn.PReLU1d[L[2]] = nn.PReLU1d(2)
check(assert_type(slopes.forward(images), Tensor4D[Batch, L[2], L[4], L[4]]), (3, 2, 4, 4))
check(assert_type(nn.CELU(0.5).forward(rows.trace()), Tensor2D[Batch, L[8], OwnedTape]), (3, 8))
check(assert_type(nn.SELU().forward(rows), Tensor2D[Batch, L[8]]), (3, 8))
check(assert_type(nn.Mish().forward(rows.trace()), Tensor2D[Batch, L[8], OwnedTape]), (3, 8))
check(assert_type(nn.Threshold(0.1, 2.0).forward(rows), Tensor2D[Batch, L[8]]), (3, 8))
check(assert_type(nn.Identity().forward(rows.trace()), Tensor2D[Batch, L[8], OwnedTape]), (3, 8))
check(
    assert_type(nn.InstanceNorm2d().forward(images), Tensor4D[Batch, L[2], L[4], L[4]]),
    (3, 2, 4, 4),
)
shorter = tt.build(nn.MaxPool1d[L[2]], rng=rng)
assert_type(shorter.forward(tokens.trace()), Tensor3D[Batch, L[5], Any, OwnedTape])
bins = tt.build(nn.AdaptiveAvgPool2d[L[3], L[7]], rng=rng)
largest = tt.build(nn.AdaptiveMaxPool1d[L[4]], rng=rng)
check(
    assert_type(largest.forward(tokens.trace()), Tensor3D[Batch, L[5], L[4], OwnedTape]), (3, 5, 4)
)
averaged = bins.forward(images.trace())
check(assert_type(averaged, Tensor4D[Batch, L[2], L[3], L[7], OwnedTape]), (3, 2, 3, 7))
check(assert_type(nn.LeakyReLU(0.1).forward(rows), Tensor2D[Batch, L[8]]), (3, 8))
drop = tt.build(nn.DropoutOneIn[L[5]], rng=rng)
assert_type(drop.n, L[5])
check(assert_type(drop.forward(rows.trace()), Tensor2D[Batch, L[8], OwnedTape]), (3, 8))

# Shapes.
cut = tt.build(nn.Reshape[L[2], L[4]], rng=rng)
check(assert_type(cut.forward(rows.trace()), Tensor3D[Batch, L[2], L[4], OwnedTape]), (3, 2, 4))
check(assert_type(nn.Flatten().forward(images), Tensor2D[Batch, Any]), (3, 32))

# Branches: a residual keeps the shape, a sum leaves it open.
residual = nn.ResidualAdd(unbiased)
check(assert_type(nn.ResidualAdd(nn.Tanh()).forward(rows), Tensor2D[Batch, L[8]]), (3, 8))
check(
    assert_type(nn.ResidualMul(nn.Tanh()).forward(rows.trace()), Tensor2D[Batch, L[8], OwnedTape]),
    (3, 8),
)
assert_type(residual.layer, nn.UnbiasedLinear[L[8], L[2]])
added: Tensor2D[Batch, L[8], OwnedTape] = nn.ParallelAdd(nn.Tanh(), nn.ReLU()).forward(rows.trace())
multiplied: Tensor2D[Batch, L[8]] = nn.ParallelMul(nn.Tanh(), nn.ReLU()).forward(rows)
join = nn.AddInto(nn.Tanh(), nn.ReLU())
check(assert_type(join.forward((rows, rows)), Tensor[Any, NoneTape, Any]), (3, 8))
check(assert_type(join.forward((rows.trace(), rows)), Tensor[Any, OwnedTape, Any]), (3, 8))
check(assert_type(join.forward((rows, rows.trace())), Tensor[Any, OwnedTape, Any]), (3, 8))
for head in nn.SplitInto(nn.Tanh(), nn.ReLU()).forward(rows.trace()):
    check(assert_type(head, Tensor[Any, OwnedTape, Any]), (3, 8))
tower = tt.build(nn.Repeated[nn.Linear[L[8], L[8]], L[3]], rng=rng)
check(assert_type(tower.forward(rows.trace()), Tensor2D[Batch, L[8], OwnedTape]), (3, 8))
assert_type(tower.layers[0], nn.Linear[L[8], L[8]])

# Attention: with one input, with three of any tapes.
bare = tt.build(nn.UnbiasedMultiHeadAttention[L[8], L[2]], rng=rng)
check(assert_type(bare.forward(tokens.trace()), Tensor3D[Batch, L[5], L[8], OwnedTape]), (3, 5, 8))
attention = tt.build(nn.MultiHeadAttention[L[8], L[2]], rng=rng)
check(assert_type(attention.forward(tokens, causal=True), Tensor3D[Batch, L[5], L[8]]), (3, 5, 8))
check(
    assert_type(attention.forward(tokens.trace()), Tensor3D[Batch, L[5], L[8], OwnedTape]),
    (3, 5, 8),
)
check(
    assert_type(attention.forward(tokens, bias=tt.ones((5, 5))), Tensor3D[Batch, L[5], L[8]]),
    (3, 5, 8),
)
check(
    assert_type(attention.forward(tokens, memory, memory), Tensor3D[Batch, L[5], L[8]]), (3, 5, 8)
)
check(
    assert_type(
        attention.forward(tokens.trace(), memory, memory), Tensor3D[Batch, L[5], L[8], OwnedTape]
    ),
    (3, 5, 8),
)
check(
    assert_type(
        attention.forward(tokens, memory.trace(), memory), Tensor3D[Batch, L[5], L[8], OwnedTape]
    ),
    (3, 5, 8),
)
wide: nn.MultiHeadAttention[L[8], L[2], np.float32, L[4], L[6]] = nn.MultiHeadAttention(
    8, 2, key_features=4, value_features=6, rng=rng
)
assert_type(wide.w_o, nn.Linear[L[6], L[8]])

# Transformers.
encoder = tt.build(nn.EncoderBlock[L[8], L[2], L[16]], rng=rng)
check(assert_type(encoder.forward(tokens), Tensor3D[Batch, L[5], L[8]]), (3, 5, 8))
decoder = tt.build(nn.DecoderBlock[L[8], L[2], L[16]], rng=rng)
check(assert_type(decoder.forward(tokens, memory), Tensor3D[Batch, L[5], L[8]]), (3, 5, 8))
check(
    assert_type(decoder.forward(tokens, memory.trace()), Tensor3D[Batch, L[5], L[8], OwnedTape]),
    (3, 5, 8),
)
model = tt.build(nn.Transformer[L[8], L[2], L[16], L[1], L[2]], rng=rng)
check(
    assert_type(model.forward(memory.trace(), tokens), Tensor3D[Batch, L[5], L[8], OwnedTape]),
    (3, 5, 8),
)

# Recurrent layers: the states after every step, and after the last.
gru: nn.GRU[L[8], L[6]] = nn.GRU(8, 6, rng=rng)
states, last = gru.forward(tokens.trace())
check(assert_type(states, Tensor3D[Batch, L[5], L[6], OwnedTape]), (3, 5, 6))
check(assert_type(last, Tensor2D[Batch, L[6], OwnedTape]), (3, 6))
again, again_last = gru.forward(tokens, last.detach())
check(assert_type(again, Tensor3D[Batch, L[5], L[6]]), (3, 5, 6))
onwards, onwards_last = gru.forward(tokens, last)
check(assert_type(onwards, Tensor3D[Batch, L[5], L[6], OwnedTape]), (3, 5, 6))
lstm = tt.build(nn.LSTM[L[8], L[6]], rng=rng)
outputs, (hidden, cell) = lstm.forward(tokens)
check(assert_type(outputs, Tensor3D[Batch, L[5], L[6]]), (3, 5, 6))
check(assert_type(cell, Tensor2D[Batch, L[6]]), (3, 6))
deep = tt.build(nn.StackedLSTM[L[8], L[6], L[2]], rng=rng)
top, (ends, _) = deep.forward(tokens.trace())
check(assert_type(top, Tensor3D[Batch, L[5], Any, OwnedTape]), (3, 5, 6))
check(assert_type(ends, Tensor3D[Any, Batch, L[6], OwnedTape]), (2, 3, 6))
step = tt.build(nn.LSTMCell[L[8], L[6]], rng=rng)
check(
    assert_type(step.forward(rows.trace(), (hidden, cell))[0], Tensor2D[Batch, L[6], OwnedTape]),
    (3, 6),
)
plain_step = tt.build(nn.RNNCell[L[8], L[6]], rng=rng)
check(assert_type(plain_step.forward(rows, hidden), Tensor2D[Batch, L[6]]), (3, 6))


class Classifier(nn.Module, Generic[N]):
    reader: nn.GRU[N, L[16]]
    mixer: nn.Repeated[nn.EncoderBlock[L[16], L[4], L[32]], L[2]]
    head: nn.UnbiasedLinear[L[16], L[3]]

    def forward(self, x: Tensor3D[B, Any, N, T]) -> Tensor2D[B, L[3], T]:
        states, _ = self.reader.forward(x)
        return self.head.forward(self.mixer.forward(states).mean(axis=1))


classifier = tt.build(Classifier[L[8]], rng=rng)
check(assert_type(classifier.forward(tokens), Tensor2D[Batch, L[3]]), (3, 3))
loss = classifier.forward(tokens.trace()).square().mean()
grads = loss.backward(wrt=classifier)
assert set(grads) == {one.id for one in classifier.parameters().values()}
vector: Tensor1D[L[8]] = tt.ones((8,))
check(assert_type(bias.forward(vector), Tensor1D[L[8]]), (8,))
