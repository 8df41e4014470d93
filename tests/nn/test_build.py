"""`build`: what it makes of annotations, and where the names in them are looked up."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Generic, TypeAlias, Union
from typing import Literal as L

import numpy as np
import pytest
from typing_extensions import TypeAliasType

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor0D, Tensor1D, Tensor2D, nn
from tapetensor.errors import BuildError
from tapetensor.nn.typing import In, Out, W
from tapetensor.typing import Add, B, Div, M, Mul, N, T
from tests.nn.test_module import Mlp


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


Width: TypeAlias = L[6]
ToWidth: TypeAlias = nn.Linear[N, Width]
# Its parameters are in another order than in what it stands for.
Backwards = TypeAliasType("Backwards", nn.Linear[Out, In], type_params=(In, Out))


class Early(nn.Module):
    late: Late
    aliased: ToWidth[L[2]]
    backwards: Backwards[L[3], L[4]]
    listed: list[Late] = nn.repeat(1)


class Late(nn.Module):
    linear: nn.Linear[Width, L[2]]


def test_a_class_can_be_defined_below_its_use(rng: np.random.Generator) -> None:
    model = tt.build(Early, rng=rng)

    assert model.late.linear.weight.shape == (2, 6)
    assert model.listed[0].linear.weight.shape == (2, 6)


def test_a_class_inside_a_function_sees_the_names_there(rng: np.random.Generator) -> None:
    Five: TypeAlias = L[5]

    class Part(nn.Module, Generic[N]):
        linear: nn.Linear[N, Five]

    class Whole(nn.Module):
        part: Part[Five]
        late: Late
        again: Union[Whole, None] = None  # noqa: UP007  # the other spelling of a union

        def __init__(self, part: Part[Five], late: Late) -> None:
            self.part, self.late = part, late

    part = tt.build(Part[Five], rng=rng)
    whole = Whole(part=part, late=tt.build(Late, rng=rng))

    assert part.linear.weight.shape == (5, 5)
    with pytest.raises(tt.ShapeError, match=r"part.linear.weight has shape \(5, 4\)"):
        setattr(whole, "part", tt.build(Part[L[4]], rng=rng))  # noqa: B010  # wrong on purpose


def test_a_subclass_may_declare_a_field_anew(rng: np.random.Generator) -> None:
    class First(nn.Module):
        eps: float = 1.0
        scale: Tensor1D[Any] = nn.parameter(nn.init.ones)
        act: nn.ReLU | None = None

    class Second(First):
        eps = 2.0
        scale: Tensor1D[L[3]]
        act: nn.ReLU = nn.options()  # type: ignore[mutable-override]  # narrower

    second = tt.build(Second, rng=rng)

    assert list(Second.fields_of_class) == ["eps", "scale", "act"]
    assert second.eps == 2.0
    assert second.scale.numpy().tolist() == [1.0, 1.0, 1.0]
    assert isinstance(second.act, nn.ReLU)


def test_fields_come_from_all_bases(rng: np.random.Generator) -> None:
    class HasNorm(nn.Module):
        norm: nn.LayerNorm[L[2]]

    class HasAct(nn.Module):
        act: nn.ReLU

    class Both(HasNorm, HasAct):
        drop: nn.Dropout

    assert set(tt.build(Both, rng=rng).modules()) == {"norm", "act", "drop"}


def test_a_name_that_is_nowhere_is_reported(rng: np.random.Generator) -> None:
    def make() -> type[nn.Module]:
        class Outer(nn.Module):
            inner: Inner

        class Inner(nn.Module):
            act: nn.ReLU

        return Outer

    message = r"build: Outer.inner: name 'Inner' is not defined; .* before the class"
    with pytest.raises(BuildError, match=message):
        tt.build(make(), rng=rng)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="new syntax")
@pytest.mark.parametrize("future", ["from __future__ import annotations\n", ""])
def test_the_type_parameter_syntax(future: str, rng: np.random.Generator) -> None:
    names: dict[str, Any] = {"__name__": "somewhere"}
    source = """
from typing import Literal as L
from tapetensor import nn, Tensor1D
type Square[K] = nn.Linear[K, K]
class Block[N: int](nn.Module):
    linear: Square[N]
    scale: Tensor1D[N] = nn.parameter(nn.init.ones)
class Model(nn.Module):
    block: Block[L[3]]
def local():
    type Local[K] = nn.Linear[K, L[2]]
    class Inner[N: int](nn.Module):
        linear: Local[N]
    return Inner[L[7]]
"""
    exec(future + source, names)

    assert tt.build(names["Model"], rng=rng).block.linear.weight.shape == (3, 3)
    assert tt.build(names["local"](), rng=rng).linear.weight.shape == (2, 7)


def test_fields_cannot_take_the_name_of_a_method() -> None:
    def make() -> None:
        class Bad(nn.Module):
            modules: list[nn.ReLU] = nn.repeat(2)  # type: ignore[assignment]  # on purpose

    message = "Bad.modules: every module has a modules of its own, call the field something else"
    _fails(make, message)


def test_a_declaration_without_annotation_is_reported() -> None:
    def make() -> None:
        class Bad(nn.Module):
            scale = nn.parameter(nn.init.ones)

    _fails(make, r"Bad.scale: annotate it \(scale: ... = nn.parameter\(...\)\)")


def _fails(make: Callable[[], None], message: str) -> None:
    with pytest.raises(BuildError, match=message):
        make()
