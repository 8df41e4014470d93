"""The catalogue of errors, an entry at a time: ``python -m tapetensor explain NAME``."""

from __future__ import annotations

import re
from importlib import resources

from tapetensor.errors import ArgumentValueError

_ENTRY = re.compile(r"^### (?P<name>\S+)\n+(?P<text>.+?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)


def explanation(name: str) -> str:
    """Return the entry of an error, by its class or by its code in the mypy plugin.

    >>> print(explanation("missingdependencyerror"))
    MissingDependencyError
    <BLANKLINE>
    An optional package is not installed. Also an `ImportError`.
    <BLANKLINE>
    *Cure.* The message gives the `pip` command.

    Raises:
        ArgumentValueError: if there is none of that name, in capitals or not.
    """
    entries = _entries()
    # As a message shows it: [shape-mismatch], tapetensor.errors.ShapeError.
    wanted = name.strip("[]").rpartition(".")[2].lower()
    for known, text in entries.items():
        if known.lower() == wanted:
            return f"{known}\n\n{text.rstrip()}"
    raise ArgumentValueError(f"explain: {name} is none of {', '.join(entries)}")


def contents() -> str:
    """Return the names of all entries, each with its first sentence."""
    return "\n".join([f"{name:28}{_summary(text)}" for name, text in _entries().items()])


def _summary(text: str) -> str:
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".")


def _entries() -> dict[str, str]:
    catalogue = resources.files("tapetensor").joinpath("error_catalogue.md")
    return dict(_ENTRY.findall(catalogue.read_text(encoding="utf-8")))
