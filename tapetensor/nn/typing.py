"""The type variables of layers, beside those of `tapetensor.typing`.

========  =====================================================================
``In``    the features that go in
``Out``   the features that come out
``W``     the dtype of the weights, float32 unless given
========  =====================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import TypeVar

In = TypeVar("In", bound=int)
Out = TypeVar("Out", bound=int)
W = TypeVar("W", bound=np.floating[Any], default=np.float32)
