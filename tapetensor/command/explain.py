"""The catalogue of errors, an entry at a time: ``python -m tapetensor explain NAME``."""

from __future__ import annotations

import re
from difflib import get_close_matches
from importlib import resources

from tapetensor.errors import ArgumentValueError

_ENTRY = re.compile(r"^### (?P<name>\S+)\n+(?P<text>.+?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)

_LINK = re.compile(r"\[(?P<words>[^\]]+)\]\((?P<page>\w*)(?:\.md)?(?:#[\w-]*)?\)")


def explanation(name: str) -> str:
    """Return the entry of an error, by its class or by its code in the mypy plugin.

    >>> print(explanation("missingdependencyerror"))
    MissingDependencyError
    <BLANKLINE>
    An optional package is not installed. Also an `ImportError`.
    <BLANKLINE>
    *Cure.* The message gives the command: `pip install 'tapetensor[training]'`, say.

    Raises:
        ArgumentValueError: if there is none of that name, in capitals or not; it says which are
            nearest.
    """
    entries = _entries()
    # As a message shows it: [shape-mismatch], tapetensor.errors.ShapeError.
    wanted = name.strip("[]").rpartition(".")[2].lower()
    by_letters = {known.lower(): known for known in entries}
    if wanted in by_letters:
        known = by_letters[wanted]
        return f"{known}\n\n{_LINK.sub(_in_a_terminal, entries[known]).rstrip()}"
    near = get_close_matches(wanted, by_letters, n=1) or get_close_matches(
        wanted, by_letters, n=2, cutoff=0.5
    )
    if near:
        nearest = " or ".join([by_letters[one] for one in near])
        raise ArgumentValueError(f"explain: there is no {name}; did you mean {nearest}?")
    raise ArgumentValueError(f"explain: {name} is none of {', '.join(entries)}")


def _in_a_terminal(link: re.Match[str]) -> str:
    """Return the words of a link, and how the page is read that it leads to."""
    page = link["page"]
    return link["words"] + (f" (python -m tapetensor docs {page})" if page else "")


def contents() -> str:
    """Return the names of all entries, each with its first sentence."""
    return "\n".join([f"{name:28}{_summary(text)}" for name, text in _entries().items()])


def _summary(text: str) -> str:
    paragraph = " ".join(_LINK.sub(r"\g<words>", text).strip().partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".")


def _entries() -> dict[str, str]:
    catalogue = resources.files("tapetensor").joinpath("error_catalogue.md")
    return dict(_ENTRY.findall(catalogue.read_text(encoding="utf-8")))
