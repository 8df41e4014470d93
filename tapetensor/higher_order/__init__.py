"""Derivatives of derivatives, by arrays that record what numpy does to them.

Kernels and their pullbacks are ordinary numpy code. Run on a `RecordedArray` they call numpy's
functions, the array answers each by one of our own kernels, and the pullbacks of those are filed in
a recorder of the second order.
"""

from __future__ import annotations

from tapetensor.higher_order.derivatives import grad as grad
from tapetensor.higher_order.derivatives import hessian_vector_product as hessian_vector_product
from tapetensor.higher_order.derivatives import value_and_grad as value_and_grad
