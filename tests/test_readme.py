"""What the README claims: its story runs, is checked, and fails with the message that it quotes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import tapetensor as tt
from tests.typing.checkers import front_page_file, mypy_report, normalized, readme_files

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the fenced code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def story() -> str:
    """The only Python block of the README."""
    (block,) = blocks("python")
    return block


def test_the_story_is_25_lines_of_code_or_fewer(story: str) -> None:
    lines = [line for line in story.splitlines() if line.strip()]

    assert len(lines) <= 25


def test_the_story_runs_and_learns(story: str) -> None:
    names: dict[str, object] = {"__name__": "story"}

    exec(compile(story, "README.md", "exec", dont_inherit=True), names)

    assert float(names["loss"]) < 2.0  # type: ignore[arg-type]  # a Tensor0D, by the story


def test_the_story_passes_mypy_strict_and_its_mistake_gets_the_message_quoted() -> None:
    right, mistaken = (mypy_report()[file] for file in readme_files())
    (quoted,) = blocks("text")

    assert right == {}
    said = [f"story.py:{line}: error: {one}" for line in mistaken for one in mistaken[line]]
    assert normalized(quoted.strip()) in [normalized(one) for one in said]


def test_the_front_page_of_the_site_tells_the_same_story(story: str) -> None:
    front = (ROOT / "docs" / "index.md").read_text()
    (quoted,) = blocks("text")

    assert story in front
    assert quoted.strip().partition(": error: ")[2] in front
    assert mypy_report()[front_page_file()] == {}


def test_the_picture_of_an_editor_shows_what_its_program_is_told() -> None:
    picture = (ROOT / "docs" / "images" / "editor.svg").read_text()
    program = "\n".join(re.findall(r'class="code"[^>]*>(.*)</text>', picture))
    shown = " ".join(re.findall(r'class="said"[^>]*>(.*)</text>', picture))
    names = {"np": np, "tt": tt, "nn": tt.nn, "losses": tt.losses, "rng": np.random.default_rng(0)}
    names |= {"L": Literal, "Tensor1D": tt.Tensor1D, "Tensor2D": tt.Tensor2D}

    with pytest.raises(tt.ShapeError) as refused:
        exec(program, names)

    assert f"{refused.value}  [shape-mismatch]" == shown


def test_ci_runs_the_commands_of_the_readme() -> None:
    ci = (ROOT / ".ci" / "run").read_text()
    commands = "\n".join(blocks("sh")).splitlines()

    assert len(commands) >= 4
    assert [command for command in commands if command.replace("examples]", "dev]") not in ci] == []


def test_every_file_that_the_readme_links_to_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]

    assert links != []
    assert [link for link in links if not (ROOT / link).exists()] == []
