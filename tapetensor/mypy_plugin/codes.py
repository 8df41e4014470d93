"""The plugin's error codes, each of which can be silenced on its own.

The cause and the cure of each: docs/error_catalogue.md, under its name.
"""

from __future__ import annotations

from typing import Final

from mypy.errorcodes import CALL_OVERLOAD, MISC, OPERATOR, ErrorCode

# The parents of these are the codes that mypy alone gives such a line, so that one `type: ignore`
# is right with the plugin and without it.
SHAPE_MISMATCH: Final = ErrorCode(
    "shape-mismatch", "Shapes do not fit an op", "Shape", sub_code_of=OPERATOR
)
AXIS_RANGE: Final = ErrorCode(
    "axis-range", "An axis or an index is outside the shape", "Shape", sub_code_of=CALL_OVERLOAD
)
DTYPE_MISMATCH: Final = ErrorCode(
    "dtype-mismatch", "Dtypes do not fit an op", "Shape", sub_code_of=MISC
)
ARGUMENT_KIND: Final = ErrorCode(
    "argument-kind",
    "An argument is missing or of the wrong kind",
    "Call",
    sub_code_of=CALL_OVERLOAD,
)
OPERAND_KIND: Final = ErrorCode(
    "operand-kind", "An operand is of a wrong kind", "Call", sub_code_of=OPERATOR
)
MODULE_FORWARD: Final = ErrorCode("module-forward", "A module cannot be called", "Module")
MODULE_NO_FORWARD: Final = ErrorCode(
    "module-no-forward", "A module has neither forward() nor any other method", "Module"
)
MODULE_DIMS: Final = ErrorCode("module-dims", "The dims of a module cannot be built", "Module")
MODULE_GRADIENT: Final = ErrorCode("module-gradient", "A gradient reaches no parameter", "Module")
