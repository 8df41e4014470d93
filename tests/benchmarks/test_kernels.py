"""A command runs under every kernel of OpenBLAS, and fails if it fails under one."""

from __future__ import annotations

import sys

import pytest

from benchmarks import kernels
from tapetensor.machine.doctor import loaded_blas
from tapetensor.machine.settings import KERNEL_VARIABLE

SHOW = f"import os, sys; sys.exit(os.environ['{KERNEL_VARIABLE}'] == 'Haswell')"


def test_names_of_one_kernel_ask_for_it_once() -> None:
    found = kernels.kernels_of_this_machine(("Haswell", "haswell", "Haswell"))

    if loaded_blas().kernel is None:
        assert found == {}
    else:
        assert list(found) == ["Haswell"]


def test_a_command_that_fails_under_one_kernel_fails(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for known, status in (({"Zen": "Zen", "Haswell": "Haswell"}, 1), ({"Zen": "Zen"}, 0), ({}, 0)):
        monkeypatch.setattr(kernels, "kernels_of_this_machine", known.copy)
        assert kernels.main([sys.executable, "-c", SHOW]) == status
        assert ("it fails under Haswell" in capfd.readouterr().out) == (status == 1)


def test_the_kernels_that_run_are_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernels, "kernels_of_this_machine", {"Prescott": "Katmai"}.copy)
    show = f"import os; print('under', os.environ['{KERNEL_VARIABLE}'])"

    kernels.main([sys.executable, "-c", show])

    output = capfd.readouterr().out
    assert "OpenBLAS: Prescott (Katmai)" in output
    assert "under Prescott" in output
