from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import compiler
from tapetensor.errors import ArgumentValueError, MissingDependencyError


def _double(x: Any) -> Any:
    return (x * 2 + 1) * x


def _plan(function: Any) -> str:
    function(tt.from_numpy(np.ones((4, 3), np.float32)))
    (plan,) = compiler.plans(function)
    return plan.explain()


def test_the_environment_chooses_for_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPETENSOR_BACKEND", "numba")

    assert "native group" in _plan(tt.compile(_double))
    assert "native group" not in _plan(tt.compile(_double, backend="numpy"))


def test_an_unknown_backend_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown: Any = "fortran"
    with pytest.raises(ArgumentValueError, match="numba"):
        tt.compile(_double, backend=unknown)

    monkeypatch.setenv("TAPETENSOR_BACKEND", "fortran")
    with pytest.raises(ArgumentValueError, match="TAPETENSOR_BACKEND"):
        tt.compile(_double)


def test_what_is_compiled_for_one_backend_is_not_compiled_for_another() -> None:
    native = tt.compile(_double, backend="numba")

    assert tt.compile(native) is native
    assert tt.compile(native, backend="numba") is native
    with pytest.raises(ArgumentValueError, match="compiled already, with backend='numba'"):
        tt.compile(native, backend="numpy")


def test_without_numba_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)

    with pytest.raises(MissingDependencyError, match=r"pip install 'tapetensor\[numba\]'"):
        tt.compile(_double, backend="numba")


def test_nothing_is_imported_that_is_not_chosen() -> None:
    program = (
        "import sys, numpy as np, tapetensor as tt\n"
        "tt.compile(lambda x: x * 2 + 1)(tt.from_numpy(np.ones((4, 3), np.float32)))\n"
        "assert not {'numba', 'llvmlite', 'tapetensor.native'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
