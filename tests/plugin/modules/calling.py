"""`model(x)` is typed as `forward`, whatever the module and wherever it is defined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, NewType, overload
from typing import Literal as L

import numpy as np
from typing_extensions import override

import tapetensor as tt
from tapetensor import NoneTape, OwnedTape, Tensor, Tensor1D, Tensor2D, nn
from tapetensor.typing import B, Ds, N, T
from tests.typing.check import assert_type, check

Batch = NewType("Batch", int)
rng = np.random.default_rng(0)


class Mlp(nn.Module):
    hidden: nn.Linear[L[6], L[4]]
    out: nn.Linear[L[4], L[2]]

    def forward(self, x: Tensor2D[B, L[6], T]) -> Tensor2D[B, L[2], T]:
        return self.out(self.hidden(x).relu())


class Inherits(Mlp):
    pass


class InheritsTwice(Inherits):
    pass


class Doubled(Inherits):
    @override
    def forward(self, x: Tensor2D[B, L[6], T]) -> Tensor2D[B, L[2], T]:
        return super().forward(x) * 2.0


class Block(nn.Module, Generic[N]):
    narrow: nn.Linear[N, L[3]]
    widen: nn.Linear[L[3], N]

    def forward(self, x: Tensor2D[B, N, T]) -> Tensor2D[B, N, T]:
        y = x.with_empty_tape()
        return x + self.widen(self.narrow(y).gelu())


class SixWide(Block[L[6]]):
    pass


class Loss(nn.Module):
    @overload
    def forward(self, x: Tensor2D[B, N, OwnedTape]) -> tt.Tensor0D[OwnedTape]: ...
    @overload
    def forward(self, x: Tensor2D[B, N, NoneTape]) -> Tensor1D[N]: ...
    def forward(self, x: Any) -> Any:
        return x.mean() if x.owns_tape else x.mean(axis=0)


class Two(nn.Module):
    def forward(self, x: Tensor1D[N, T], *, scale: float = 1.0) -> Tensor1D[N, T]:
        return x * scale


class Layer(nn.Module, ABC):
    @abstractmethod
    def forward(self, x: Tensor[tuple[*Ds], T]) -> Tensor[tuple[*Ds], T]: ...


class Identity(Layer):
    @override
    def forward(self, x: Tensor[tuple[*Ds], T]) -> Tensor[tuple[*Ds], T]:
        return x


class Halves:
    def forward(self, x: Tensor[tuple[*Ds], T]) -> Tensor[tuple[*Ds], T]:
        return x * 0.5


class FromMixin(Halves, Layer):
    pass


class OwnCall(nn.Module):
    def forward(self, x: Tensor1D[N]) -> Tensor1D[N]:
        return x

    def __call__(self, name: str) -> int:
        return len(name)


class OwnCallDerived(OwnCall):
    @override
    def forward(self, x: Tensor1D[N]) -> Tensor1D[N]:
        return x * 2.0


def _doubled(_: object, x: Tensor1D[N, T]) -> Tensor1D[N, T]:
    return x * 2.0


class Assigned(nn.Module):
    forward = _doubled


class Static(nn.Module):
    @staticmethod
    def forward(x: Tensor1D[N, T]) -> Tensor1D[N, T]:
        return x


class Field(nn.Module):
    forward: Callable[[Tensor1D[L[6]]], Tensor1D[L[6]]]


model = tt.build(Mlp, rng=rng)
images: Tensor2D[Batch, L[6]] = tt.ones((Batch(5), 6))
check(assert_type(model(images), Tensor2D[Batch, L[2]]), (5, 2))
check(assert_type(model(images.trace()), Tensor2D[Batch, L[2], OwnedTape]), (5, 2))
check(assert_type(model(x=images), Tensor2D[Batch, L[2]]), (5, 2))
check(assert_type(model.hidden(images), Tensor2D[Batch, L[4]]), (5, 4))
check(assert_type(tt.build(Inherits, rng=rng)(images), Tensor2D[Batch, L[2]]), (5, 2))
check(assert_type(tt.build(InheritsTwice, rng=rng)(images), Tensor2D[Batch, L[2]]), (5, 2))
check(assert_type(tt.build(Doubled, rng=rng)(images), Tensor2D[Batch, L[2]]), (5, 2))
check(assert_type(tt.build(Block[L[6]], rng=rng)(images), Tensor2D[Batch, L[6]]), (5, 6))
check(assert_type(tt.build(SixWide, rng=rng)(images), Tensor2D[Batch, L[6]]), (5, 6))
check(assert_type(Loss()(images.trace()), tt.Tensor0D[OwnedTape]), ())
check(assert_type(Loss()(images), Tensor1D[L[6]]), (6,))
check(assert_type(Two()(images[0], scale=2.0), Tensor1D[L[6]]), (6,))
check(assert_type(Identity()(images), Tensor2D[Batch, L[6]]), (5, 6))
check(assert_type(FromMixin()(images.trace()), Tensor2D[Batch, L[6], OwnedTape]), (5, 6))
check(assert_type(Assigned()(images[0]), Tensor1D[L[6]]), (6,))
check(assert_type(Static()(images[0].trace()), Tensor1D[L[6], OwnedTape]), (6,))
assert_type(OwnCall()("four"), int)
assert_type(OwnCallDerived()("four"), int)

# A module goes where a function is wanted.
as_function: Callable[[Tensor2D[Batch, L[6]]], Tensor2D[Batch, L[2]]] = model
check(as_function(images), (5, 2))


def inside_a_function() -> None:
    class Local(nn.Module):
        inner: nn.Linear[L[6], L[7]]

        def forward(self, x: Tensor2D[B, L[6], T]) -> Tensor2D[B, L[7], T]:
            return self.inner(x)

    class LocalChild(Local):
        pass

    check(assert_type(tt.build(Local, rng=rng)(images), Tensor2D[Batch, L[7]]), (5, 7))
    check(assert_type(tt.build(LocalChild, rng=rng)(images), Tensor2D[Batch, L[7]]), (5, 7))
    tt.build(LocalChild, rng=rng)(images[0])  # E: to "forward" of "Local" has incompatible type


def by_protocol(layer: Layer, x: Tensor2D[B, N]) -> Tensor2D[B, N]:
    return layer(x)


def wrong_calls(features: Tensor2D[Batch, L[5]]) -> None:
    model(features)  # E: Argument 1 to "forward" of "Mlp" has incompatible type
    model(images[0])  # E: Argument 1 to "forward" of "Mlp" has incompatible type
    model()  # E: Missing positional argument "x" in call to "forward" of "Mlp"
    model(images, images)  # E: Too many arguments for "forward" of "Mlp"
    tt.build(Block[L[6]], rng=rng)(features)  # E: to "forward" of "Block" has incompatible type
    tt.build(SixWide, rng=rng)(features)  # E: to "forward" of "Block" has incompatible type
    model(images).backward()  # E: Missing positional argument "write_trace_on_an_input_of_the_loss"
    OwnCall()(images)  # E: Argument 1 to "__call__" of "OwnCall" has incompatible type
    Layer()  # E: Cannot instantiate abstract class "Layer"
    taker: Callable[[Tensor1D[L[5]]], object] = model  # E: Incompatible types in assignment
    taker(features[0])


# Without forward: fine to define, to build and to hold, no more.
class Parts(nn.Module):
    encoder: nn.Linear[L[6], L[4]]
    decoder: nn.Linear[L[4], L[6]]

    def encode(self, x: Tensor2D[B, L[6], T]) -> Tensor2D[B, L[4], T]:
        return self.encoder(x)

    def forward_both(self, x: Tensor2D[B, L[6], T]) -> Tensor2D[B, L[6], T]:
        return self.decoder(self.encode(x))


class Base(nn.Module):
    def _forward(self, x: Tensor1D[N]) -> Tensor1D[N]:
        return x


def without_forward(parts: Parts, x: Tensor2D[B, L[6]]) -> None:
    parts.encode(x)
    parts(x)  # E: "Parts" not callable
    Field(forward=lambda y: y).forward(images[0])


class Misspelt(nn.Module):
    # E: "foward" is another name; rename it  [module-forward]
    def foward(self, x: Tensor1D[N]) -> Tensor1D[N]:
        return x


class Swapped(nn.Module):
    def forwrad(self, x: Tensor1D[N]) -> Tensor1D[N]:  # E: "forwrad" is another name
        return x


class Capital(nn.Module):
    def Forward(self, x: Tensor1D[N]) -> Tensor1D[N]:  # E: "Forward" is another name # noqa: N802
        return x


class Several(nn.Module):
    def forward1(self, x: Tensor1D[N]) -> Tensor1D[N]:
        return x

    def forwards(self, x: Tensor1D[N]) -> Tensor1D[N]:
        return x

    def backward(self, x: Tensor1D[N]) -> Tensor1D[N]:
        return x
