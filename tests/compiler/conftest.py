"""What holds for every test of the compiler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tapetensor.compiler.emit.plan import Plan


@pytest.fixture(autouse=True)
def _plans_answer_themselves(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """See that no function answers in place of its plan, which would hide a plan that is wrong."""
    made = Plan.__init__
    answered: list[Any] = []

    def watched(self: Plan, *args: Any, function: Any = None, **options: Any) -> None:
        def answer(*given: Any, **named: Any) -> Any:
            result = function(*given, **named)
            answered.append(function)
            return result

        made(self, *args, function=None if function is None else answer, **options)

    if request.path.name != "test_steps_that_raise.py":
        monkeypatch.setattr(Plan, "__init__", watched)
    yield
    assert not answered
