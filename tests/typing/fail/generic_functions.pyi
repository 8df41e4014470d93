# Functions over shapes, tapes and dims, called wrongly or written wrongly.

from typing import Literal as L
from typing import NewType

import tapetensor as tt
from tapetensor import NoneTape, Tensor, Tensor0D, Tensor1D, Tensor2D, Tensor4D
from tapetensor.typing import B, Ds, F, K, M, N, S, T
from tests.typing.operands import m, md, q, s, v, v7, w, z, zw

def layer(
    x: Tensor[tuple[*Ds, N], T], w: Tensor2D[N, K], b: Tensor1D[K]
) -> Tensor[tuple[*Ds, K], T]: ...
def mse(x: Tensor[S, T, F], target: Tensor[S, NoneTape, F]) -> Tensor0D[T, F]: ...
def residual(x: Tensor[S, T]) -> Tensor[S, T]: ...
def gram(x: Tensor2D[M, N, T]) -> Tensor2D[M, M, T]: ...
def images(x: Tensor4D[B, L[1], L[28], L[28], T]) -> Tensor2D[B, L[10], T]: ...
def wants_plain(x: Tensor2D[L[2], L[3]]) -> None: ...

layer(m, w, v)  # type: ignore[misc]  # the bias is as long as the inputs
layer(v7, w, w[0])  # type: ignore[misc]  # the input has 7 features
layer(m, w.transpose(), v)  # type: ignore[misc]  # the weight is the wrong way round
layer(m, zw, v)  # type: ignore[arg-type]  # a stack is no weight
layer(m, w.trace(), w[0])  # type: ignore[arg-type]  # parameters are plain
layer(s, w, w[0])  # type: ignore[arg-type]  # a scalar has no features
mse(m, v)  # type: ignore[misc]  # prediction and target differ in shape
mse(m.trace(), m.trace())  # type: ignore[arg-type]  # a target owns no tape
mse(m, md)  # type: ignore[misc]  # prediction and target differ in dtype
mse(m.trace(), m) + m.trace().backward()  # type: ignore[call-arg, operator]  # only the loss is a scalar
mse(m, m).backward()  # type: ignore[call-arg]  # nothing was traced
residual(md)  # type: ignore[arg-type]  # float32 unless it is said
residual(m.numpy())  # type: ignore[arg-type]  # an array is no tensor
wants_plain(residual(m.trace()))  # type: ignore[arg-type]  # the tape goes through
wants_plain(gram(m))  # type: ignore[arg-type]  # (2, 2) is not (2, 3)
images(z)  # type: ignore[arg-type]  # no channel axis
images(q)  # type: ignore[arg-type]  # 28 by 28 pixels

# A dim has one size.
def square(x: Tensor2D[N, N]) -> Tensor1D[N]: ...

square(m)  # type: ignore[misc]  # 2 is not 3
rows: L[2]
columns: L[3]
wants_plain(tt.zeros((columns, rows)))  # type: ignore[arg-type]  # declared sizes, the wrong way round

# Dims with a name are not interchangeable.
Batch = NewType("Batch", int)
Time = NewType("Time", int)

def pool(x: Tensor2D[Batch, Time]) -> Tensor1D[Batch]: ...

x: Tensor2D[Time, Batch]
pool(x)  # type: ignore[arg-type]  # time and batch are swapped
pool(m)  # type: ignore[arg-type]  # sizes are no names
pool(x.transpose()) + x[0].sum(axis=-1).expand_dims(0) + v7  # type: ignore[operator]  # 7 is no batch
