# What `@` refuses.

from typing import Literal as L

import numpy as np

from tapetensor import Tensor2D
from tests.typing.operands import m, m77, mi, q, s, v, v7, w, z, zw

m @ m  # type: ignore[operator]  # inner sizes 3 and 2 differ
m @ m77  # type: ignore[operator]  # inner sizes 3 and 7 differ
w @ m  # type: ignore[operator]  # inner sizes 6 and 2 differ
m.trace() @ m77.trace()  # type: ignore[operator]  # and on both
m @ v7  # type: ignore[operator]  # a vector of the wrong size
v7 @ v  # type: ignore[operator]  # two vectors of different sizes
v @ m  # type: ignore[operator]  # a vector on the left has the rows' size, not the columns'
zw @ zw  # type: ignore[operator]  # the inner sizes of two stacks differ
q @ zw  # type: ignore[operator]  # stacks of different rank do not pair up
z @ m  # type: ignore[operator]  # a stack with a matrix whose rows are too few
s @ m  # type: ignore[operator]  # a 0-d tensor has no axis to contract: multiply with *
m @ s  # type: ignore[operator]  # the same on the right
m @ 2.0  # type: ignore[operator]  # a number has no axis to contract
m @ np.ones((3, 2))  # type: ignore[operator]  # an array: from_numpy() it

def wants_36(x: Tensor2D[L[3], L[6]]) -> None: ...

wants_36(m @ w)  # type: ignore[arg-type]  # the product has shape (2, 6)
wants_36(z @ w)  # type: ignore[arg-type]  # the product has rank 3

# Equations and factors of matrices.
v.det()  # type: ignore[misc]  # a vector is no matrix
m77.solve(v)  # type: ignore[arg-type]  # 7 equations, 3 right-hand sides
mi.inv()  # type: ignore[misc]  # integers have no inverse
mi.pinv()  # type: ignore[misc]  # and no pseudoinverse
v.slogdet()  # type: ignore[misc]  # a vector is no matrix
v.eigh()  # type: ignore[misc]  # a vector is no matrix
v.qr()  # type: ignore[misc]  # a vector is no matrix
mi.svd()  # type: ignore[misc]  # integers have no singular values
