"""docs/error_catalogue.md: every error and every code is there, and is said as the page says."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest
from mypy.errorcodes import ErrorCode

import tapetensor as tt
from tapetensor import TapeTensorError, errors
from tapetensor.__main__ import main
from tapetensor.mypy_plugin import reporting
from tapetensor.testing import GradientMismatchError
from tests.plugin.checked import CONFIGURATION, library_cache, plugin_report
from tests.typing.catalogue import CLASSES, CODES
from tests.typing.checkers import catalogue_files, normalized
from tests.typing.runs import mypy

RUNNABLE = [name for name, entry in CLASSES.items() if entry.program]


def test_every_class_of_errors_has_an_entry_with_a_cure() -> None:
    of_errors = {one for one in vars(errors).values() if isinstance(one, type)}
    defined = {one for one in of_errors if issubclass(one, TapeTensorError)}
    public = {one.__name__ for one in {*defined, GradientMismatchError} - {TapeTensorError}}

    assert set(CLASSES) == public
    assert [name for name, entry in CLASSES.items() if not entry.cure] == []
    # One process cannot show the second; tests/distributed provokes it.
    assert public - set(RUNNABLE) == {"MissingDependencyError", "DistributedError"}


def test_every_code_of_the_plugin_has_an_entry_with_a_cure() -> None:
    defined = {one.code for one in vars(reporting).values() if isinstance(one, ErrorCode)}
    of_mypy = {"operator", "call-overload", "misc"}

    assert set(CODES) == defined - of_mypy
    assert [name for name, entry in CODES.items() if not (entry.cure and entry.program)] == []


def numberless(message: str) -> str:
    """Return a message without lines, numbers that count up while a process lives, and rounding."""
    return re.sub(r"\b(id |context |page\.py:)\d+|\d\.\d{5,}", r"\1...", message)


@pytest.mark.parametrize("name", RUNNABLE)
def test_the_snippet_raises_what_the_page_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    entry = CLASSES[name]
    with pytest.raises(TapeTensorError) as raised:
        exec(compile(entry.program, "page.py", "exec", dont_inherit=True), {"__name__": "page"})

    assert numberless(f"{type(raised.value).__name__}: {raised.value}") == numberless(entry.message)
    assert type(raised.value).__name__ == name
    assert raised.value.__notes__ == [f"cause and cure: python -m tapetensor explain {name}"]
    # As one process hands it to another.
    received = pickle.loads(pickle.dumps(raised.value))
    assert (type(received), str(received)) == (type(raised.value), str(raised.value))
    assert vars(received) == vars(raised.value)


def test_a_class_of_the_users_own_is_explained_as_what_it_is_derived_from() -> None:
    class OwnError(tt.ShapeError):
        pass

    assert OwnError("no").__notes__ == ["cause and cure: python -m tapetensor explain ShapeError"]
    assert not hasattr(TapeTensorError("something else"), "__notes__")


@pytest.mark.parametrize("name", CODES)
def test_mypy_with_the_plugin_says_what_the_page_says(name: str) -> None:
    (found,) = plugin_report()[catalogue_files()[name]].values()

    assert [f"error: {normalized(one)}" for one in found] == [CODES[name].message]
    assert CODES[name].message.endswith(f"[{name}]")


def test_mypy_says_once_in_a_run_how_errors_of_a_code_are_explained(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.py" for name in ("one", "other")]
    for file in files:
        file.write_text(
            f"{CODES['dtype-mismatch'].program}\nx @ w\nx @ w  # type: ignore[shape-mismatch]\n"
        )
    silent = tmp_path / "silent.py"
    silent.write_text(
        CODES["axis-range"].program.replace("axis=2)", "axis=2)  # type: ignore[axis-range]")
    )
    output = mypy(CONFIGURATION, library_cache(tmp_path), [silent, *files])
    notes = re.findall(r"note: (cause and cure: .*)", output)

    assert sorted(notes) == [
        f"cause and cure: python -m tapetensor explain {code}"
        for code in ("dtype-mismatch", "shape-mismatch")
    ]
    assert output.count("error:") == 4


def test_the_copy_in_the_package_is_the_page() -> None:
    root = Path(__file__).parents[1]
    page, copy = root / "docs" / "error_catalogue.md", root / "tapetensor" / "error_catalogue.md"

    assert copy.read_text() == page.read_text()
    assert not copy.is_symlink()


@pytest.mark.parametrize("name", [*CLASSES, *CODES])
def test_the_command_of_a_note_prints_the_entry(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", name]) == 0

    said = capsys.readouterr().out
    cure = {**CLASSES, **CODES}[name].cure.partition("\n#")[0].rstrip()
    # Of a link there are the words, and the command for its page.
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cure)
    assert said.startswith(f"{name}\n\n")
    assert re.sub(r" \(python -m tapetensor docs \w+\)", "", said).rstrip().endswith(words)
    assert "\n#" not in said
    assert "](" not in said
    # What is left without its links says something by itself.
    assert len(re.sub(r"\[[^\]]*\]\([^)]*\)", "", cure).split()) >= 6


def test_a_name_that_is_none_is_answered_with_all_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "[shape-mismatch]"]) == 0
    assert main(["explain", "tapetensor.errors.ShapeError"]) == 0
    capsys.readouterr()
    assert main(["explain", "segfault"]) == 1

    said = capsys.readouterr().err
    assert said.startswith("explain: segfault is none of ShapeError, ")
    assert said.endswith(", module-no-forward\n")


def test_a_name_that_is_nearly_one_is_answered_with_that_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "shape_mismatch"]) == 1

    assert capsys.readouterr().err == (
        "explain: there is no shape_mismatch; did you mean shape-mismatch?\n"
    )
    # A code of a checkout before the first release.
    assert main(["explain", "tape_moved"]) == 1
    assert capsys.readouterr().err.endswith("did you mean TapeClosedError or TapeUsedError?\n")


def test_the_list_of_entries_shows_words_without_links(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*CLASSES, *CODES]
    assert not any("](" in line for line in lines)


def test_a_cure_names_pages_by_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(["explain", "module-dims"])

    assert "All messages (python -m tapetensor docs plugin_modules)" in capsys.readouterr().out
