"""Figures on the pages are those of what they count."""

from __future__ import annotations

import json
import re
import tomllib

from tests.typing.pages import DOCS

_WORDS = ("eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen")


def test_the_front_page_counts_the_programs_of_the_gallery() -> None:
    shown = len(set(re.findall(r'--8<-- "(\w+)\.txt"', (DOCS / "gallery.md").read_text())))
    (said,) = re.findall(r"has (\w+) programs", (DOCS / "index.md").read_text())

    assert _WORDS.index(said) + 8 == shown


def test_the_front_pages_count_the_workloads() -> None:
    run = json.loads((DOCS / "comparisons.json").read_text())[0]

    for page in (DOCS / "index.md", DOCS.parent / "README.md"):
        said = re.findall(r"(?:for|times) (\w+) workloads", page.read_text())
        assert {_WORDS.index(one) + 8 for one in said} == {len(run["results"])}


def test_the_checkers_are_those_that_are_tried() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]
    pinned = dict(
        re.findall(
            r"^(\w+)(?:\[\w+\])?==(\S+)$",
            "\n".join(project["optional-dependencies"]["dev"]),
            re.MULTILINE,
        )
    )
    (row,) = re.findall(
        r"^\| tried with \| (.+) \|$", (DOCS / "checkers.md").read_text(), re.MULTILINE
    )
    of_mypy, *others = row.split(" | ")

    assert others == [pinned[name] for name in ("pyright", "pyrefly", "ty")]
    assert pinned["mypy"].startswith(f"{of_mypy.rpartition(' ')[2]}.")
