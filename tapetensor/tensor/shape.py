"""Shape ops: other axes, the same elements; and conversion to other dtypes and known shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Never, TypeAlias, overload

import numpy as np
from typing_extensions import TypeVar

from tapetensor.arguments import (
    as_int,
    as_shape,
    as_size,
    as_target_shape,
    broadcasts_to,
    normalize_axes,
    normalize_axis,
)
from tapetensor.arguments.spellings import no_such_argument, not_in_a_tuple
from tapetensor.arrays.array import as_dtype
from tapetensor.arrays.libraries import Library
from tapetensor.errors import ArgumentTypeError, ShapeError, refusal
from tapetensor.kernels import indexing
from tapetensor.kernels import shape as kernels
from tapetensor.rules import rearranging
from tapetensor.rules.broadcasting import broadcast_to
from tapetensor.rules.dims import sized
from tapetensor.tensor.apply import apply
from tapetensor.tensor.base import TensorBase, check_usable
from tapetensor.typing import B, D, Ds, K, M, N, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor


NewDType = TypeVar("NewDType", bound=np.generic)
NewShape = TypeVar("NewShape", bound=tuple[Any, ...])
Zero: TypeAlias = Literal[0]
One: TypeAlias = Literal[1]


class Shape(TensorBase[S, T, D]):
    """Other shapes, and conversion of the elements, or of what is known of the shape."""

    __slots__ = ()

    def reshape(self, shape: NewShape, *sizes: Never) -> Tensor[NewShape, T, D]:
        """Return the elements, in C order, under another shape.

        Shape: any with as many elements; one dim may be -1, which is worked out.
        Derivative: the cotangent under the old shape.

        Raises:
            ShapeError: if the elements do not fill `shape`.

        >>> import tapetensor as tt
        >>> tt.arange(4).reshape((2, 2))
        Tensor([[0, 1],
                [2, 3]], shape=(2, 2), dtype=int64, NoneTape)
        """
        if sizes:
            raise not_in_a_tuple("reshape", (shape, *sizes))
        target = as_target_shape("reshape", shape, self._array.size, self._array.shape)
        return apply(kernels.reshape, (self,), (target,))

    def flatten(self) -> Tensor[tuple[Any], T, D]:
        """Return the elements, in C order, along one axis.

        Shape: ``(...) -> (n,)``.
        Derivative: the cotangent under the old shape.

        >>> import tapetensor as tt
        >>> tt.ones((2, 2)).flatten()
        Tensor([1., 1., 1., 1.], shape=(4,), dtype=float32, NoneTape)
        """
        return apply(kernels.flatten, (self,), ((self._array.size,),))

    @overload
    def broadcast_to(self: Shape[tuple[()], T, D], shape: NewShape) -> Tensor[NewShape, T, D]: ...
    @overload
    def broadcast_to(
        self: Shape[tuple[One], T, D], shape: tuple[*Ds, N]
    ) -> Tensor[tuple[*Ds, N], T, D]: ...
    @overload
    def broadcast_to(
        self: Shape[tuple[N], T, D], shape: tuple[*Ds, N]
    ) -> Tensor[tuple[*Ds, N], T, D]: ...
    @overload
    def broadcast_to(
        self: Shape[tuple[One, One], T, D], shape: tuple[*Ds, M, N]
    ) -> Tensor[tuple[*Ds, M, N], T, D]: ...
    @overload
    def broadcast_to(
        self: Shape[tuple[One, N], T, D], shape: tuple[*Ds, M, N]
    ) -> Tensor[tuple[*Ds, M, N], T, D]: ...
    @overload
    def broadcast_to(
        self: Shape[tuple[M, One], T, D], shape: tuple[*Ds, M, N]
    ) -> Tensor[tuple[*Ds, M, N], T, D]: ...
    @overload
    def broadcast_to(
        self: Shape[tuple[M, N], T, D], shape: tuple[*Ds, M, N]
    ) -> Tensor[tuple[*Ds, M, N], T, D]: ...
    @overload
    def broadcast_to(
        self: Shape[tuple[*Ds, B, M, N], T, D], shape: NewShape
    ) -> Tensor[NewShape, T, D]: ...
    def broadcast_to(self, shape: tuple[Any, ...]) -> Tensor[Any, Any, Any]:
        """Return the elements repeated to a larger shape by numpy's rule.

        Shape: aligned at the last axis, each dim is kept or grows from 1; new axes come in front.
        Derivative: the cotangent summed over what was repeated.

        Raises:
            ShapeError: if `self` does not broadcast to `shape`.

        >>> import tapetensor as tt
        >>> tt.ones((1, 2)).broadcast_to((3, 2)).shape
        (3, 2)
        """
        target = as_shape("broadcast_to", shape)
        source = self._array.shape
        if not broadcasts_to(source, target):
            raise refusal(lambda: broadcast_to("broadcast_to", sized(source), sized(target)))
        return apply(kernels.broadcast_to, (self,), (target,))

    @overload
    def squeeze(self: Shape[tuple[One, *Ds], T, D], axis: Zero) -> Tensor[tuple[*Ds], T, D]: ...
    @overload
    def squeeze(
        self: Shape[tuple[*Ds, One], T, D], axis: Literal[-1]
    ) -> Tensor[tuple[*Ds], T, D]: ...
    @overload
    def squeeze(
        self: Shape[tuple[B, One, *Ds], T, D], axis: One
    ) -> Tensor[tuple[B, *Ds], T, D]: ...
    @overload
    def squeeze(
        self: Shape[tuple[B, M, One, *Ds], T, D], axis: Literal[2]
    ) -> Tensor[tuple[B, M, *Ds], T, D]: ...
    @overload
    def squeeze(
        self: Shape[tuple[*Ds, One, N], T, D], axis: Literal[-2]
    ) -> Tensor[tuple[*Ds, N], T, D]: ...
    @overload
    def squeeze(
        self: Shape[tuple[B, K, M, One, *Ds], T, D], axis: Literal[3]
    ) -> Tensor[tuple[B, K, M, *Ds], T, D]: ...
    @overload
    def squeeze(
        self: Shape[tuple[*Ds, One, M, N], T, D], axis: Literal[-3]
    ) -> Tensor[tuple[*Ds, M, N], T, D]: ...
    @overload
    def squeeze(self, axis: tuple[int, ...]) -> Tensor[Any, T, D]: ...
    def squeeze(self, axis: int | tuple[int, ...]) -> Tensor[Any, Any, Any]:
        """Return the shape without one axis, or several, of size 1.

        Shape: ``(*Ds, 1) -> (*Ds)`` for ``axis=-1``.
        Derivative: the cotangent under the old shape.

        Raises:
            AxisError: if there is no such axis.
            ShapeError: if its size is not 1.

        >>> import tapetensor as tt
        >>> tt.ones((2, 1)).squeeze(-1).shape
        (2,)
        """
        shape = self._array.shape
        if axis is None:
            raise ArgumentTypeError("squeeze: name the axis, an int or a tuple of ints, not None")
        dropped = normalize_axes("squeeze", axis, shape)
        if any(shape[one] != 1 for one in dropped):
            raise refusal(lambda: rearranging.squeeze("squeeze", sized(shape), dropped))
        rest = tuple([size for one, size in enumerate(shape) if one not in dropped])
        return apply(kernels.squeeze, (self,), (rest,))

    @overload
    def expand_dims(self: Shape[tuple[*Ds], T, D], axis: Zero) -> Tensor[tuple[One, *Ds], T, D]: ...
    @overload
    def expand_dims(
        self: Shape[tuple[*Ds], T, D], axis: Literal[-1]
    ) -> Tensor[tuple[*Ds, One], T, D]: ...
    @overload
    def expand_dims(
        self: Shape[tuple[B, *Ds], T, D], axis: One
    ) -> Tensor[tuple[B, One, *Ds], T, D]: ...
    @overload
    def expand_dims(
        self: Shape[tuple[B, M, *Ds], T, D], axis: Literal[2]
    ) -> Tensor[tuple[B, M, One, *Ds], T, D]: ...
    @overload
    def expand_dims(
        self: Shape[tuple[*Ds, N], T, D], axis: Literal[-2]
    ) -> Tensor[tuple[*Ds, One, N], T, D]: ...
    @overload
    def expand_dims(
        self: Shape[tuple[B, M, N, *Ds], T, D], axis: Literal[3]
    ) -> Tensor[tuple[B, M, N, One, *Ds], T, D]: ...
    @overload
    def expand_dims(
        self: Shape[tuple[*Ds, M, N], T, D], axis: Literal[-3]
    ) -> Tensor[tuple[*Ds, One, M, N], T, D]: ...
    def expand_dims(self, axis: int) -> Tensor[Any, Any, Any]:
        """Return the shape with a new axis of size 1.

        Shape: ``(*Ds) -> (*Ds, 1)`` for ``axis=-1``.
        Derivative: the cotangent under the old shape.

        Args:
            axis: where the new axis is in the result.

        Raises:
            AxisError: if the result has no such axis.

        >>> import tapetensor as tt
        >>> tt.ones((2,)).expand_dims(-1).shape
        (2, 1)
        """
        shape = self._array.shape
        position = normalize_axis("expand_dims", axis, shape, extra=1)
        return apply(kernels.expand_dims, (self,), ((*shape[:position], 1, *shape[position:]),))

    @overload
    def roll(
        self: Shape[tuple[*Ds, N], T, D], shift: int, axis: Literal[-1]
    ) -> Tensor[tuple[*Ds, N], T, D]: ...
    @overload
    def roll(
        self: Shape[tuple[N, *Ds], T, D], shift: int, axis: Zero
    ) -> Tensor[tuple[N, *Ds], T, D]: ...
    @overload
    def roll(
        self: Shape[tuple[B, N, *Ds], T, D], shift: int, axis: One
    ) -> Tensor[tuple[B, N, *Ds], T, D]: ...
    @overload
    def roll(
        self: Shape[tuple[B, M, N, *Ds], T, D], shift: int, axis: Literal[2]
    ) -> Tensor[tuple[B, M, N, *Ds], T, D]: ...
    @overload
    def roll(
        self: Shape[tuple[*Ds, M, N], T, D], shift: int, axis: Literal[-2]
    ) -> Tensor[tuple[*Ds, M, N], T, D]: ...
    @overload
    def roll(
        self: Shape[tuple[B, K, M, N, *Ds], T, D], shift: int, axis: Literal[3]
    ) -> Tensor[tuple[B, K, M, N, *Ds], T, D]: ...
    @overload
    def roll(
        self: Shape[tuple[*Ds, M, N, K], T, D], shift: int, axis: Literal[-3]
    ) -> Tensor[tuple[*Ds, M, N, K], T, D]: ...
    def roll(self, shift: int, axis: int) -> Tensor[Any, Any, Any]:
        """Return the elements moved along one axis; what leaves at one end enters at the other.

            result[(i + shift) % n] = x[i]

        Shape: that of `self`.
        Derivative: the cotangent moved back.

        Args:
            shift: by how many places; negative moves towards the front.
            axis: the axis to move along.

        Raises:
            AxisError: if there is no such axis.

        >>> import tapetensor as tt
        >>> tt.arange(4).roll(1, axis=0)
        Tensor([3, 0, 1, 2], shape=(4,), dtype=int64, NoneTape)
        """
        options = (as_int("roll", "shift", shift), normalize_axis("roll", axis, self._array.shape))
        return apply(kernels.roll, (self,), options)

    @overload
    def split(
        self: Shape[tuple[N, *Ds], T, D], sections: int | Sequence[int], axis: Zero = 0
    ) -> tuple[Tensor[tuple[Any, *Ds], T, D], ...]: ...
    @overload
    def split(
        self: Shape[tuple[*Ds, N], T, D], sections: int | Sequence[int], axis: Literal[-1]
    ) -> tuple[Tensor[tuple[*Ds, Any], T, D], ...]: ...
    @overload
    def split(
        self: Shape[tuple[B, N, *Ds], T, D], sections: int | Sequence[int], axis: One
    ) -> tuple[Tensor[tuple[B, Any, *Ds], T, D], ...]: ...
    @overload
    def split(
        self: Shape[tuple[B, M, N, *Ds], T, D], sections: int | Sequence[int], axis: Literal[2]
    ) -> tuple[Tensor[tuple[B, M, Any, *Ds], T, D], ...]: ...
    @overload
    def split(
        self: Shape[tuple[*Ds, M, N], T, D], sections: int | Sequence[int], axis: Literal[-2]
    ) -> tuple[Tensor[tuple[*Ds, Any, N], T, D], ...]: ...
    @overload
    def split(
        self: Shape[tuple[B, K, M, N, *Ds], T, D], sections: int | Sequence[int], axis: Literal[3]
    ) -> tuple[Tensor[tuple[B, K, M, Any, *Ds], T, D], ...]: ...
    @overload
    def split(
        self: Shape[tuple[*Ds, K, M, N], T, D], sections: int | Sequence[int], axis: Literal[-3]
    ) -> tuple[Tensor[tuple[*Ds, Any, M, N], T, D], ...]: ...
    def split(
        self, sections: int | Sequence[int], axis: int = 0, **elsewhere: Never
    ) -> tuple[Tensor[Any, Any, Any], ...]:
        """Return consecutive parts along one axis.

        Shape: ``(*Ds, N)`` along ``axis=-1`` gives parts ``(*Ds, n)`` with the ``n`` adding up.
        Derivative: each part's cotangent where the part was read, 0 elsewhere.

        Args:
            sections: a number of equal parts, or the sizes of the parts.
            axis: the axis to cut.

        Raises:
            AxisError: if there is no such axis.
            ShapeError: if the parts do not add up to the axis.

        >>> import tapetensor as tt
        >>> [part.shape for part in tt.ones((6, 2)).split([1, 5])]
        [(1, 2), (5, 2)]
        """
        if elsewhere:
            raise no_such_argument("split", elsewhere)
        check_usable("split", self)
        shape = self._array.shape
        position = normalize_axis("split", axis, shape)
        sizes = _section_sizes(sections, shape, position)
        parts = []
        start = 0
        for size in sizes:
            index = (slice(None),) * position + (slice(start, start + size),)
            parts.append(apply(indexing.getitem, (self,), (index,)))
            start += size
        return tuple(parts)

    @overload
    def astype(self, dtype: type[NewDType]) -> Tensor[S, T, NewDType]: ...
    @overload
    def astype(self, dtype: Literal["float32"]) -> Tensor[S, T, np.float32]: ...
    @overload
    def astype(self, dtype: Literal["float64"]) -> Tensor[S, T, np.float64]: ...
    @overload
    def astype(self, dtype: Literal["int64"]) -> Tensor[S, T, np.int64]: ...
    @overload
    def astype(self, dtype: Literal["bool"]) -> Tensor[S, T, np.bool_]: ...
    def astype(self, dtype: type[np.generic] | str) -> Tensor[Any, Any, Any]:
        """Return the elements converted to another dtype.

        Shape: that of `self`.
        Derivative: 1 between floating dtypes (the cotangent is converted back), none otherwise.

        Args:
            dtype: float32, float64, an integer dtype or bool; or the name of one.

        Raises:
            DTypeError: if a tensor cannot have that dtype.

        >>> import tapetensor as tt
        >>> tt.ones((2,)).astype(np.int64)
        Tensor([1, 1], shape=(2,), dtype=int64, NoneTape)
        """
        options: tuple[Any, ...] = (as_dtype("astype", dtype),)
        return apply(indexing.astype, (self,), options, keeps_dtype=False)

    def to(self, library: Library) -> Tensor[S, T, D]:
        """Return the same elements as an array of another library, ``x.to(cupy)``, or numpy's.

        Ops run where the arrays of their operands lie, and refuse operands of two libraries.

        Shape: that of `self`.
        Derivative: 1; the cotangent is moved back.

        Args:
            library: the module, numpy or cupy, say. Its `asarray` is called, so that CuPy's current
                device decides which one it is.

        Raises:
            ArgumentTypeError: if it is no such module, or its arrays do not follow numpy's dispatch
                protocols.
            DTypeError: if it changes the dtype.

        >>> import numpy
        >>> import tapetensor as tt
        >>> tt.ones((2,)).to(numpy)
        Tensor([1., 1.], shape=(2,), dtype=float32, NoneTape)
        """
        return apply(indexing.to, (self,), (library,))

    def realize(self: Shape[NewShape, T, D], shape: NewShape) -> Tensor[NewShape, T, D]:
        """Return the same elements with the shape that they have, now known to type checkers.

            x: Tensor2D[L[32], L[10]] = rows.realize((32, 10))

        Dims that were `Any` become those of `shape`, after a check of the sizes; dims that were
        known must agree, which type checkers see to. Nothing is rearranged, unlike `reshape`.

        Shape: `shape`, which must be that of `self`.
        Derivative: 1.

        Args:
            shape: the shape that is expected.

        Raises:
            ShapeError: if `self` has another shape.

        >>> import tapetensor as tt
        >>> tt.ones((2, 3)).flatten().realize((6,)).shape
        (6,)
        """
        expected, found = as_shape("realize", shape), self._array.shape
        if expected != found:
            raise ShapeError(f"realize: expected the shape {expected}, the tensor has {found}")
        return apply(kernels.realize, (self,))


def _section_sizes(sections: object, shape: tuple[int, ...], axis: int) -> list[int]:
    """Return the sizes of the parts, which add up to the axis."""
    whole = shape[axis]
    if isinstance(sections, Sequence) and not isinstance(sections, str):
        sizes = [as_size("split", "a section", size) for size in sections]
        rearranging.check_sections("split", sized(shape), axis, sizes)
        return sizes
    count = as_size("split", "sections", sections, low=1)
    if whole % count:
        raise refusal(lambda: rearranging.split("split", sized(shape), axis, count))
    return [whole // count] * count
