"""The table of ops: one row for each, gathered from one module per family.

A new op is tested by adding its row; `test_table` says when one is missing.
"""

from __future__ import annotations

from tests.ops.attention_rows import ATTENTION
from tests.ops.custom_rows import CUSTOM
from tests.ops.elementwise_rows import ELEMENTWISE, PREDICATES, STEPS, TRANSCENDENTAL
from tests.ops.indexing_rows import INDEXING
from tests.ops.joining_rows import JOINING
from tests.ops.operator_rows import OPERATORS
from tests.ops.recurrent_rows import RECURRENT
from tests.ops.reduction_rows import MASK_REDUCTIONS, REDUCTIONS
from tests.ops.refusal_rows import CREATION, OTHER_FORMS, TAPES
from tests.ops.rows import Case, Op, Row
from tests.ops.scan_rows import SCANS
from tests.ops.shape_rows import SHAPES
from tests.ops.solving_rows import SOLVING
from tests.ops.window_rows import WINDOWS

OPS: tuple[Op, ...] = (
    *ELEMENTWISE,
    *TRANSCENDENTAL,
    *STEPS,
    *PREDICATES,
    *OPERATORS,
    *REDUCTIONS,
    *MASK_REDUCTIONS,
    *SHAPES,
    *INDEXING,
    *JOINING,
    *WINDOWS,
    *ATTENTION,
    *SCANS,
    *SOLVING,
    *CUSTOM,
    *RECURRENT,
)

# What has nothing but refusals, too.
ROWS: tuple[Row, ...] = (*OPS, *CREATION, *TAPES, *OTHER_FORMS)

CASES: tuple[Case, ...] = tuple(
    Case(op, sample, f"{op.name}-{number}")
    for op in OPS
    for number, sample in enumerate(op.samples)
)
