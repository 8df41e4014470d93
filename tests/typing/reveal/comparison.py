"""Comparisons and masks."""

from __future__ import annotations

from typing import Literal as L

import numpy as np

from tapetensor import NoneTape, Tensor2D
from tests.typing.check import assert_type, check
from tests.typing.operands import m, mask, md, mi, s

# The result is a plain mask, whatever the operands own.
check(assert_type(m < m, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m < m.trace(), Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m < s, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m < 0.5, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m.trace() < m, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m.trace() < m.trace(), Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m.trace() < s, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m.trace() < 0.5, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m <= m, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m.trace() <= 0.5, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m > m, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m.trace() > 0.5, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m >= m, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m.trace() >= 0.5, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m == m, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m == m.trace(), Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m == s, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m == 0.5, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m.trace() == m, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m.trace() == m.trace(), Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m != m, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(m.trace() != 0.5, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))

# Other dtypes.
check(assert_type(mi == mi, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(mi > 0, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(md >= md.trace(), Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(mask == mask, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))

# The logic of masks.
check(assert_type(mask & (m > 0.0), Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(mask | (m > 0.0), Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(mask ^ (m > 0.0), Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(~mask, Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
check(assert_type(~(m.trace() > 0.0), Tensor2D[L[2], L[3], NoneTape, np.bool_]), (2, 3))
