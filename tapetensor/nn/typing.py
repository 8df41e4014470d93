"""The type variables of layers, beside those of `tapetensor.typing`.

=================  ============================================================
``In``             the features, or channels, that go in
``Out``            the features, or channels, that come out
``W``              the dtype of the weights, float32 unless given
``Embed``          the features of what attends
``Heads``          the heads of attention
``Hidden``         the features between two layers
``Keys``           the features of queries and keys, `Embed` unless given
``Values``         the features of values, `Embed` unless given
``Kernel``         the size of a window
``Stride``         how far apart windows stand, 1 unless given
``PoolStride``     the same in pooling, as far as a window is large unless given
``Padding``        how much is put around the input, 0 unless given
``ConvPadding``    the same of a convolution, which takes "same" as well
``OutputPadding``  how much is added to the output, 0 unless given
``Dilation``       how far apart the elements of a window are, 1 unless given
``Groups``         into how many groups channels are parted, 1 unless given
=================  ============================================================

Those of windows of images, ``Kernel2d`` and so on, stand for one number for both axes, or for one
for each: ``tuple[L[3], L[1]]``.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from typing_extensions import TypeVar

from tapetensor.tensor.operands import Ints

In = TypeVar("In", bound=int)
Out = TypeVar("Out", bound=int)
W = TypeVar("W", bound=np.floating[Any], default=np.float32)
# Of its own, for a default names it: in a class that uses `In` otherwise it would mean that.
Embed = TypeVar("Embed", bound=int)
Heads = TypeVar("Heads", bound=int)
Hidden = TypeVar("Hidden", bound=int)
Keys = TypeVar("Keys", bound=int, default=Embed)
Values = TypeVar("Values", bound=int, default=Embed)
Kernel = TypeVar("Kernel", bound=int)
Stride = TypeVar("Stride", bound=int, default=Literal[1])
PoolStride = TypeVar("PoolStride", bound=int, default=Kernel)
Padding = TypeVar("Padding", bound=int, default=Literal[0])
ConvPadding = TypeVar("ConvPadding", bound=int | Literal["same"], default=Literal[0])
OutputPadding = TypeVar("OutputPadding", bound=int, default=Literal[0])
Dilation = TypeVar("Dilation", bound=int, default=Literal[1])
Kernel2d = TypeVar("Kernel2d", bound=Ints)
Stride2d = TypeVar("Stride2d", bound=Ints, default=Literal[1])
PoolStride2d = TypeVar("PoolStride2d", bound=Ints, default=Kernel2d)
Padding2d = TypeVar("Padding2d", bound=Ints, default=Literal[0])
ConvPadding2d = TypeVar(
    "ConvPadding2d", bound=int | tuple[int, int] | Literal["same"], default=Literal[0]
)
OutputPadding2d = TypeVar("OutputPadding2d", bound=Ints, default=Literal[0])
Dilation2d = TypeVar("Dilation2d", bound=Ints, default=Literal[1])
Groups = TypeVar("Groups", bound=int, default=Literal[1])

# The values of these defaults. A checker takes no literal for a type variable, hence `Any`; a call
# that leaves the argument out has the default of the type variable, which is the same.
# The dtype is no such value: pyright and pyrefly would take the weights to be of `Any`. In a short
# constructor it has a pair of overloads: in one signature, mypy and ty let what is left out be
# whatever is wanted, so `layer: Linear[L[3], L[2], np.float64] = Linear(3, 2, rng=rng)` would pass.
ONE: Any = 1
ZERO: Any = 0
# What a call has that leaves the stride of a pooling out: as much as the window is large, which is
# the default of the type variable, too.
KERNEL: Any = None
