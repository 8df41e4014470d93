"""Checks of arguments: numbers, shapes and axes, one of a few choices.

``as_...`` returns the value converted, ``check_...`` only raises. All begin with the name of the op
for the message. What asks for a tensor, a module or an array stands where those are.
"""

from __future__ import annotations

from tapetensor.arguments.checks import as_flag as as_flag
from tapetensor.arguments.checks import as_int as as_int
from tapetensor.arguments.checks import as_number as as_number
from tapetensor.arguments.checks import as_shape as as_shape
from tapetensor.arguments.checks import as_size as as_size
from tapetensor.arguments.checks import as_target_shape as as_target_shape
from tapetensor.arguments.checks import broadcasts_to as broadcasts_to
from tapetensor.arguments.checks import check_choice as check_choice
from tapetensor.arguments.checks import check_function as check_function
from tapetensor.arguments.checks import check_kind as check_kind
from tapetensor.arguments.checks import check_path as check_path
from tapetensor.arguments.checks import check_rng as check_rng
from tapetensor.arguments.checks import normalize_axes as normalize_axes
from tapetensor.arguments.checks import normalize_axis as normalize_axis
