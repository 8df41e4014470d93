"""`build`: what it makes of annotations."""

from __future__ import annotations

from typing import Any, Generic
from typing import Literal as L

import numpy as np
import pytest
from typing_extensions import TypeVar, TypeVarTuple

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor0D, Tensor1D, Tensor2D, nn
from tapetensor.errors import BuildError
from tapetensor.nn.typing import W
from tapetensor.typing import Add, B, Div, M, Mul, N, T

Inner = TypeVar("Inner", bound=nn.Module)
Ds = TypeVarTuple("Ds")


class Mlp(nn.Module):
    hidden: nn.Linear[L[7], L[5]]
    out: nn.Linear[L[5], L[2]]

    def forward(self, x: Tensor2D[B, L[7], T]) -> Tensor2D[B, L[2], T]:
        return self.out.forward(self.hidden.forward(x).relu())


class Block(nn.Module, Generic[N]):
    narrow: nn.Linear[N, L[4]]
    widen: nn.Linear[L[4], N]

    def forward(self, x: Tensor2D[B, N, T]) -> Tensor2D[B, N, T]:
        return self.widen.forward(self.narrow.forward(x).relu())


class Tower(nn.Module, Generic[N, M]):
    first: Block[N]
    blocks: list[Block[N]] = nn.repeat(2)
    head: nn.Linear[N, M]


class Affine(nn.Module, Generic[N]):
    scale: Tensor1D[N] = nn.parameter(nn.init.ones)
    shift: Tensor[tuple[N], NoneTape, np.float64] = nn.parameter(nn.init.zeros)
    seen: Tensor2D[N, L[2]] = nn.buffer(nn.init.zeros)
    count: Tensor0D[NoneTape, np.int64] = nn.buffer(nn.init.zeros)


def shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tensor.shape for name, tensor in module.parameters().items()}


def test_dims_are_read_from_the_annotations(rng: np.random.Generator) -> None:
    model = tt.build(Mlp, rng=rng)

    assert shapes(model) == {
        "hidden.weight": (5, 7),
        "hidden.bias": (5,),
        "out.weight": (2, 5),
        "out.bias": (2,),
    }
    assert (model.hidden.in_features, model.hidden.out_features) == (7, 5)
    assert model.forward(tt.ones((3, 7))).shape == (3, 2)


def test_a_generic_module_gets_its_arguments(rng: np.random.Generator) -> None:
    block = tt.build(Block[L[6]], rng=rng)

    assert block.narrow.weight.shape == (4, 6)
    assert block.widen.weight.shape == (6, 4)


class Wide(nn.Module, Generic[M, N]):
    projection: nn.Linear[Mul[M, Add[N, L[1]]], Div[N, M]]

    def forward(self, x: Tensor2D[B, Any, T]) -> Tensor2D[B, Any, T]:
        return self.projection.forward(x)


def test_computed_dims_are_worked_out(rng: np.random.Generator) -> None:
    model = tt.build(Wide[L[2], L[6]], rng=rng)

    assert model.projection.weight.shape == (3, 14)


@pytest.mark.parametrize("missing", [Wide[L[0], L[6]], Wide[L[2], Any]])
def test_a_computed_dim_without_a_size_is_refused(
    missing: type[nn.Module], rng: np.random.Generator
) -> None:
    with pytest.raises(BuildError, match=r"projection: the dim Any has no size"):
        tt.build(missing, rng=rng)


def test_nested_generic_modules_and_lists_of_them_get_theirs(rng: np.random.Generator) -> None:
    tower = tt.build(Tower[L[6], L[3]], rng=rng)

    assert len(tower.blocks) == 2
    assert isinstance(tower.blocks, list)
    assert all(block.narrow.weight.shape == (4, 6) for block in (tower.first, *tower.blocks))
    assert tower.head.weight.shape == (3, 6)
    first, second = tower.blocks
    assert not np.array_equal(first.narrow.weight.numpy(), second.narrow.weight.numpy())


def test_tuples_and_tuples_of_any_length(rng: np.random.Generator) -> None:
    class Pair(nn.Module):
        both: tuple[nn.Linear[L[2], L[3]], nn.ReLU]
        many: tuple[nn.LayerNorm[L[3]], ...] = nn.repeat(3, eps=0.5)

    pair = tt.build(Pair, rng=rng)

    assert pair.both[0].weight.shape == (3, 2)
    assert isinstance(pair.both[1], nn.ReLU)
    assert isinstance(pair.many, tuple)
    assert [norm.eps for norm in pair.many] == [0.5, 0.5, 0.5]


def test_options_reach_the_constructor(rng: np.random.Generator) -> None:
    class Regularized(nn.Module):
        drop: nn.Dropout = nn.options(p=0.1)
        norms: list[nn.BatchNorm1d[L[3]]] = nn.repeat(2, momentum=0.5)
        inner: Mlp = nn.options(hidden=nn.Linear(7, 5, rng=np.random.default_rng(5)))

    first, second = (tt.build(Regularized, rng=rng) for _ in range(2))

    assert first.drop.p == 0.1
    assert first.drop.rng is rng
    assert [norm.momentum for norm in first.norms] == [0.5, 0.5]
    hidden, other = first.inner.hidden.weight, second.inner.hidden.weight
    assert np.array_equal(hidden.numpy(), other.numpy())
    assert hidden.id != other.id


def test_the_dtype_is_a_type_argument(rng: np.random.Generator) -> None:
    class Doubles(nn.Module, Generic[W]):
        linear: nn.Linear[L[3], L[2], np.float64]
        norm: nn.LayerNorm[L[2], W]
        scale: Tensor1D[L[2], NoneTape, W] = nn.parameter(nn.init.ones)

    float64s = tt.build(Doubles[np.float64], rng=rng)
    mixed = tt.build(Doubles, rng=rng)

    assert {np.dtype(np.float64)} == {one.dtype for one in float64s.parameters().values()}
    assert np.float64 == mixed.linear.weight.dtype
    assert np.float32 == mixed.norm.weight.dtype == mixed.scale.dtype


def test_tensors_are_made_by_their_initializers(rng: np.random.Generator) -> None:
    affine = tt.build(Affine[L[3]], rng=rng)

    assert affine.scale.numpy().tolist() == [1.0, 1.0, 1.0]
    assert np.float64 == affine.shift.dtype
    assert affine.seen.shape == (3, 2)
    assert affine.count.shape == ()
    assert list(affine.parameters()) == ["scale", "shift"]
    assert list(affine.buffers()) == ["seen", "count"]


def test_the_constructor_of_a_user_is_called_with_sizes(rng: np.random.Generator) -> None:
    class Head(nn.Module, Generic[N]):
        linear: nn.Linear[N, L[2]]

        def __init__(
            self,
            size: N,
            dtype: type[Any] = np.float64,
            *,
            rng: np.random.Generator,
            **settings: float,
        ) -> None:
            self.linear = nn.Linear(size, 2, rng=rng)
            self.dtype, self.settings = dtype, settings

    class Model(nn.Module):
        head: Head[L[3]] = nn.options(temperature=0.5)

    head = tt.build(Model, rng=rng).head

    assert head.linear.weight.shape == (2, 3)
    assert head.dtype is np.float64
    assert head.settings == {"temperature": 0.5}


def test_an_argument_that_cannot_be_read_may_have_a_default(rng: np.random.Generator) -> None:
    class Lenient(nn.Module):
        def __init__(self, log: Nowhere = 5) -> None:  # type: ignore[name-defined]  # noqa: F821
            self.log = log

    assert tt.build(Lenient, rng=rng).log == 5


@pytest.mark.parametrize("tape", [NoneTape, OwnedTape])
def test_a_call_is_forward(tape: type[Any], rng: np.random.Generator) -> None:
    model: Any = tt.build(Mlp, rng=rng)
    x: Tensor2D[L[3], L[7]] = tt.normal((3, 7), rng=rng)

    called, forwarded = model(x.retaped(tape)), model.forward(x.retaped(tape))

    assert np.array_equal(called.detach().numpy(), forwarded.detach().numpy())
    assert tape is called.tape_type
