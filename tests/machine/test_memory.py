"""Freed memory stays in the process, unless the user has other wishes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tapetensor.machine import settings

PASSES = """
import resource
import numpy as np
import tapetensor
def run():
    tape = [np.ones((512, 512), np.float32) for _ in range(40)]
run()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    run()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(**environment: str) -> int:
    """Return the page faults of five passes that hold 40 MB each."""
    everything = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    everything = {**everything, settings.MEMORY_SETTING: "", **environment}
    command = [sys.executable, "-c", PASSES]
    output = subprocess.run(command, env=everything, capture_output=True, text=True, check=True)
    return int(output.stdout)


@pytest.mark.skipif(not settings._is_glibc(), reason="the allocator is not glibc's")
def test_the_next_pass_finds_the_memory_of_the_one_before() -> None:
    kept, given_back = faults(), faults(**{settings.MEMORY_SETTING: "system"})

    assert kept < 1000 < given_back


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MALLOC_TRIM_THRESHOLD_", "1000000"),
        ("MALLOC_ARENA_MAX", "1"),
        ("GLIBC_TUNABLES", "glibc.rtld.nns=4:glibc.malloc.trim_threshold=1000000"),
    ],
)
def test_settings_of_the_allocator_are_left_alone(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(settings.MEMORY_SETTING, raising=False)
    monkeypatch.setenv(variable, value)

    assert not settings.keep_freed_memory()


def test_the_user_may_leave_it_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.MEMORY_SETTING, "system")

    assert not settings.keep_freed_memory()


def test_another_allocator_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(settings.MEMORY_SETTING, raising=False)
    monkeypatch.setattr(settings, "_is_glibc", lambda: False)

    assert not settings.keep_freed_memory()
