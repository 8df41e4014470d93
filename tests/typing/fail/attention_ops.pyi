# What attention refuses.

from typing import Any
from typing import Literal as L

from tapetensor import Tensor2D, scaled_dot_product_attention
from tests.typing.operands import m, m77, mask, md, mi, q, v, w, z

wanted: Tensor2D[L[2], L[6], Any]

scaled_dot_product_attention(m, m77, m77)  # type: ignore[misc]  # keys of 7 features, queries of 3
scaled_dot_product_attention(m, m, m77)  # type: ignore[misc]  # two keys, seven values
scaled_dot_product_attention(m, z, z)  # type: ignore[misc]  # a matrix beside a stack
scaled_dot_product_attention(z, q, q)  # type: ignore[misc]  # other leading axes
scaled_dot_product_attention(v, v, v)  # type: ignore[arg-type]  # vectors are no queries
scaled_dot_product_attention(m, md, md)  # type: ignore[misc]  # another dtype
scaled_dot_product_attention(mi, mi, mi)  # type: ignore[type-var]  # integers
scaled_dot_product_attention(m, m)  # type: ignore[call-overload]  # the values are missing
scaled_dot_product_attention(m, m, m, mask=m)  # type: ignore[arg-type]  # a mask is bool
scaled_dot_product_attention(m, m, m, bias=md)  # type: ignore[arg-type]  # a bias of another dtype
scaled_dot_product_attention(m, m, m, mask)  # type: ignore[call-overload]  # the mask goes by name
scaled_dot_product_attention(m, m, m, causal=1)  # type: ignore[call-overload]  # a flag
scaled_dot_product_attention(m, m, m).sum().backward()  # type: ignore[call-arg]  # nothing was traced
scaled_dot_product_attention(m, w, w)  # type: ignore[misc]  # keys of 6 features
