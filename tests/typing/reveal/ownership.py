"""Tapes, gradients and what a tensor says of itself."""

from __future__ import annotations

from typing import Literal as L

import numpy as np

import tapetensor as tt
from tapetensor import Gradients, NoneTape, OwnedTape, Tensor1D, Tensor2D
from tests.typing.check import assert_type, check
from tests.typing.operands import c, m, md, s, sd, si, v, w, wd

# A plain tensor gets a tape, and only a plain one.
check(assert_type(m.trace(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(m.trace(grads=tt.Gradients()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(tt.zeros(m.shape).traced(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(
    assert_type(tt.zeros(m.shape).traced(tt.Gradients()), Tensor2D[L[2], L[3], OwnedTape]), (2, 3)
)
check(assert_type(md.trace(), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))

# Value and tape part and join.
value, tape = m.trace().split_tape()
check(assert_type(value, Tensor2D[L[2], L[3]]), (2, 3))
assert_type(tape, OwnedTape)
check(assert_type(value.put_tape(tape), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
plain, none = m.split_tape()
check(assert_type(plain, Tensor2D[L[2], L[3]]), (2, 3))
assert_type(none, NoneTape)
check(assert_type(plain.put_tape(none), Tensor2D[L[2], L[3]]), (2, 3))

# Both may be done twice, and with a tape of another tensor.
check(assert_type(value.put_tape(tape), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(v.put_tape(m.trace().split_tape()[1]), Tensor1D[L[3], OwnedTape]), (3,))
check(assert_type(md.put_tape(tape), Tensor2D[L[2], L[3], OwnedTape, np.float64]), (2, 3))

# A traced tensor is used as often as one likes.
t = m.trace()
check(assert_type(t * t + t, Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(t * m + m * t, Tensor2D[L[2], L[3], OwnedTape]), (2, 3))

# A second handle.
check(assert_type(m.with_empty_tape(), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m.trace().with_empty_tape(), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(m.retaped(OwnedTape), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(m.trace().retaped(NoneTape), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m.retaped(v.trace().tape_type), Tensor2D[L[2], L[3], OwnedTape]), (2, 3))
check(assert_type(m.trace().retaped(v.tape_type), Tensor2D[L[2], L[3]]), (2, 3))
assert_type(m.trace().exp().to_html(names={"m": m}), str)
assert_type(m.trace().exp().tree(ascii=True), str)
check(assert_type(m.detach(), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(m.trace().detach(), Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(md.trace().detach(), Tensor2D[L[2], L[3], NoneTape, np.float64]), (2, 3))

# What a tensor says of itself, with a tape or without.
rows, columns = m.shape
assert_type(rows, L[2])
assert_type(columns, L[3])
assert_type(m.trace().shape, tuple[L[2], L[3]])
assert_type(m.owns_tape, bool)
assert_type(m.id, tt.TensorId)
assert_type(m.ndim, int)
assert_type(len(m), int)
claimed: type[OwnedTape] = m.trace().tape_type
assert claimed is OwnedTape
dtype: np.dtype[np.float64] = md.dtype
assert dtype == np.float64
array: np.ndarray[tuple[L[2], L[3]], np.dtype[np.float32]] = m.trace().detach().numpy()
assert array.shape == (2, 3)
assert_type(s.item(), float)
assert_type(sd.trace().item(), float)
assert_type(si.item(), int)
assert_type((s > 0.0).item(), bool)
assert_type(c.mean(axis=0).item(), float)
assert_type(c.mean(axis=0, keepdims=True).item(), float)
assert_type(tt.zeros((1,), np.int32).item(), int)
assert_type(tt.zeros((1, 1, 1)).item(), float)
assert_type(float(s), float)

# Backward: of a traced scalar, or of anything traced with its cotangent.
assert_type(s.trace().backward(), Gradients)
assert_type(m.trace().sum().backward(wrt=m), Gradients)
assert_type(m.trace().sum().backward(wrt=[m, v]), Gradients)
assert_type(m.trace().backward(m), Gradients)
assert_type(s.trace().backward(retain=True), Gradients)
assert_type(m.trace().backward(m, retain=True, wrt=m), Gradients)
assert_type(md.trace().exp().backward(md, wrt=md), Gradients)

# A gradient has the shape and the dtype of what it belongs to, and no tape.
grads = ((m.trace() @ w) * 2.0).sum().backward()
check(assert_type(grads[m], Tensor2D[L[2], L[3]]), (2, 3))
check(assert_type(grads[w], Tensor2D[L[3], L[6]]), (3, 6))
check(assert_type(grads[m.trace()], Tensor2D[L[2], L[3]]), (2, 3))
found = grads.get(w)
assert found is not None
check(assert_type(found, Tensor2D[L[3], L[6]]), (3, 6))
removed = grads.remove(w)
assert removed is not None
check(assert_type(removed, Tensor2D[L[3], L[6]]), (3, 6))
grads.insert(w, removed)
check(assert_type(grads[w], Tensor2D[L[3], L[6]]), (3, 6))
assert_type(w in grads, bool)
assert_type(grads.global_norm(), float)
assert_type(grads.clip_by_global_norm(1.0), float)
check(
    assert_type((md.trace() @ wd).sum().backward()[wd], Tensor2D[L[3], L[6], NoneTape, np.float64]),
    (3, 6),
)
check(assert_type(w - grads[w] * 0.1, Tensor2D[L[3], L[6]]), (3, 6))
