"""The plugin's error codes, each of which can be silenced on its own."""

from __future__ import annotations

from typing import Final

from mypy.errorcodes import ErrorCode

TAPE_MOVED: Final = ErrorCode("tape-moved", "A tensor is used after its tape was taken", "Tape")
SHAPE_MISMATCH: Final = ErrorCode("shape-mismatch", "Shapes do not fit an op", "Shape")
AXIS_RANGE: Final = ErrorCode("axis-range", "An axis or an index is outside the shape", "Shape")
MODULE_FORWARD: Final = ErrorCode("module-forward", "A module cannot be called", "Module")
MODULE_DIMS: Final = ErrorCode("module-dims", "The dims of a module cannot be built", "Module")
