"""Another file, whose globals change what a function computes."""

from __future__ import annotations

from typing import Any

scale = 3.0


def scaled(x: Any) -> Any:
    """Multiply by what stands in this file."""
    return x * scale


class Scaling:
    """Reads the global when it is made."""

    def __init__(self) -> None:
        self.scale = scale

    def __call__(self, x: Any) -> Any:
        """Multiply."""
        return x * self.scale
