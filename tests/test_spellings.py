"""What is called otherwise in other libraries: the error says what it is called here."""

from __future__ import annotations

import copy
import pickle
import re
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import data, io, losses, nn, optim
from tapetensor.arguments.spellings import OF_MODULES, OF_PACKAGES, OF_TENSORS

# What is called with the arguments of others, or done to a tensor as to one of theirs.
CALLS = {
    "tt.tensor([1.0])": "write tt.from_numpy([[1.0, 2.0]], (1, 2))",
    "tt.Tensor([1.0])": "write tt.from_numpy(values, shape=...)",
    "tt.zeros(2, 3)": "write (5, 3), say",
    "x.sum(dim=1)": "write axis",
    "x.mean(1, keepdim=True)": "write keepdims",
    "x.max(dim=1)": "write axis",
    "x.softmax(dim=1)": "write axis",
    "x.log_softmax(dim=1)": "write axis",
    "x.argmax(dim=1)": "write axis",
    "x.logsumexp(dim=1)": "write axis",
    "x.sort(dim=1)": "write axis",
    "x.var(unbiased=False)": "write correction",
    "x.std(ddof=1)": "write correction",
    "x.sum(dtype=np.float64)": "write astype(...) before or after it",
    "tt.concat((x, x), dim=0)": "write axis",
    "tt.stack((x, x), dim=0)": "write axis",
    "x.reshape(2, 6)": "write x.reshape((2, 6))",
    "x.permute_dims(1, 0)": "write x.permute_dims((1, 0))",
    "x.transpose(0, 1)": "write x.permute_dims((1, 0))",
    "x.size()": "the sizes are x.shape",
    "x.size(0)": "the sizes are x.shape",
    "np.exp(x)": "write x.exp() or np.exp(x.numpy()) for an array",
    "np.maximum(x, 0.0)": "write tt.maximum(x, y) or",
    "np.add(x, x)": "write x + y or",
    "bool(x > 0.0)": "ask for all() or any() of them, or choose by element with tt.where(mask, x, y)",
    "x.__setitem__(0, 1.0)": "write tt.where(mask, value, x)",
    "x + np.ones((3, 4))": "wrap numpy arrays and lists with tt.from_numpy(...)",
    "x.backward()": "trace an input first",
}
ATTRIBUTES = [
    *[("x", name) for name in OF_TENSORS],
    *[("model", name) for name in OF_MODULES],
    *[
        (package.replace("tapetensor", "tt", 1), name)
        for package, names in OF_PACKAGES.items()
        for name in names
    ],
]


def _names() -> dict[str, Any]:
    """Return what the cures speak of."""
    x: tt.Tensor2D[int, int] = tt.full((3, 4), 0.5)
    model = nn.Linear(4, 2, rng=np.random.default_rng(0))
    return {
        "tt": tt,
        "np": np,
        "nn": nn,
        "io": io,
        "data": data,
        "losses": losses,
        "optim": optim,
        "x": x,
        "y": x,
        "w": tt.ones((4, 2)),
        "model": model,
        "numpy": np,
        "cupy": np,
        "mask": x > 0.0,
        "values": tt.ones((3, 1)),
        "shares": x,
        "logits": x,
        "labels": tt.from_numpy(np.zeros(3, np.int64), (3,)),
        "indices": tt.from_numpy(np.zeros((3, 1), np.int64), (3, 1)),
        "positions": tt.from_numpy(np.array([0, 2]), (2,)),
        "loss": (model.forward(x.trace()) * 1.0).sum(),
        "f": lambda given: given.sum(),
        "step": lambda given: given,
        "loss_of": lambda: model.forward(x.trace()).sum(),
    }


def test_there_are_the_habits_that_users_of_pytorch_have() -> None:
    # So many were tried by those who had only installed the library.
    assert len(CALLS) + len(set(ATTRIBUTES)) > 66


@pytest.mark.parametrize(("owner", "name"), ATTRIBUTES, ids=lambda one: one)
def test_an_attribute_of_other_libraries_is_missing_with_a_line_that_runs_here(
    owner: str, name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = _names()
    monkeypatch.chdir(tmp_path)
    has = eval(owner, known)

    with pytest.raises(AttributeError, match=f"no attribute '{name}'; write ") as caught:
        getattr(has, name)
    assert not hasattr(has, name)
    assert name not in dir(has)

    cure = str(caught.value).partition("; write ")[2]
    line = re.split("(?:,|;) (?:with|which|for|where|or) ", cure)[0]
    io.save("model.npz", known["model"])
    exec(line, known)


@pytest.mark.parametrize("call", CALLS)
def test_a_call_as_in_other_libraries_is_an_error_with_the_cure(call: str) -> None:
    with pytest.raises(tt.TapeTensorError, match=re.escape(CALLS[call])):
        eval(call, _names())


def test_any_other_attribute_is_missing_as_ever_and_tensors_are_copied() -> None:
    x = tt.ones((3, 4))

    with pytest.raises(AttributeError, match=r"^'Tensor' object has no attribute 'nothing'$"):
        x.nothing  # type: ignore[attr-defined]  # noqa: B018 - that is the mistake
    with pytest.raises(
        AttributeError, match=r"^module 'tapetensor\.nn' has no attribute 'nothing'$"
    ):
        nn.nothing  # type: ignore[attr-defined]  # noqa: B018 - that is the mistake
    with pytest.raises(tt.ArgumentTypeError) as caught:
        x.sum(other=1)  # type: ignore[call-overload]  # that is the mistake
    assert str(caught.value) == "sum: there is no argument other"
    assert not hasattr(x, "__array_interface__")
    assert copy.copy(x).shape == pickle.loads(pickle.dumps(x)).shape == (3, 4)


def test_the_number_of_elements_is_a_number_to_everybody() -> None:
    size = tt.ones((3, 4)).size

    assert size == 12
    assert type(pickle.loads(pickle.dumps(size))) is int
    assert f"{size}" == "12"
    assert tt.compile(lambda x: x.sum() / x.size)(tt.ones((3, 4))).item() == 1.0


def test_a_module_may_have_fields_and_methods_of_these_names() -> None:
    class Net(nn.Module):
        train: nn.Linear[Any, Any]

        def eval(self) -> int:
            return 1

    net = Net(train=nn.Linear(4, 2, rng=np.random.default_rng(0)))

    assert net.eval() == 1
    assert list(net.parameters()) == ["train.weight", "train.bias"]
    assert {"train", "eval"} <= set(dir(net))
