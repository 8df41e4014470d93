"""The type variables of layers, beside those of `tapetensor.typing`.

==========  ===================================================================
``In``      the features that go in
``Out``     the features that come out
``W``       the dtype of the weights, float32 unless given
``Heads``   the heads of attention
``Hidden``  the features between two layers
``Keys``    the features of queries and keys, `In` unless given
``Values``  the features of values, `In` unless given
==========  ===================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import TypeVar

In = TypeVar("In", bound=int)
Out = TypeVar("Out", bound=int)
W = TypeVar("W", bound=np.floating[Any], default=np.float32)
Heads = TypeVar("Heads", bound=int)
Hidden = TypeVar("Hidden", bound=int)
Keys = TypeVar("Keys", bound=int, default=In)
Values = TypeVar("Values", bound=int, default=In)
