"""The doctor tells what BLAS reaches, and the setting that it advises is applied when allowed."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tapetensor.__main__ import main as command_line
from tapetensor.machine import doctor, settings
from tapetensor.machine.settings import BLAS_SETTING, KERNEL_VARIABLE, Processor

AVX512 = frozenset({"avx2", "fma", "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"})
ZEN4 = Processor("AMD EPYC", "AuthenticAMD", AVX512)
XEON = Processor("Intel Xeon", "GenuineIntel", AVX512 | {"avx512_bf16"})
ZEN3 = Processor("AMD EPYC", "AuthenticAMD", frozenset({"avx2", "fma"}))
UNKNOWN = Processor("arm64", "", frozenset())
OPENBLAS = doctor.Blas("scipy-openblas 0.3", "Haswell", 2)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KERNEL_VARIABLE, raising=False)
    monkeypatch.delenv(BLAS_SETTING, raising=False)


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a fresh interpreter, in which numpy is not loaded yet."""
    command = [sys.executable, "-c", program]
    everything = {**os.environ, **environment}
    return subprocess.run(command, env=everything, capture_output=True, text=True, check=True)


SHOW = f"import os, tapetensor; print(os.environ.get('{KERNEL_VARIABLE}'))"


def test_a_processor_runs_the_kernels_whose_instructions_it_has() -> None:
    assert settings.runnable_kernels(ZEN4) == ["Haswell", "SkylakeX"]
    assert settings.runnable_kernels(XEON) == ["Haswell", "SkylakeX", "Cooperlake"]
    assert settings.runnable_kernels(ZEN3) == ["Haswell"]
    assert settings.runnable_kernels(UNKNOWN) == []


def test_only_an_amd_processor_with_avx_512_is_asked_for_another_kernel() -> None:
    assert settings.better_kernel(ZEN4) == "SkylakeX"
    assert [settings.better_kernel(other) for other in (XEON, ZEN3, UNKNOWN)] == [None, None, None]


def test_without_cpuinfo_nothing_is_assumed(tmp_path: Path) -> None:
    found = settings.processor(tmp_path / "missing")

    assert found.name
    assert settings.runnable_kernels(found) == []


@pytest.mark.parametrize(
    ("environment", "kernel"),
    [
        ({}, None),
        ({BLAS_SETTING: "auto"}, settings.better_kernel(settings.processor())),
        ({BLAS_SETTING: "auto", KERNEL_VARIABLE: "Haswell"}, "Haswell"),
    ],
)
def test_the_setting_asks_for_the_better_kernel_unless_the_user_has_asked_for_one(
    environment: dict[str, str], kernel: str | None
) -> None:
    assert run(SHOW, **environment).stdout.strip() == str(kernel)


def test_the_setting_takes_effect_in_the_loaded_library() -> None:
    kernel = settings.better_kernel(settings.processor())
    if kernel is None or doctor.loaded_blas().kernel is None:
        pytest.skip("OpenBLAS's own choice is right here")
    program = "import tapetensor.machine.doctor as d; print(d.loaded_blas().kernel)"

    assert run(program, **{BLAS_SETTING: "auto"}).stdout.strip() == kernel


def test_the_setting_warns_if_numpy_was_imported_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BLAS_SETTING, "auto")
    monkeypatch.setattr(settings, "processor", lambda: ZEN4)

    with pytest.warns(RuntimeWarning, match="export OPENBLAS_CORETYPE=SkylakeX"):
        settings.apply_blas_setting()
    assert KERNEL_VARIABLE not in os.environ


def test_a_setting_of_another_value_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BLAS_SETTING, "fast")

    with pytest.warns(RuntimeWarning, match='the one value is "auto"'):
        settings.apply_blas_setting()


def test_the_setting_is_silent_where_there_is_nothing_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(BLAS_SETTING, "auto")
    monkeypatch.setattr(settings, "processor", lambda: XEON)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        settings.apply_blas_setting()
    assert KERNEL_VARIABLE not in os.environ


def test_the_report_says_in_one_line_how_to_get_the_rest() -> None:
    text = doctor.report(ZEN4, OPENBLAS, 200.0, {"Haswell": 200.0, "SkylakeX": 400.0})

    assert "reached    200 GFLOP/s" in text
    assert "reachable  400 GFLOP/s (Haswell 200, SkylakeX 400)" in text
    assert text.splitlines()[-1] == (
        "advice     export OPENBLAS_CORETYPE=SkylakeX  # 2.0 times the speed; "
        "or TAPETENSOR_BLAS=auto, where tapetensor is imported before numpy"
    )


def test_the_report_advises_nothing_for_a_gain_within_the_noise() -> None:
    text = doctor.report(XEON, OPENBLAS, 200.0, {"Haswell": 200.0, "SkylakeX": 210.0})

    assert text.splitlines()[-1] == "advice     nothing to gain from another kernel"


def test_the_doctor_examines_this_machine() -> None:
    lines = doctor.examination(seconds=0, rounds=1).splitlines()

    said = "processor numpy BLAS kernel native reached reachable advice"
    assert [line.split()[0] for line in lines] == said.split()


def test_the_doctor_is_a_command_of_the_library(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "speeds", lambda *_: (200.0, {"Haswell": 200.0}))

    assert command_line(["doctor"]) == 0
    assert "advice     nothing to gain from another kernel" in capsys.readouterr().out
