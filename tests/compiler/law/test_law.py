"""Every scenario gives what the function gives or is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tapetensor as tt
from tests.compiler.law.around import LAWFUL, PLANNED
from tests.compiler.law.attributes import LOOKED_UP, READ, SET
from tests.compiler.law.harness import verdict
from tests.compiler.law.programs import scenarios
from tests.compiler.law.state import KEPT, SEEN
from tests.compiler.law.surroundings import surroundings
from tests.compiler.law.tensors import TENSORS

LAW = {**scenarios(), **LAWFUL, **KEPT, **SET}
NEVER_REFUSED = {
    f"{subject}: {name}": text
    for subject, table in (
        ("around", PLANNED | SEEN),
        ("attributes", READ | LOOKED_UP),
        ("tensors that are set", TENSORS),
    )
    for name, text in table.items()
}

# What names something that is on no list.
OFF_THE_LIST = {
    "around: a date with a zone of the user's",
    "around: a lookup under another name",
    "around: attributes of a cached function",
    "around: functions by the class of an argument",
    "around: objects of all kinds that come out",
    "around: type as a value",
    "attributes: a descriptor that gives a dict",
    "attributes: a lookup of its own",
    "attributes: an error as text",
    "attributes: how many names a class has",
    "attributes: the state",
}


@pytest.mark.parametrize("name", LAW)
def test_a_scenario_gives_the_functions_own_answer_or_is_refused(name: str) -> None:
    found, why = verdict(LAW[name])
    assert found in ("same", "refused"), why


@pytest.mark.parametrize("name", NEVER_REFUSED)
def test_a_right_program_is_refused_only_for_what_is_on_no_list(name: str) -> None:
    found, why = verdict(NEVER_REFUSED[name])
    assert found == ("refused" if name in OFF_THE_LIST else "same"), why


@pytest.mark.parametrize("seed", range(200))
def test_what_changes_around_a_function_is_seen(seed: int) -> None:
    found, why = verdict(surroundings(seed))
    assert found in ("same", "refused"), why


def _repeats_its_first_answer(function: Callable[..., Any]) -> Callable[..., Any]:
    answers: list[Any] = []

    def repeated(*arguments: Any) -> Any:
        if not answers:
            answers.append(function(*arguments))
        return answers[0]

    return repeated


def _swallows(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *_: None


def _crashes(function: Callable[..., Any]) -> Callable[..., Any]:
    def crash(*_: Any) -> Any:
        raise RuntimeError("no")

    return crash


def _runs_twice(function: Callable[..., Any]) -> Callable[..., Any]:
    def twice(*arguments: Any) -> Any:
        function(*arguments)
        return function(*arguments)

    return twice


@pytest.mark.parametrize(
    ("compiler", "text", "expected"),
    [
        (_repeats_its_first_answer, "x.sum()", "STALE"),
        (_swallows, "x.sum()", "WRONG"),
        (_crashes, "x.sum()", "CRASH"),
        (_runs_twice, "S = []\ndef f(x, y):\n    S.append(1)\n    return x.sum()", "DAMAGE"),
    ],
)
def test_the_harness_sees_what_a_bad_compiler_does(
    monkeypatch: pytest.MonkeyPatch, compiler: Any, text: str, expected: str
) -> None:
    monkeypatch.setattr(tt, "compile", compiler)
    assert verdict(text)[0] == expected
