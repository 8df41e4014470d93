"""A gradient check for layers: by the input and by every parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapetensor import Tensor, from_numpy
from tapetensor.nn import Module

EPS = 1e-6


def check_layer(
    layer: Module,
    x: Tensor[Any, Any, np.float64],
    rng: np.random.Generator,
    forward: Callable[[Any], Any] | None = None,
    *,
    differences_of_plain: bool = False,
) -> None:
    """Compare all gradients of a float64 layer with central differences along random directions.

    Args:
        layer: its parameters are changed and put back.
        x: a plain input.
        rng: for directions and the cotangent.
        forward: what runs the layer; it must give the same result at every call.
        differences_of_plain: take differences of what it gives for plain inputs, which is faster
            where `forward` computes gradients; a module may give something else for those.
    """
    run: Any = forward or layer.forward  # type: ignore[attr-defined]  # every layer has one
    cotangent = from_numpy(rng.standard_normal(run(x.trace()).shape))
    grads = run(x.trace()).backward(cotangent)

    def total(value: Tensor[Any, Any, np.float64]) -> float:
        given: Any = value if differences_of_plain else value.trace()
        return float(np.sum(run(given).detach().numpy() * cotangent.numpy()))

    direction = rng.standard_normal(x.shape)
    ahead = total(from_numpy(x.numpy() + EPS * direction))
    behind = total(from_numpy(x.numpy() - EPS * direction))
    found = float(np.sum(grads[x].numpy() * direction))
    np.testing.assert_allclose(found, (ahead - behind) / (2 * EPS), rtol=1e-5, atol=1e-7)

    for name, parameter in layer.parameters().items():
        direction = rng.standard_normal(parameter.shape)
        owner, attribute = _owner(layer, name)
        totals = []
        for step in (EPS, -EPS):
            setattr(owner, attribute, from_numpy(parameter.numpy() + step * direction))
            totals.append(total(x))
        setattr(owner, attribute, parameter)
        found = float(np.sum(grads[parameter].numpy() * direction))
        wanted = (totals[0] - totals[1]) / (2 * EPS)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7, err_msg=name)


def _owner(layer: Any, name: str) -> tuple[Any, str]:
    """Return the module that holds a parameter, and the name of the field."""
    path, _, attribute = name.rpartition(".")
    return (layer.modules()[path] if path else layer), attribute
