"""Use after move: a second use of a tensor whose tape was taken, found before the program runs."""

from __future__ import annotations

from tapetensor.mypy_plugin.moves.hooks import attribute, function_result, method_result
from tapetensor.mypy_plugin.moves.lending import declare

__all__ = ["attribute", "declare", "function_result", "method_result"]
