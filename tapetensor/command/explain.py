"""The catalogue of errors, an entry at a time: ``python -m tapetensor explain NAME``."""

from __future__ import annotations

import re
from importlib import resources

from tapetensor.errors import ArgumentValueError

_ENTRY = re.compile(r"^### (?P<name>\S+)\n+(?P<text>.+?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)


def explanation(name: str) -> str:
    """Return the entry of an error, by its class or by its code in the mypy plugin.

    >>> print(explanation("MissingDependencyError"))
    MissingDependencyError
    <BLANKLINE>
    An optional package is not installed. Also an `ImportError`.
    <BLANKLINE>
    *Cure.* The message gives the `pip` command.

    Raises:
        ArgumentValueError: if there is none of that name.
    """
    catalogue = resources.files("tapetensor").joinpath("error_catalogue.md")
    entries = dict(_ENTRY.findall(catalogue.read_text(encoding="utf-8")))
    # As a message shows it: [tape-moved], tapetensor.errors.ShapeError.
    wanted = name.strip("[]").rpartition(".")[2]
    if wanted not in entries:
        raise ArgumentValueError(f"explain: {name} is none of {', '.join(entries)}")
    return f"{wanted}\n\n{entries[wanted].rstrip()}"
