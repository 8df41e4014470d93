from collections.abc import Callable
from typing import TypeAlias

import numpy as np

_Flat: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float64]]

class OptimizeResult:
    x: _Flat
    fun: float
    success: bool
    message: str
    nit: int
    nfev: int

def minimize(
    fun: Callable[[_Flat], tuple[float, _Flat]], x0: _Flat, *, jac: bool, method: str
) -> OptimizeResult: ...
