"""Arrays that record what numpy does to them, so that a backward pass can be differentiated.

Kernels and their pullbacks are ordinary numpy code. Run on a `RecordedArray` they call numpy's
functions, the array answers each by one of our own kernels, and the pullbacks of those are filed in
a recorder of the second order.
"""

from __future__ import annotations

from tapetensor.recorded.array import Level as Level
from tapetensor.recorded.array import RecordedArray as RecordedArray
from tapetensor.recorded.array import plain as plain
from tapetensor.recorded.refusals import UnrecordedError as UnrecordedError
