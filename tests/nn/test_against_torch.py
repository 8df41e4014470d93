"""Every layer that PyTorch has too: values and all gradients agree, where it is installed.

The weights are PyTorch's, by its own names; so are its gradients, which a second layer takes over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, nn

torch: Any = pytest.importorskip("torch")

from tests.nn.torch_pairs import PAIRS, Pair  # noqa: E402  # it imports PyTorch, too

OTHERS = {
    "Module": "is what the others are",
    "Dropout": "draws other random numbers",
    "DropoutOneIn": "draws other random numbers",
    "DiagonalSSM": "is compared in test_state_space_against_torch.py",
    "SelectiveSSM": "is compared in test_state_space_against_torch.py",
    "MambaBlock": "is compared in test_state_space_against_torch.py",
}

# What rounding may do, as a share of the value and of the largest one beside it.
ROUNDING = {np.float32: (1e-5, 5e-6), np.float64: (1e-12, 1e-13)}


def arrays_of(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one.detach().numpy().copy() for name, one in tensors.items()}


def results_of(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def assert_close(found: Any, wanted: Any, dtype: Any, name: str) -> None:
    """Compare arrays up to rounding, which grows with how much is added up."""
    relative, absolute = ROUNDING[dtype]
    assert found.shape == wanted.shape, name
    scale = np.abs(wanted).max(initial=1.0)
    np.testing.assert_allclose(found, wanted, rtol=relative, atol=absolute * scale, err_msg=name)


def test_every_layer_is_compared_or_has_a_reason_for_not_being() -> None:
    layers = {
        name
        for name, one in vars(nn).items()
        if isinstance(one, type) and issubclass(one, nn.Module)
    }

    assert layers == PAIRS.keys() | OTHERS.keys()
    assert not PAIRS.keys() & OTHERS.keys()


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(one, id=f"{n}-{i}")
        for n, several in PAIRS.items()
        for i, one in enumerate(several)
    ],
)
def test_values_gradients_and_statistics_are_those_of_torch(
    pair: Pair, dtype: Any, rng: np.random.Generator
) -> None:
    torch.manual_seed(1)
    theirs = pair.theirs().to(torch.float32 if dtype is np.float32 else torch.float64).train()
    # Smaller than 1, for a stack of layers makes more of the rounding of large values.
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    layer, gradients = pair.ours(dtype, rng), pair.ours(dtype, rng)
    io.load_state_dict(layer, arrays_of(theirs.state_dict()))
    arrays = [one if one.dtype.kind == "i" else one.astype(dtype) for one in pair.inputs(rng)]
    inputs = [tt.from_numpy(one) for one in arrays]
    torch_inputs = [torch.tensor(one, requires_grad=one.dtype.kind == "f") for one in arrays]

    results = results_of(pair.run_ours(layer, *[one.trace() for one in inputs]))
    wanted = results_of(pair.run_theirs(theirs, *torch_inputs))

    assert len(results) == len(wanted)
    loss: Any = tt.zeros((), dtype)
    torch_loss = torch.zeros(())
    for position, (result, other) in enumerate(zip(results, wanted, strict=True)):
        assert_close(result.detach().numpy(), other.detach().numpy(), dtype, f"result {position}")
        cotangent = rng.standard_normal(result.shape).astype(dtype)
        loss = (result * tt.from_numpy(cotangent)).sum() + loss
        torch_loss = torch_loss + (other * torch.tensor(cotangent)).sum()
    grads = loss.backward()
    torch_loss.backward()
    for position, (one, other) in enumerate(zip(inputs, torch_inputs, strict=True)):
        if other.requires_grad:
            assert_close(grads[one].numpy(), other.grad.numpy(), dtype, f"input {position}")
    state = arrays_of(theirs.state_dict())
    theirs_by_name = {name: one.grad for name, one in theirs.named_parameters()}
    io.load_state_dict(gradients, {**state, **arrays_of(theirs_by_name)})
    for name, expected in gradients.parameters().items():
        assert_close(grads[layer.parameters()[name]].numpy(), expected.numpy(), dtype, name)
    statistics = pair.ours(dtype, rng)
    io.load_state_dict(statistics, state)
    for name, expected in statistics.buffers().items():
        assert_close(layer.buffers()[name].numpy(), expected.numpy(), dtype, name)

    with torch.no_grad():
        inferred = results_of(pair.run_theirs(theirs.eval(), *torch_inputs))
    for result, other in zip(results_of(pair.run_ours(layer, *inputs)), inferred, strict=True):
        assert_close(result.numpy(), other.detach().numpy(), dtype, "in inference")
