"""A command runs under every kernel of OpenBLAS, and fails if it fails under one."""

from __future__ import annotations

import sys

import pytest

from benchmarks import kernels
from tapetensor.machine.blas import KERNEL_VARIABLE

SHOW = f"import os, sys; sys.exit(os.environ['{KERNEL_VARIABLE}'] == 'Haswell')"


def test_a_command_that_fails_under_one_kernel_fails(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for known, status in (({"Zen": "Zen", "Haswell": "Haswell"}, 1), ({"Zen": "Zen"}, 0), ({}, 0)):
        monkeypatch.setattr(kernels, "kernels_of_this_machine", known.copy)
        assert kernels.main([sys.executable, "-c", SHOW]) == status
        assert ("it fails under Haswell" in capfd.readouterr().out) == (status == 1)
