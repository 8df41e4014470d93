"""What the README claims: its story runs, is checked, and fails with the message that it quotes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """Return the fenced code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def mypy_output(source: str, tmp_path: Path) -> str:
    """Return what ``mypy --strict`` prints about a program."""
    tmp_path.mkdir()
    program = tmp_path / "story.py"
    program.write_text(source)
    output, errors, _ = api.run(["--strict", "--config-file", str(ROOT / "mypy.ini"), str(program)])
    assert errors == ""
    return output.replace(f"{program}:", "story.py:").replace(str(program), "story.py")


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


def test_the_story_passes_mypy_strict_and_its_mistake_gets_the_message_quoted(
    story: str, tmp_path: Path
) -> None:
    mistaken = story.replace("nn.Linear[L[512], L[10]]", "nn.Linear[L[511], L[10]]")
    (quoted,) = blocks("text")

    assert mistaken != story
    assert "Success" in mypy_output(story, tmp_path / "right")
    assert quoted.strip() in mypy_output(mistaken, tmp_path / "mistaken")


def test_ci_runs_the_commands_of_the_readme() -> None:
    ci = (ROOT / ".ci" / "run").read_text()
    commands = "\n".join(blocks("sh")).splitlines()

    assert len(commands) >= 4
    assert [command for command in commands if command.replace("examples]", "dev]") not in ci] == []


def test_every_file_that_the_readme_links_to_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]

    assert links != []
    assert [link for link in links if not (ROOT / link).exists()] == []
