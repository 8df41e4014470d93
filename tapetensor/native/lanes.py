"""Vectors of numbers as values in loops: what LLVM finds by itself only in simpler ones."""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

# It stands at the top of a source that has such vectors.
IMPORTED = """\
from tapetensor.native.lanes import lanes

globals().update(vars(lanes()))


"""
# It writes the columns of a matrix as rows, which lie a width apart.
TURN = """
def turn(rows, columns, width):
    count, size = rows.shape
    lanes, flat = lane_count(rows), rows.reshape(-1)
    for begin in range(0, size, lanes):
        for first in range(0, count, lanes):
            if begin + lanes <= size and first + lanes <= count:
                turned(flat, first * size + begin, size, columns, begin * width + first, width)
            else:
                for row in range(first, min(first + lanes, count)):
                    for at in range(begin, min(begin + lanes, size)):
                        columns[at * width + row] = rows[row, at]


turn = compiled(turn)


"""
# A product and a sum are one instruction where there is one.
_FUSED = ("contract",)


@cache
def vector_bytes() -> int:
    """Return how long a vector of this processor is."""
    binding: Any = import_module("llvmlite.binding")
    features: dict[str, bool] = binding.get_host_cpu_features()
    widths = {"avx512f": 64, "avx": 32}
    return max([width for name, width in widths.items() if features.get(name)], default=16)


@cache
def lanes() -> SimpleNamespace:
    """Return functions on vectors of the elements of flat arrays.

    ``lane_count(array)`` is how many elements a vector has. ``loaded(array, at)`` are those that
    begin at a place, ``stored(array, at, vector)`` writes them, and ``repeated(array, at)`` has one
    element in all its lanes. ``with_product(total, lhs, rhs)`` is ``total + lhs * rhs``, and
    ``in_all(vector)`` the sum of what is in its lanes.

    ``turned(array, at, pitch, target, to, to_pitch)`` copies a square of as many rows as a vector
    has lanes, its columns as rows. ``copied(array, at, target, to)`` copies as many elements as a
    vector has, and ``picked`` as many of which each lies two behind the one before. There are such
    for a ``_half`` and for a ``_quarter`` of a vector.
    """
    ir: Any = import_module("llvmlite.ir")
    types: Any = import_module("numba.core.types")
    extending: Any = import_module("numba.extending")

    class Lanes(types.Type):  # type: ignore[misc]  # numba has no types
        """The type of vectors of an element's type."""

        def __init__(self, element: Any, divisor: int = 1) -> None:
            self.element = element
            self.count = max(1, vector_bytes() * 8 // element.bitwidth // divisor)
            super().__init__(name=f"Lanes({element}, {self.count})")

    def in_machine(kind: Any) -> Any:
        number = ir.FloatType() if kind.element.bitwidth == 32 else ir.DoubleType()
        return ir.VectorType(number, kind.count)

    class Model(extending.models.PrimitiveModel):  # type: ignore[misc]  # numba has no types
        """A vector is one value of LLVM's."""

        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, in_machine(kind))

    extending.register_model(Lanes)(Model)

    def place(context: Any, builder: Any, array: Any, value: Any, at: Any) -> Any:
        return builder.gep(context.make_array(array)(context, builder, value).data, [at])

    def vector_at(context: Any, builder: Any, kind: Any, *array: Any) -> Any:
        return builder.bitcast(place(context, builder, *array), in_machine(kind).as_pointer())

    def mask(order: list[int]) -> Any:
        return ir.Constant(ir.VectorType(ir.IntType(32), len(order)), order)

    def lane_count(context: Any, array: Any) -> Any:
        number = Lanes(array.dtype).count
        return types.int64(array), lambda *_: ir.Constant(ir.IntType(64), number)

    def loaded(context: Any, array: Any, at: Any) -> Any:
        kind = Lanes(array.dtype)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = vector_at(context, builder, kind, array, *args)
            return builder.load(pointer, align=array.dtype.bitwidth // 8)

        return kind(array, types.int64), generate

    def stored(context: Any, array: Any, at: Any, vector: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = vector_at(context, builder, vector, array, *args[:2])
            builder.store(args[2], pointer, align=array.dtype.bitwidth // 8)
            return context.get_dummy_value()

        return types.none(array, types.int64, vector), generate

    def repeated(context: Any, array: Any, at: Any) -> Any:
        kind = Lanes(array.dtype)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            one = builder.load(place(context, builder, array, *args))
            unknown = ir.Constant(in_machine(kind), ir.Undefined)
            first = builder.insert_element(unknown, one, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(first, unknown, mask([0] * kind.count))

        return kind(array, types.int64), generate

    def with_product(context: Any, total: Any, lhs: Any, rhs: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.fadd(args[0], builder.fmul(*args[1:], flags=_FUSED), flags=_FUSED)

        return total(total, lhs, rhs), generate

    def in_all(context: Any, vector: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            # Each half is added to the other.
            (values,), size = args, vector.count
            while size > 1:
                size //= 2
                halves = [
                    builder.shuffle_vector(values, values, mask([*half]))
                    for half in (range(size), range(size, 2 * size))
                ]
                values = builder.fadd(*halves)
            return builder.extract_element(values, ir.Constant(ir.IntType(32), 0))

        return vector.element(vector), generate

    def turned(
        context: Any, array: Any, at: Any, pitch: Any, target: Any, to: Any, to_pitch: Any
    ) -> Any:
        kind = Lanes(array.dtype)
        rows = range(kind.count)
        alignment = array.dtype.bitwidth // 8

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def begins(array: Any, value: Any, at: Any, pitch: Any) -> Any:
                for row in rows:
                    step = builder.mul(pitch, ir.Constant(pitch.type, row))
                    yield vector_at(context, builder, kind, array, value, builder.add(at, step))

            values = [builder.load(one, align=alignment) for one in begins(array, *args[:3])]
            # Blocks beside the diagonal change places, of one element, of 2 x 2, and so on.
            for bit in [1 << power for power in range(kind.count.bit_length() - 1)]:
                order = [
                    [j if bool(j & bit) == is_low else (j ^ bit) + kind.count for j in rows]
                    for is_low in (False, True)
                ]
                for low in [row for row in rows if not row & bit]:
                    pair = values[low], values[low | bit]
                    for row, sides, one in zip(
                        (low, low | bit), (pair, pair[::-1]), order, strict=True
                    ):
                        values[row] = builder.shuffle_vector(*sides, mask(one))
            for one, value in zip(begins(target, *args[3:]), values, strict=True):
                builder.store(value, one, align=alignment)
            return context.get_dummy_value()

        numbers = types.int64, types.int64
        return types.none(array, *numbers, target, *numbers), generate

    def copying(divisor: int, *, picks: bool) -> Any:
        def copy(context: Any, array: Any, at: Any, target: Any, to: Any) -> Any:
            kind, alignment = Lanes(array.dtype, divisor), array.dtype.bitwidth // 8
            size = kind.count

            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                pointer = partial(vector_at, context, builder, kind)
                value = builder.load(pointer(array, *args[:2]), align=alignment)
                if picks:
                    # No element is read behind the last that is picked.
                    further = builder.add(args[1], ir.Constant(args[1].type, size - 1))
                    second = builder.load(pointer(array, args[0], further), align=alignment)
                    order = [2 * j if 2 * j < size else 2 * j + 1 for j in range(size)]
                    value = builder.shuffle_vector(value, second, mask(order))
                builder.store(value, pointer(target, *args[2:]), align=alignment)
                return context.get_dummy_value()

            return types.none(array, types.int64, target, types.int64), generate

        return extending.intrinsic(copy)

    functions = (lane_count, loaded, stored, repeated, with_product, in_all, turned)
    found = {one.__name__: extending.intrinsic(one) for one in functions}
    for part, name in ((1, ""), (2, "_half"), (4, "_quarter")):
        found[f"copied{name}"] = copying(part, picks=False)
        found[f"picked{name}"] = copying(part, picks=True)
    return SimpleNamespace(**found)
