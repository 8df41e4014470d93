"""What a checkpoint read counts in its second run as it was, whatever was changed in between."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn, optim
from tests.checkpointing import trials
from tests.checkpointing.trials import VALUES, Scale, Trial, outcome, tensor


@dataclass(frozen=True, slots=True)
class Frozen:
    scale: Scale


class Slotted:
    __slots__ = ("__value", "also")

    def __init__(self, value: Any) -> None:
        self.__value = value

    def set(self, value: Any) -> None:
        self.__value = value

    def __call__(self, x: Any) -> Any:
        return x * self.__value


class Propertied:
    def __init__(self) -> None:
        self._value = 3.0

    @property
    def value(self) -> float:
        return self._value

    @cached_property
    def twice(self) -> float:
        return 2 * self._value


class OfClass:
    value: ClassVar[float] = 3.0

    def apply(self, x: Any) -> Any:
        return x * self.value


class Layer(nn.Module):
    weight: Any
    alpha: float = 1.0

    def forward(self, x: Any) -> Any:
        return (x * self.weight).tanh() * self.alpha


class Pair(NamedTuple):
    layer: Any
    scales: list[float]


def _module() -> Trial:
    layer = Layer(weight=tensor(1.0, 2.0, 3.0))
    return Trial(layer.forward, lambda: setattr(layer, "alpha", 5.0), (layer.weight,))


def _frozen() -> Trial:
    frozen = Frozen(Scale(3.0))
    return Trial(lambda x: x * frozen.scale.value, lambda: setattr(frozen.scale, "value", 0.0))


def _slots() -> Trial:
    slotted = Slotted(3.0)
    return Trial(slotted, lambda: slotted.set(4.0))


def _cached_property() -> Trial:
    one = Propertied()

    def change() -> None:
        one._value = 4.0
        del one.twice

    return Trial(lambda x: x * one.twice, change)


def _class_attribute() -> Trial:
    OfClass.value = 3.0
    return Trial(
        OfClass().apply, lambda: setattr(OfClass, "value", 4.0), state=lambda: OfClass.value
    )


_SCHEDULE = 3.0


def _scheduled(x: Any) -> Any:
    return x * _SCHEDULE


def _of_global() -> Trial:
    global _SCHEDULE
    _SCHEDULE = 3.0

    def change() -> None:
        global _SCHEDULE
        _SCHEDULE = 4.0

    return Trial(lambda x: _scheduled(x).exp(), change, state=lambda: _SCHEDULE)


def _of_module_attribute() -> Trial:
    trials.scale = 3.0
    return Trial(
        lambda x: x * trials.scale,
        lambda: setattr(trials, "scale", 4.0),
        state=lambda: trials.scale,
    )


def _of_another_files_global() -> Trial:
    trials.scale = 3.0
    return Trial(lambda x: trials.scaled(x), lambda: setattr(trials, "scale", 4.0))


def _of_nonlocal() -> Trial:
    scale = 3.0

    def change() -> None:
        nonlocal scale
        scale = 4.0

    return Trial(lambda x: x * scale, change, state=lambda: scale)


def _containers() -> Trial:
    pair = Pair(Layer(weight=tensor(1.0, 2.0, 3.0)), [3.0])
    row: deque[Any] = deque([{"pair": (pair,)}])

    def f(x: Any) -> Any:
        found = row[0]["pair"][0]
        return found.layer.forward(x) * found.scales[0] + len(pair.scales)

    return Trial(f, lambda: pair.scales.append(4.0), (pair.layer.weight,))


def _function_attribute() -> Trial:
    def f(x: Any) -> Any:
        return x * f.scale  # type: ignore[attr-defined]  # that is what is tried

    f.scale = 3.0  # type: ignore[attr-defined]  # that is what is tried
    return Trial(f, lambda: setattr(f, "scale", 4.0))


def _object_with_a_tensor() -> Trial:
    holder = Scale(tensor(1.0, 2.0, 3.0))
    weight = holder.value
    return Trial(
        lambda x: x * holder.value,
        lambda: setattr(holder, "value", tensor(4.0, 5.0, 6.0)),
        (weight,),
    )


def _numpy_array() -> Trial:
    mask = np.array([1.0, 0.0, 1.0])
    return Trial(lambda x: x * tt.from_numpy(mask), lambda: mask.fill(0.0), state=mask.tolist)


def _order_of_a_dict() -> Trial:
    table = OrderedDict(one=1.0, three=3.0)
    return Trial(
        lambda x: x * next(iter(table.values())),
        lambda: table.move_to_end("one"),
        state=lambda: list(table),
    )


class Counted:
    """A decorator that counts the calls."""

    def __init__(self, f: Any) -> None:
        self.f = f
        self.calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return self.f(x)


def _decorated() -> Trial:
    scale = Scale(3.0)
    counted = Counted(lambda x: x * scale.value)

    def change() -> None:
        scale.value = 4.0
        counted(tt.from_numpy(VALUES))

    return Trial(lambda x: counted(x) * float(counted.calls), change, state=lambda: counted.calls)


def _optimizer() -> Trial:
    layer = nn.Linear(3, 3, rng=np.random.default_rng(0), dtype=np.float64)
    adam = optim.Adam(layer, lr=0.1)

    def change() -> None:
        loss = layer.forward(tt.from_numpy(VALUES).trace()).square().sum()
        adam.step(loss.backward(wrt=layer))

    return Trial(layer.forward, change, (layer.weight,), lambda: layer.weight.numpy().tolist())


def _derivative_inside() -> Trial:
    scale, weight = Scale(3.0), tensor(1.0, 2.0, 3.0)

    def slope(x: Any) -> Any:
        return tt.grad(lambda v: (v * weight * scale.value).tanh().sum(), x)

    return Trial(slope, lambda: setattr(scale, "value", 4.0), (weight,))


@pytest.mark.parametrize(
    "made",
    [
        _derivative_inside,
        _module,
        _frozen,
        _slots,
        _cached_property,
        _class_attribute,
        _of_global,
        _of_module_attribute,
        _of_another_files_global,
        _of_nonlocal,
        _containers,
        _function_attribute,
        _object_with_a_tensor,
        _numpy_array,
        _order_of_a_dict,
        _decorated,
        _optimizer,
    ],
)
def test_what_was_changed_in_between_counts_as_it_was(made: Callable[[], Trial]) -> None:
    expected = outcome(made(), is_checkpointed=False)
    assert outcome(made(), is_checkpointed=True) == expected
