"""Random programs: each gradient is that of the program on arrays, or is refused for a reason."""

from __future__ import annotations

import pytest

from tests.properties.programs import Program


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_gradients_of_random_programs_are_those_by_complex_steps_or_refused(first: int) -> None:
    passes = refused = 0
    for seed in range(first, first + 50):
        program = Program(seed)
        program.run(int(program.rng.integers(5, 61)))
        passes += program.passes
        refused += program.refused

    assert 0 < refused < passes
