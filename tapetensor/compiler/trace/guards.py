"""The beginning of the generated source: how a call is recognized, and where its arrays are."""

from __future__ import annotations

from typing import Any


class _Miss:
    """The answer of a plan to a call that is not its own."""


MISS = _Miss()


class GuardWriter:
    """Writes guards: lines that leave the plan where a call is of another kind.

    Args:
        names: objects that the source refers to by name, to begin with.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.guards: list[str] = []

    def bind(self, value: Any, prefix: str = "k") -> str:
        """Return a name by which the source can refer to `value`."""
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def guard(self, condition: str) -> None:
        """Write down that a call for which the condition holds is of another kind."""
        self.guards.append(f"if {condition}: return MISS")

    def local(self, expression: str) -> str:
        """Return a local variable of the source that holds `expression`."""
        if expression.isidentifier():
            return expression
        local = f"l{len(self.guards)}"
        self.guards.append(f"{local} = {expression}")
        return local

    def guard_local(self, local: str, condition: str) -> None:
        """Write a guard right behind the line that gives a local variable its value."""
        for position, line in enumerate(self.guards):
            if line.startswith(f"{local} = "):
                self.guards.insert(position + 1, f"if {condition}: return MISS")
                return
