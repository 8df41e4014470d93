"""The errors of the run time for shapes that do not fit."""

from __future__ import annotations

from collections.abc import Callable

from tapetensor.errors import TapeTensorError


def refusal(rule: Callable[[], object]) -> TapeTensorError:
    """Return the error that a rule raises for shapes that do not fit."""
    try:
        result = rule()
    except TapeTensorError as error:
        # A traceback ends where the user's values were refused, and not in the rule.
        return error.with_traceback(None)
    raise AssertionError(f"these shapes fit, and give {result}")
