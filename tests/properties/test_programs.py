"""Random programs: each gradient is that of the program on arrays, or is refused for a reason."""

from __future__ import annotations

import pytest

from tests.properties.programs import Derivative, Program, by_complex_steps


def run(seeds: range, derivative: Derivative) -> tuple[int, int]:
    """Run programs of up to sixty steps; return how many passes there were, and refusals."""
    passes = refused = 0
    for seed in seeds:
        program = Program(seed, derivative)
        program.run(int(program.rng.integers(5, 61)))
        passes += program.passes
        refused += program.refused
    return passes, refused


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_gradients_of_random_programs_are_those_by_complex_steps_or_refused(first: int) -> None:
    passes, refused = run(range(first, first + 50), by_complex_steps)
    assert 0 < refused < passes
