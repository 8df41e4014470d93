from typing import Literal

import numpy as np

def load_digits(
    *, return_X_y: Literal[True]
) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.int64]]]: ...
