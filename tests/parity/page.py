"""The table of parity: reading its rows, and the page that shows them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
TESTS = HERE.parent
PAGE = TESTS.parent / "docs" / "parity.md"

# Every sample of an op is checked against central differences, and against numpy.
_OPS = {
    "op": "ops/test_gradients.py::test_check_grad_accepts_every_mix_of_plain_and_traced",
    "mask": "ops/test_values.py::test_the_result_is_numpys",
}
_HEADER = """\
# Parity: the names of other systems, and what they are here

`python -m tests.parity` writes this page from the rows in `tests/parity/`.
`tests/parity/test_parity.py` fails if a name or a test disappears, or if this page is out of date.
The third column names a difference and its reason. The programs in `tests/parity/programs` run, and
mypy checks them with the plugin and without."""


class Row(NamedTuple):
    """One thing that a system has.

    Attributes:
        upstream: its name there.
        ours: names here, as one writes them after ``tapetensor.``; none where there is nothing of
            the kind, for the reason that `why` says.
        proof: the test that proves it, from `tests` on.
        why: where we differ on purpose: how and why.
    """

    upstream: str
    ours: tuple[str, ...]
    proof: str
    why: str = ""


def sections() -> dict[str, list[Row]]:
    """Return the rows of all files by the title of their section."""
    found: dict[str, list[Row]] = {}
    for name in ("dfdx.txt", "others.txt"):
        title = ""
        for line in (HERE / name).read_text().splitlines():
            if line.startswith("== "):
                title = line.removeprefix("== ")
                found[title] = []
            elif line and not line.startswith("//"):
                found[title].append(_row(line))
    return found


def page() -> str:
    """Return the page."""
    parts = [_HEADER]
    for title, rows in sections().items():
        parts += [
            f"\n## {title}\n",
            "| there | here | differs | proof |\n|---|---|---|---|",
        ]
        parts += [_line(row) for row in rows]
    return "\n".join(parts) + "\n"


def _row(line: str) -> Row:
    """Return the row that ``upstream | ours | proof | why`` says; `why` may be missing."""
    upstream, ours, proof, *why = [cell.strip() for cell in line.split(" | ")]
    kind, bracket, case = proof.partition("[")
    names = tuple([name for name in ours.split(", ") if name])
    return Row(upstream, names, _OPS.get(kind, kind) + bracket + case, *why)


def _line(row: Row) -> str:
    ours = ", ".join([f"`{name}`" for name in row.ours])
    differs = f"differs: {row.why}" if row.why else ""
    path, _, test = row.proof.partition("::")
    # Outside of backticks a generic type would be read as HTML.
    upstream = row.upstream.replace("<", "&lt;")
    cells = [
        one.replace("|", "\\|") for one in (upstream, ours, differs, f"`{path}`: {_prose(test)}")
    ]
    return f"| {' | '.join(cells)} |"


def _prose(test: str) -> str:
    """Return the sentence that is the name of a test."""
    name, _, case = test.partition("[")
    sentence = name.removeprefix("test_").replace("_", " ")
    return f"{sentence} (`{case.rstrip(']')}`)" if case else sentence
