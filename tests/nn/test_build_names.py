"""`build`: where the names in annotations are looked up, and what inheritance makes of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Generic, TypeAlias, Union
from typing import Literal as L

import numpy as np
import pytest
from typing_extensions import TypeAliasType

import tapetensor as tt
from tapetensor import Tensor1D, nn
from tapetensor.errors import BuildError
from tapetensor.nn.typing import In, Out
from tapetensor.typing import N

Width: TypeAlias = L[6]
Wide: TypeAlias = nn.Linear[N, Width]
# Its parameters are in another order than in what it stands for.
Backwards = TypeAliasType("Backwards", nn.Linear[Out, In], type_params=(In, Out))


class Early(nn.Module):
    late: Late
    aliased: Wide[L[2]]
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
