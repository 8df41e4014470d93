"""The type variables of layers, beside those of `tapetensor.typing`.

==========  ===================================================================
``In``      the features that go in
``Out``     the features that come out
``W``       the dtype of the weights, float32 unless given
``Embed``   the features of what attends
``Heads``   the heads of attention
``Hidden``  the features between two layers
``Keys``    the features of queries and keys, `Embed` unless given
``Values``  the features of values, `Embed` unless given
==========  ===================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import TypeVar

In = TypeVar("In", bound=int)
Out = TypeVar("Out", bound=int)
W = TypeVar("W", bound=np.floating[Any], default=np.float32)
# Of its own, for a default names it: in a class that uses `In` otherwise it would mean that.
Embed = TypeVar("Embed", bound=int)
Heads = TypeVar("Heads", bound=int)
Hidden = TypeVar("Hidden", bound=int)
Keys = TypeVar("Keys", bound=int, default=Embed)
Values = TypeVar("Values", bound=int, default=Embed)
