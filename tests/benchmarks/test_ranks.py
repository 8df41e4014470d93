"""The prediction for many ranks is what its formula says."""

from __future__ import annotations

import pytest

from benchmarks.ranks import BYTES, ROWS, Line, all_reduce_seconds, fitted, report


def test_a_line_is_found_again() -> None:
    line = Line(2e-5, 3e-10)

    found = fitted(BYTES, [line(size) for size in BYTES])

    assert found == pytest.approx(line)


def test_two_ranks_are_predicted_to_take_what_two_ranks_take() -> None:
    pair = Line(2e-5, 3e-10)

    assert all_reduce_seconds(pair, 2, 1000) == pytest.approx(pair(1000))
    # Three times the starts, and 7/4 of the bytes.
    assert all_reduce_seconds(pair, 8, 1000) == pytest.approx(3 * 2e-5 + 1.75 * 3e-7)


def test_the_report_shows_every_size() -> None:
    step, pair = Line(1e-3, 2e-5), Line(2e-5, 3e-10)
    steps, messages = [step(rows) for rows in ROWS], [pair(size) for size in BYTES]

    text = report({"messages": [], "steps": steps}, {"messages": messages, "steps": steps})

    assert "start 20 us, 3.33 GB/s" in text
    assert "1.00 ms and 20.0 us a row" in text
    assert len([line for line in text.splitlines() if line[:1] == " "]) >= len(BYTES) + len(ROWS)
