"""Exporting a function, and running the file by onnxruntime."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import onnx

Array = np.ndarray[Any, np.dtype[Any]]

runtime: Any = pytest.importorskip("onnxruntime")


def example(name: str) -> Any:
    """Import an example, which is a program and no module of a package."""
    return importlib.import_module(f"examples.{name}")


def arrays_of(nest: Any) -> list[Array]:
    several = nest if isinstance(nest, tuple | list) else [nest]
    return [one.numpy() if isinstance(one, tt.Tensor) else np.asarray(one) for one in several]


class Session:
    """A file, as onnxruntime runs it, in this thread."""

    def __init__(self, path: Path) -> None:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self._session = runtime.InferenceSession(str(path), options)
        self.inputs = {one.name: one.shape for one in self._session.get_inputs()}
        self.outputs = {one.name: one.shape for one in self._session.get_outputs()}

    def run(self, *inputs: Any) -> list[Array]:
        given = dict(zip(self.inputs, arrays_of(inputs), strict=True))
        found: list[Array] = self._session.run(None, given)
        return found


def exported(path: Path, function: Callable[..., Any], *examples: Any, **options: Any) -> Session:
    onnx.export(path, function, *examples, **options)
    return Session(path)


def assert_same(found: list[Array], expected: Any) -> None:
    """Compare what onnxruntime gives with what the function does."""
    for one, other in zip(found, arrays_of(expected), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
