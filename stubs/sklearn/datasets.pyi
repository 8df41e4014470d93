from typing import Literal, TypeAlias

import numpy as np

_Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float64]]
_Labels: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]

def load_digits(*, return_X_y: Literal[True]) -> tuple[_Matrix, _Labels]: ...
