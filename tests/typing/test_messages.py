"""The messages that a user meets, pinned by what they must say; `type: ignore` codes are coarse."""

from __future__ import annotations

import pytest

from tests.typing.checkers import mypy_report, snippet_files

MESSAGES = {
    "both shapes of an element-wise op": (
        1,
        ["operand types for +", "tuple[Literal[2], Literal[3]]", "tuple[Literal[4]]"],
    ),
    "both shapes of a matrix product": (2, ["operand types for @", "Literal[2], Literal[3]"]),
    "the op whose axis is out of range": (4, ['"sum"', 'matches argument type "int"']),
    "the two sizes where layers meet": (
        7,
        ['"forward" of "Linear"', "tuple[B, Literal[8]]", "tuple[B, Literal[9]]"],
    ),
    "that backward wants a tape": (9, ['"backward"', "write_trace_on_an_input_of_the_loss"]),
    "that backward wants a cotangent": (10, ['"backward"', '"cotangent"']),
    "that a second trace is one too many": (11, ['"trace"', "OwnedTape", "NoneTape"]),
    "that the result owns a tape": (15, ["expression has type", "OwnedTape", "NoneTape"]),
    "that a target is plain": (16, ["OwnedTape", "expected", "NoneTape"]),
    "that elements cannot be written": (20, ["indexed assignment", "Tensor[tuple[Literal[2]"]),
}


@pytest.mark.parametrize(("number", "words"), MESSAGES.values(), ids=MESSAGES)
def test_the_message_says(number: int, words: list[str]) -> None:
    report = mypy_report()[snippet_files()[number]]
    message = report[min(report)][0]

    assert [word for word in words if word not in message] == []
