"""Whose a module is."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from tapetensor.pictures.places import is_users_module


def test_a_package_of_the_users_that_is_called_as_one_of_pythons_is_the_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = types.ModuleType("antigravity")
    package.__path__ = [str(tmp_path / "antigravity")]
    monkeypatch.setitem(sys.modules, "antigravity", package)

    assert is_users_module("antigravity.model")
    assert not is_users_module("json.decoder")
