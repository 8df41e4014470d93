# What a compiled function refuses: what the function refuses.

import tapetensor as tt
from tapetensor import Tensor2D
from tapetensor.typing import M, N
from tests.typing.operands import m, m77, md, v, z

@tt.compile
def added(x: Tensor2D[M, N], y: Tensor2D[M, N]) -> Tensor2D[M, N]: ...

added(m, m77)  # type: ignore[misc]  # other dims
added(m, v)  # type: ignore[arg-type]  # another rank
added(m, z)  # type: ignore[arg-type]  # another rank
added(m, md)  # type: ignore[arg-type]  # another dtype
added(m, m.trace())  # type: ignore[arg-type]  # the function takes plain tensors
added(m)  # type: ignore[call-arg]  # one is missing
added(m, m).backward()  # type: ignore[call-arg]  # nothing was traced
tt.compile(3)  # type: ignore[type-var]  # no function
