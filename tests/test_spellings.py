"""What is called otherwise in other libraries: the error says what it is called here."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest

import tapetensor as tt
from tapetensor.arguments.spellings import OF_LIBRARY, OF_TENSORS


@pytest.mark.parametrize("name", OF_TENSORS)
def test_an_attribute_that_tensors_have_elsewhere_is_named_with_a_spelling_that_runs(
    name: str,
) -> None:
    x = tt.ones((3, 4))

    with pytest.raises(AttributeError, match=f"no attribute '{name}'; write x.") as caught:
        getattr(x, name)
    assert name not in dir(x)

    code = re.split(", (?:with|which|and) ", str(caught.value).partition("; write ")[2])[0]
    indices = tt.from_numpy(np.zeros((3, 1), np.int64), (3, 1))
    eval(code, {"x": x, "np": np, "indices": indices})


@pytest.mark.parametrize("name", OF_LIBRARY)
def test_a_function_that_other_libraries_have_is_named_with_a_spelling_that_runs(name: str) -> None:
    x = tt.ones((3, 4))

    with pytest.raises(AttributeError, match=f"no attribute '{name}'; write tt.") as caught:
        getattr(tt, name)

    eval(str(caught.value).partition("; write ")[2], {"tt": tt, "x": x, "y": x, "np": np})


def test_any_other_attribute_is_missing_as_ever_and_tensors_are_copied() -> None:
    x = tt.ones((3, 4))

    with pytest.raises(AttributeError, match=r"^'Tensor' object has no attribute 'nothing'$"):
        x.nothing  # type: ignore[attr-defined]  # noqa: B018 - that is the mistake
    assert not hasattr(x, "__array_interface__")
    assert copy.copy(x).shape == pickle.loads(pickle.dumps(x)).shape == (3, 4)
