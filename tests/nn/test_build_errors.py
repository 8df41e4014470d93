"""`build`: every refusal, with its message."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.errors import BuildError, TapeTensorError

PREAMBLE = """
from typing import Any, Generic, Literal as L, NewType, Optional
import numpy as np
import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor1D, Tensor2D, nn
from tapetensor.typing import B, M, N
Batch = NewType("Batch", int)
class Block(nn.Module, Generic[N]):
    linear: nn.Linear[N, L[4]]
class Bad(nn.Module):
    """

# The one field of a class `Bad`, and what build says.
FIELDS = [
    (
        "f: nn.Linear[Batch, L[2]]",
        "build: Bad.f: the dim Batch has no size; write Literal[64], say, "
        "or construct the module with ints",
    ),
    ("f: nn.Linear[N, L[2]]", "build: Bad.f: the dim N has no size"),
    ("f: nn.Linear[L[2, 3], L[2]]", "build: Bad.f: the dim Literal[2, 3] has no size"),
    ("f: nn.Linear[L[-1], L[2]]", "build: Bad.f: the dim Literal[-1] has no size"),
    ("f: Block[Batch]", "build: Bad.f.linear: the dim Batch has no size"),
    (
        "f: nn.Linear",
        "build: Bad.f: Linear[In, Out, W] needs a value for In; "
        "write Linear[Literal[64], Literal[64]], say",
    ),
    ("f: Block", "build: Bad.f: Block[N] needs a value for N; write Block[Literal[64]], say"),
    (
        "f: list[nn.ReLU]",
        "build: Bad.f is a list of unknown length; write f: list[...] = nn.repeat(3), say",
    ),
    ("f: list = nn.repeat(2)", "build: Bad.f.0 is annotated None, which is not a Module"),
    ("f: tuple[nn.ReLU, int]", "build: Bad.f.1 is annotated int, which is not a Module"),
    (
        "f: Tensor1D[L[3]]",
        "build: Bad.f is a tensor without first values; "
        "write f: Tensor... = nn.parameter(nn.init.zeros), say",
    ),
    (
        "f: Tensor[Any] = nn.parameter(nn.init.ones)",
        "build: Bad.f has the shape Any, which is open; "
        "write f: Tensor2D[Literal[3], Literal[4]], say",
    ),
    (
        "f: Tensor1D[L[3], OwnedTape] = nn.parameter(nn.init.ones)",
        "build: Bad.f is annotated with OwnedTape; a field holds a plain value (NoneTape), "
        "it is the input of a model that is traced",
    ),
    (
        "f: Tensor1D[L[3], NoneTape, np.int64] = nn.parameter(nn.init.ones)",
        "build: Bad.f has dtype int64, and only floats are trained; declare it with nn.buffer(...)",
    ),
    (
        "f: Tensor1D[L[3], NoneTape, Any] = nn.parameter(nn.init.ones)",
        "build: Bad.f has the dtype Any; write np.float32, say",
    ),
    (
        "f: Tensor1D[L[3], NoneTape, np.float16] = nn.buffer(nn.init.ones)",
        "build: Bad.f: a tensor cannot have dtype",
    ),
    (
        "f: Tensor1D[L[3]] = nn.parameter(lambda shape, dtype, rng: np.ones(2, dtype))",
        "build: Bad.f: the initializer made float32 of shape (2,), wanted is float32 of shape (3,)",
    ),
    (
        "f: Tensor1D[L[3]] = nn.parameter(lambda shape, dtype, rng: [1.0])",
        "build: Bad.f: the initializer made a list, wanted is float32 of shape (3,)",
    ),
    (
        "f: Tensor1D[L[3]] = nn.parameter(lambda shape: np.ones(shape))",
        "positional argument but 3 were given); it is called with shape, dtype and rng",
    ),
    (
        "f: Optional[nn.ReLU]",
        "build: Bad.f is annotated Optional[ReLU]; give it a default, or make it a module, "
        "a list or tuple of modules, or a tensor with nn.parameter(...)",
    ),
    ("f: int", "build: Bad.f is annotated int; give it a default"),
    (
        "f: nn.Dropout = nn.options(probability=0.1)",
        "build: Bad.f: Dropout has no arguments probability; they are p, rng",
    ),
    (
        "f: nn.ReLU = nn.repeat(2)",
        "build: Bad.f is annotated ReLU, for which nn.repeat(...) has no meaning; "
        "write nn.options(...), or nothing",
    ),
    (
        "f: Tensor1D[L[3]] = nn.options(p=1)",
        "for which nn.options(...) has no meaning; "
        "write nn.parameter(...) or nn.buffer(...), or nothing",
    ),
    (
        "f: list[nn.ReLU] = nn.options(p=1)",
        "build: Bad.f is annotated list[ReLU], for which nn.options(...) has no meaning; "
        "write nn.repeat(...), or nothing",
    ),
    (
        "f: 'Bad'",
        "build: Bad.f is annotated Bad, within which it stands, and so on without end; "
        "give it a default that ends it: Bad | None = None, say",
    ),
    ("f: 'nn.Sequential[nn.ReLU, Bad]'", "build: Bad.f.1 is annotated Bad, within which it stands"),
    ("f: 'nn.ResidualAdd[Bad]'", "build: Bad.f.layer is annotated Bad, within which it stands"),
    ("f: 'list[Bad]' = nn.repeat(2)", "build: Bad.f.0 is annotated Bad, within which it stands"),
]


@pytest.mark.parametrize(("field", "message"), FIELDS)
def test_a_field_that_cannot_be_built_is_named(
    field: str, message: str, rng: np.random.Generator
) -> None:
    names: dict[str, Any] = {"__name__": "somewhere"}
    exec(PREAMBLE + field, names)
    state = rng.bit_generator.state

    with pytest.raises(BuildError if "float16" not in field else TapeTensorError) as caught:
        tt.build(names["Bad"], rng=rng)

    assert message in str(caught.value)
    assert state == rng.bit_generator.state


# Errors of a layer's constructor, which know nothing of the model around it.
IN_LAYERS = [
    ("f: nn.Linear[L[0], L[2]]", "Linear: in_features must be > 0, got 0"),
    ("f: nn.Linear[L[2], L[2], np.int64]", "Linear: weights are float32 or float64, not int64"),
    ("f: nn.Dropout = nn.options(p=2.0)", "Dropout: p must be in [0, 1], got 2.0"),
    (
        "f: list[nn.LayerNorm[L[2]]] = nn.repeat(2, eps=-1.0)",
        "LayerNorm: eps must be >= 0",
    ),
    ("f: Block[L[2]] = nn.options(extra=1)", "Block: no such fields extra"),
]


@pytest.mark.parametrize(("field", "message"), IN_LAYERS)
def test_an_error_in_a_layer_says_where_it_was_built(
    field: str, message: str, rng: np.random.Generator
) -> None:
    names: dict[str, Any] = {"__name__": "somewhere"}
    exec(PREAMBLE + field, names)

    with pytest.raises(TapeTensorError, match=re.escape(message)) as caught:
        tt.build(names["Bad"], rng=rng)

    assert caught.value.__notes__[-1] in ("while building Bad.f", "while building Bad.f.0")


def test_a_constructor_argument_that_says_nothing_is_named(rng: np.random.Generator) -> None:
    class Head(nn.Module):
        def __init__(self, heads: int) -> None:
            self.heads = heads

    class Model(nn.Module):
        head: Head

    message = (
        "build: Model.head: the argument heads of Head cannot be read from the annotation; "
        "give it with nn.options(heads=...)"
    )
    with pytest.raises(BuildError, match=re.escape(message)):
        tt.build(Model, rng=rng)


@pytest.mark.parametrize(
    ("thing", "got"),
    [
        (int, "<class 'int'>"),
        (5, "5"),
        (None, "None"),
        (nn.ReLU(), "a ReLU object"),
        (list[nn.ReLU], "<class 'list'>"),
    ],
)
def test_only_module_classes_are_built(thing: Any, got: str, rng: np.random.Generator) -> None:
    message = f"build: expected a module class, build(Mlp, rng=rng), say; got {got}"
    with pytest.raises(BuildError, match=re.escape(message)):
        tt.build(thing, rng=rng)


@pytest.mark.parametrize("wrong", [0, None, np.random, np.random.RandomState(0)])
def test_build_wants_a_generator(wrong: Any) -> None:
    with pytest.raises(tt.ArgumentTypeError, match="build: rng must be a numpy Generator, got"):
        tt.build(nn.ReLU, rng=wrong)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: nn.repeat(0), "repeat: count must be > 0, got 0"),
        (lambda: nn.repeat(-1), "repeat: count must not be negative, got -1"),
        (lambda: nn.repeat(2.0), "repeat: count must be an int, got 2.0"),  # type: ignore[arg-type]  # on purpose
        (lambda: nn.parameter(3), "parameter: expected an initializer"),  # type: ignore[arg-type]  # on purpose
        (lambda: nn.buffer(None), "buffer: expected an initializer"),  # type: ignore[arg-type]  # on purpose
    ],
)
def test_a_wrong_declaration_is_refused_where_it_stands(declare: Any, message: str) -> None:
    with pytest.raises(TapeTensorError, match=re.escape(message)):
        declare()


@pytest.mark.parametrize("make", [nn.init.uniform, nn.init.normal, nn.init.constant])
def test_initializers_take_finite_numbers_of_any_kind_and_nothing_else(
    make: Any, rng: np.random.Generator
) -> None:
    values = make(np.float32(0.5))((3,), np.dtype(np.float64), rng)

    assert values.dtype == np.float64
    wrong: Any
    for wrong in (float("nan"), float("inf"), "0.5", True, None):
        with pytest.raises(TapeTensorError, match=rf"init\.{make.__name__}: .* got {wrong!r}"):
            make(wrong)
    with pytest.raises(TapeTensorError, match=r"init\.normal: std must be >= 0"):
        nn.init.normal(-1.0)
