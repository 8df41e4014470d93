# Tape mistakes.

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Gradients, NoneTape, OwnedTape, Tensor2D
from tapetensor.typing import T
from tests.typing.operands import m, mask, md, positions, s, si, v

# backward() belongs to a traced scalar, or to anything traced with its cotangent.
m.sum().backward()  # type: ignore[call-arg]  # no tape: nothing was recorded
s.backward()  # type: ignore[call-arg]  # no tape: nothing was recorded
m.trace().backward()  # type: ignore[call-arg]  # no scalar: which cotangent?
m.trace().exp().backward(wrt=m)  # type: ignore[call-arg]  # no scalar, with wrt
v.trace().sum(axis=0, keepdims=True).backward()  # type: ignore[call-arg]  # (1,) is no scalar
m.backward(m)  # type: ignore[arg-type]  # a cotangent and no tape
m.trace().backward(v)  # type: ignore[arg-type]  # a cotangent of another shape
m.trace().backward(m.trace())  # type: ignore[arg-type]  # the cotangent is a plain value
m.trace().backward(md)  # type: ignore[arg-type]  # the cotangent has another dtype
m.trace().sum().backward(wrt=3)  # type: ignore[call-overload]  # wrt names tensors or a module
si.trace().backward()  # type: ignore[misc]  # integers have no gradient

# A tape is put on a plain tensor.
m.trace().trace()  # type: ignore[misc]  # it has a tape already
m.trace().put_tape(m.trace().split_tape()[1])  # type: ignore[misc]  # it has a tape already
m.put_tape(m)  # type: ignore[type-var]  # a tensor is no tape
m.trace(m)  # type: ignore[arg-type]  # carried gradients are Gradients
m.retaped(np.float32)  # type: ignore[type-var]  # no tape type

# Whether the history stays is a flag; a tensor may be used twice, so there is nothing to share.
m.trace().sum().backward(retain="yes")  # type: ignore[call-overload]  # True or False
m.sum().backward(retain=True)  # type: ignore[call-arg]  # no tape: nothing was recorded
m.trace().backward(retain=True)  # type: ignore[call-arg]  # no scalar: which cotangent?
m.trace().share()  # type: ignore[attr-defined]  # use the tensor itself
m.put_tape(m.split_tape()[0])  # type: ignore[type-var]  # the value, and not the tape
v.split_tape()[1].backward()  # type: ignore[attr-defined]  # a tape goes back from a tensor

# The state is part of the type.
def wants_plain(x: Tensor2D[L[2], L[3]]) -> None: ...
def wants_traced(x: Tensor2D[L[2], L[3], OwnedTape]) -> None: ...
def wants_one_state(x: Tensor2D[L[2], L[3], T], y: Tensor2D[L[2], L[3], T]) -> None: ...

wants_plain(m.trace())  # type: ignore[arg-type]  # a traced tensor is no plain one
wants_traced(m)  # type: ignore[arg-type]  # a plain tensor is no traced one
wants_plain(m.trace() + m)  # type: ignore[arg-type]  # the left operand's tape is in the sum
wants_plain(m + m.trace())  # type: ignore[arg-type]  # and so is the right one's
wants_plain(m.with_empty_tape().retaped(OwnedTape))  # type: ignore[arg-type]  # retaped() gave it one
wants_traced(m.trace().split_tape()[0])  # type: ignore[arg-type]  # the value has parted from its tape
wants_traced(m.trace().detach())  # type: ignore[arg-type]  # detached
wants_traced(m.trace().relu().retaped(NoneTape))  # type: ignore[arg-type]  # retaped() took it away
wants_one_state(m, m.trace())  # type: ignore[misc]  # two states for one T
wants_plain(m.trace().sum(axis=-1).expand_dims(-1) + m)  # type: ignore[operator]  # a reduction keeps the tape

# Numbers are those of plain values.
m.trace().numpy()  # type: ignore[call-arg]  # detach() it first

# Only values can be copied.
m.trace().__copy__()  # type: ignore[misc]  # a tape cannot be copied
m.trace().__deepcopy__({})  # type: ignore[misc]  # a tape cannot be copied
m.trace().clone()  # type: ignore[attr-defined]  # there is no clone: use the tensor itself

# Index tensors, masks and targets are plain.
tt.where(mask.trace(), m, m)  # type: ignore[arg-type]  # a mask with a tape
m.take(positions.trace())  # type: ignore[arg-type]  # indices with a tape
m[positions.trace()]  # type: ignore[index]  # indices with a tape
mask.trace() & mask  # type: ignore[misc]  # the logic of masks is not traced

# Gradients belong to tensors and are plain.
grads: Gradients
wants_traced(grads[m])  # type: ignore[index]  # a gradient has no tape
grads[0]  # type: ignore[index]  # looked up by tensor, not by number
grads["w"]  # type: ignore[index]  # nor by name
wants_plain(grads[v])  # type: ignore[index]  # it has the shape of v
wants_plain(grads[md])  # type: ignore[index]  # it has the dtype of md
grads.get(m) + m  # type: ignore[operator]  # there may be none
