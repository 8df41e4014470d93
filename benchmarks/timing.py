"""Interleaved timing: every contender once per round, medians over the rounds."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping


def interleaved_medians(
    contenders: Mapping[str, Callable[[], object]], rounds: int, warm_up: int = 3
) -> dict[str, float]:
    """Return the median seconds of one call of each contender.

    The contenders take turns, so that a slow moment of the machine hits all of them alike. The
    garbage collector runs as it does for a user.
    """
    for run in contenders.values():
        for _ in range(warm_up):
            run()
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    gc.collect()
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            samples[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in samples.items()}
