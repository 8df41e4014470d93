"""The recorder driven by hand: values in numbered slots, ops recorded on slots."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import index
from typing import Any, final, overload

import numpy as np
from typing_extensions import override

from tapetensor.arguments import as_int, as_number, as_size, check_choice, check_kind
from tapetensor.arrays.array import FLOATING, Array, as_array, is_array, read_only
from tapetensor.arrays.libraries import check_one_library
from tapetensor.arrays.stand_ins import run_check
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, DTypeError, ShapeError
from tapetensor.kernels import arithmetic, elementwise, flat, linear_algebra, normalization, scan
from tapetensor.pictures import notebook_cell, to_html, tree
from tapetensor.tape.graph import graph_of_slots
from tapetensor.tape.history import BackwardPass, Recording, op_name
from tapetensor.tape.pullbacks import Kernel, Pullback, checked_returned
from tapetensor.tape.replay import Unused, check_finite, check_unused, checked, replay


@final
class GradientTape:
    """Steps as a tensor's history has them, for those who record by hand.

    Values are numpy arrays in numbered slots. `alloc` puts an input into the next slot; a
    ``record_...`` method runs an op on slots, puts its result into the next slot and returns the
    number of that. `value` reads a slot, `backward` fills a list with one gradient per slot.
    Nothing is broadcast by ``record_add`` and ``record_mul``, and no dtype is promoted.

    A tape of this kind belongs to no context and can be replayed any number of times.

    >>> import numpy as np
    >>> import tapetensor as tt
    >>> tape = tt.GradientTape()
    >>> x = tape.alloc(np.array([1.0, 2.0]))
    >>> w = tape.alloc(np.array([3.0, -1.0]))
    >>> product = tape.record_mul(x, w)
    >>> total = tape.record_add(product, x)
    >>> tape.value(total)
    array([4., 0.])
    >>> gradients = tape.backward(np.ones(2))
    >>> gradients[x], gradients[w]
    (array([4., 0.]), array([1., 2.]))
    """

    __slots__ = ("_steps", "_values")

    def __init__(self) -> None:
        self._steps = Recording()
        self._values: list[Array] = []

    @override
    def __repr__(self) -> str:
        """Show how much was recorded."""
        return f"GradientTape({len(self._values)} slots, {len(self._steps)} ops)"

    def to_html(self) -> str:
        """Return an HTML page that draws the graph of what is recorded; it needs no network."""
        return to_html(graph_of_slots(self._steps, self._values))

    def tree(self, *, ascii: bool | None = None) -> str:
        """Return the graph of what is recorded as text, the latest op first.

        Args:
            ascii: whether to draw with plain characters; None means if the terminal needs it.
        """
        return tree(graph_of_slots(self._steps, self._values), ascii)

    def _repr_html_(self) -> str:
        """Return the picture for a notebook."""
        return notebook_cell(graph_of_slots(self._steps, self._values))

    def alloc(self, value: Array) -> int:
        """Put a copy of an input into the next slot and return the number of the slot.

        Raises:
            ArgumentTypeError: if `value` is not a numpy array.
            DTypeError: if it is not float32 or float64.
        """
        array = as_array("GradientTape.alloc", "the value", value)
        if array.dtype not in FLOATING:
            raise DTypeError(
                f"GradientTape.alloc: a value of dtype {array.dtype} has no gradient; "
                "convert it first with array.astype(np.float32)"
            )
        return self._append(array.copy())

    def value(self, slot: int) -> Array:
        """Return the value in a slot, as a read-only view.

        Raises:
            ArgumentTypeError: if `slot` is not an integer.
            ArgumentValueError: if there is no such slot.
        """
        return read_only(self._values[self._slot("value", slot)])

    def record_add(self, lhs: int, rhs: int) -> int:
        """Record ``lhs + rhs`` of two slots of one shape and return the slot of the result.

        Derivative: 1 for both.

        Raises:
            ShapeError: if the shapes differ.
            DTypeError: if the dtypes differ.
            ArgumentTypeError: if a slot is not an integer.
            ArgumentValueError: if there is no such slot.
        """
        self._check_same_shape("record_add", lhs, rhs)
        return self.record(arithmetic.add, (lhs, rhs))

    def record_mul(self, lhs: int, rhs: int) -> int:
        """Record ``lhs * rhs`` of two slots of one shape and return the slot of the result.

        Derivative: ``rhs`` for `lhs` and the reverse.

        It raises what `record_add` raises.
        """
        self._check_same_shape("record_mul", lhs, rhs)
        return self.record(arithmetic.multiply, (lhs, rhs))

    def record_matmul(
        self, lhs: int, rhs: int, shapes: tuple[tuple[int, int], tuple[int, int]] | None = None
    ) -> int:
        """Record ``lhs @ rhs`` and return the slot of the result.

        Shape: ``(M, K) @ (K, N) -> (M, N)``, with numpy's rules for vectors and for leading axes.
            With `shapes` all three are flat, row by row: ``(M * K,), (K * N,) -> (M * N,)``.
        Derivative: ``g @ rhs.T`` for `lhs`, ``lhs.T @ g`` for `rhs`.

        Args:
            lhs: the slot of the left matrix.
            rhs: the slot of the right one.
            shapes: ``((M, K), (K, N))``, the shapes of matrices that lie flat in their slots.

        Raises:
            ShapeError: if the contracted sizes differ, or slots are not flat or of another size
                than `shapes` say.
            DTypeError: if the dtypes differ.
            ArgumentTypeError: if a slot is not an integer, or `shapes` are no pairs of ints.
            ArgumentValueError: if there is no such slot.

        >>> import numpy as np
        >>> import tapetensor as tt
        >>> tape = tt.GradientTape()
        >>> a, b = tape.alloc(np.arange(6.0)), tape.alloc(np.ones(3))
        >>> tape.value(tape.record_matmul(a, b, shapes=((2, 3), (3, 1))))
        array([ 3., 12.])
        """
        if shapes is None:
            return self.record(linear_algebra.matmul, (lhs, rhs))
        op = "GradientTape.record_matmul"
        if not (isinstance(shapes, tuple) and [*map(np.shape, shapes)] == [(2,), (2,)]):
            raise ArgumentTypeError(
                f"{op}: shapes must be the two pairs ((M, K), (K, N)), got {shapes!r}"
            )
        sizes = [tuple([as_size(op, "a size", one) for one in pair]) for pair in shapes]
        for slot, (rows, columns) in zip((lhs, rhs), sizes, strict=True):
            held = self._values[self._slot("record_matmul", slot)].shape
            if held != (rows * columns,):
                raise ShapeError(
                    f"{op}: slot {slot} has shape {held}; a flat matrix of shape "
                    f"{(rows, columns)} has {(rows * columns,)}"
                )
        if sizes[0][1] != sizes[1][0]:
            raise ShapeError(f"{op}: inner sizes differ: {sizes[0]} @ {sizes[1]}")
        return self.record(flat.matmul, (lhs, rhs), *sizes)

    def record_silu(self, x: int) -> int:
        """Record ``x * sigmoid(x)`` and return the slot of the result.

        Derivative: ``sigmoid(x) * (1 + x * (1 - sigmoid(x)))``.
        """
        return self.record(elementwise.silu, (x,))

    def record_layer_norm(self, x: int, scale: int, bias: int, eps: float = 1e-5) -> int:
        """Record the normalization of the last axis and return the slot of the result.

            (x - mean(x)) / sqrt(var(x) + eps) * scale + bias

        Shape: `x` has any, ending in the size of `scale` and `bias`, which have one axis.
        Derivative: with ``xhat`` the normalized `x` and ``s = g * scale``,
            ``(s - mean(s) - xhat * mean(s * xhat)) / sqrt(var(x) + eps)`` for `x`;
            ``sum(g * xhat)`` for `scale` and ``sum(g)`` for `bias`, over all axes but the last.

        Raises the same as `record_add`, and of `eps` ArgumentTypeError if it is no number and
        ArgumentValueError if it is not finite and >= 0.
        """
        slots = [self._slot("record_layer_norm", slot) for slot in (x, scale, bias)]
        shapes = [self._values[slot].shape for slot in slots]
        if not shapes[0] or shapes[1] != shapes[0][-1:] or shapes[2] != shapes[0][-1:]:
            raise ShapeError(
                f"GradientTape.record_layer_norm: x of shape {shapes[0]} wants scale and bias of "
                f"the shape of its last axis, got {shapes[1]} and {shapes[2]}"
            )
        number = as_number("GradientTape.record_layer_norm", "eps", eps, at_least=0)
        return self.record(normalization.layer_norm, slots, number)

    def record_ssm_scan(self, x: int, a: int, b: int) -> int:
        """Record a linear recurrence along a sequence and return the slot of the result.

            h[t] = a[t] * h[t - 1] + b[t] * x[t],  from h[-1] = 0

        Shape: `x` is ``(length,)``, or ``(..., length, channels)`` with the steps along the last
            axis but one; `a` and `b` have the shape of `x`.
        Derivative: with ``G[t] = g[t] + a[t + 1] G[t + 1]``, it is ``b G`` for `x`,
            ``G[t] h[t - 1]`` for `a` and ``x G`` for `b`.

        It raises what `record_add` raises.
        """
        self._check_same_shape("record_ssm_scan", x, a)
        self._check_same_shape("record_ssm_scan", x, b)
        is_vector = self._values[index(x)].ndim == 1
        return self.record(flat.ssm_scan if is_vector else scan.ssm_scan, (x, a, b))

    def record(self, kernel: Kernel, slots: Sequence[int], *options: object) -> int:
        """Run any kernel on slots, record it and return the slot of the result.

        Args:
            kernel: the values of the slots and `options` in; the output, and a tuple of one
                pullback per slot, out. A pullback takes the cotangent of the output and returns
                that of one operand; None stands for an operand that no gradient flows to. A kernel
                writes to no operand and never again to its output, and a pullback not to its
                argument.
            slots: the operands.
            options: further arguments of the kernel.

        Raises:
            ArgumentTypeError: if `kernel` is not callable, `slots` are no integers in a sequence,
                or the kernel returns something else.
            ArgumentValueError: if there is no such slot, or the kernel writes to an operand.
            DTypeError: if the dtypes of the operands differ, or the result has another.
            ShapeError: if the kernel does not accept the shapes.

        >>> import numpy as np
        >>> import tapetensor as tt
        >>> def cube(x):
        ...     return x**3, (lambda g: 3 * g * x**2,)
        >>> tape = tt.GradientTape()
        >>> x = tape.alloc(np.array([2.0]))
        >>> _ = tape.record(cube, (x,))
        >>> tape.backward(np.ones(1))[x]
        array([12.])
        """
        if not callable(kernel) or not isinstance(slots, Sequence):
            raise ArgumentTypeError(
                "GradientTape.record: expected a kernel and its slots in a tuple, "
                f"got {type(kernel).__name__} and {type(slots).__name__}"
            )
        name = op_name(kernel)
        parents = tuple([self._slot("record", slot) for slot in slots])
        values = [read_only(self._values[slot]) for slot in parents]
        if not values:
            raise ArgumentValueError(f"GradientTape.record: give {name!r} at least one slot")
        dtypes = [str(value.dtype) for value in values]
        if len(set(dtypes)) > 1:
            raise DTypeError(
                f"GradientTape.record: {name!r}: dtypes differ: {' and '.join(dtypes)}; "
                "convert the value before alloc(), nothing is promoted"
            )
        try:
            returned = kernel(*values, *options)
        except (ValueError, IndexError) as error:
            if "read-only" in str(error):
                raise ArgumentValueError(
                    f"GradientTape.record: {name!r} writes to a value that it was given ({error}); "
                    "write y = x * 2, not x *= 2"
                ) from error
            shapes = " and ".join([str(value.shape) for value in values])
            raise ShapeError(
                f"GradientTape.record: {name!r}: slots {', '.join(map(str, parents))} of shapes "
                f"{shapes} do not fit; {error}"
            ) from error
        except TypeError:
            check_one_library(f"GradientTape.record: {name!r}", values)
            raise
        output, pullbacks = checked_returned(name, returned, len(parents))
        result = as_array("GradientTape.record", f"the output of {name!r}", output)
        # A copy of each, for a pullback may fill a buffer again that it has returned before.
        pullbacks = tuple([pullback and partial(_copied, pullback) for pullback in pullbacks])
        if result.dtype != values[0].dtype:
            raise DTypeError(f"GradientTape.record: {name!r} made {result.dtype} of {dtypes[0]}")
        slot = self._append(result)
        self._steps.append([slot, kernel, pullbacks, parents, None, 0])
        return slot

    @overload
    def backward(
        self,
        loss_grad: Array,
        tensors: list[Array],
        *,
        output: int | None = None,
        unused: Unused = "ignore",
    ) -> list[Array]: ...
    @overload
    def backward(
        self,
        loss_grad: Array,
        tensors: list[Array | None] | None = None,
        *,
        output: int | None = None,
        unused: Unused = "ignore",
    ) -> list[Array | None]: ...
    @overload
    def backward(
        self,
        loss_grad: Array,
        *,
        out: list[Array],
        output: int | None = None,
        unused: Unused = "ignore",
    ) -> list[Array]: ...
    def backward(
        self,
        loss_grad: Array,
        tensors: Any = None,
        *,
        out: Any = None,
        output: int | None = None,
        unused: Unused = "ignore",
    ) -> Any:
        """Replay the tape from one of its slots and add the gradient of every slot to `tensors`.

        The tape stays as it is. No array is written to, for entries of `tensors` are replaced by
        sums, but for those of `out`, which are added to in place. If anything is wrong both are
        left alone.

        Args:
            loss_grad: the cotangent of the slot that the pass starts from.
            tensors: one gradient per slot so far, None where there is none yet; it is lengthened by
                None as needed. What it has beyond the slots stays as it is. Without it a new list
                is made.
            out: arrays of one's own, one per slot or more, which the gradients are added to, in
                place of `tensors`: ``[np.zeros(3), np.zeros(3)]``. No two share memory.
            output: the slot to start from. Without it the only result that no op uses; on a tape
                without an op, the last input.
            unused: "error" to refuse recorded ops that do not lead to the slot.

        Returns:
            `tensors`, or `out`. None is the entry of a slot that no gradient has reached.

        Raises:
            NumericalInstabilityError: if any gradient holds a NaN or an infinity; it names the op
                that the gradient comes from and the slot.
            ShapeError: if `loss_grad`, an entry of `tensors`, or what a pullback returns has
                another shape than the slot that it belongs to.
            DTypeError: the same for dtypes.
            ArgumentTypeError: if `loss_grad` or an entry is not an array, `tensors` or `out` not a
                list, both are given, or `output` is not an integer.
            ArgumentValueError: if `out` has fewer entries than there are slots, or arrays that
                share memory or cannot be written to, there is no slot `output`, it is left out and
                several results are used by no op, or `unused` is another word.
            MissingGradientError: if ops do not lead to the slot and `unused` is "error".
        """
        if out is not None:
            self._check_buffers(tensors, out)
            tensors = out
        earlier = self._checked_entries([] if tensors is None else tensors)
        if output is None and not self._values:
            return [] if tensors is None else tensors
        last = self._steps[-1][0] if self._steps else len(self._values) - 1
        start = last if output is None else self._slot("backward", output)
        check_choice("GradientTape.backward", "unused", unused, ("ignore", "error"))
        if unused == "error":
            check_unused("GradientTape.backward", self._steps, start)
        if output is None:
            self._check_only_result()
        seed = as_array("GradientTape.backward", "loss_grad", loss_grad)
        self._check_gradient("loss_grad", start, seed)
        check_one_library("GradientTape.backward", (self._values[start], seed))
        # The replay uses steps up, and gets copies. So it does of the seed, by whose identity
        # pullbacks know again what they have computed.
        steps = checked(self._steps, self._check_gradient)
        found = replay(steps, {start: seed.copy()}, BackwardPass(), [], keeps_all=True)
        for slot, gradient in found.items():
            before = earlier[slot]
            # A copy, because one array may be the gradient of several slots, or the caller's.
            total = gradient.copy() if before is None else before + gradient
            self._check_gradient("the sum of gradients", slot, total)
            earlier[slot] = total
        if tensors is None:
            return earlier
        if out is None:
            tensors[:] = earlier
            return tensors
        for slot in found:
            out[slot][...] = earlier[slot]
        return out

    def _append(self, value: Array) -> int:
        self._values.append(value)
        return len(self._values) - 1

    def _slot(self, op: str, slot: object) -> int:
        number = as_int(f"GradientTape.{op}", "a slot of alloc() or a record method", slot)
        if not 0 <= number < len(self._values):
            raise ArgumentValueError(
                f"GradientTape.{op}: there is no slot {number}, the tape has {len(self._values)}; "
                "put the value into one with alloc(value)"
            )
        return number

    def _check_only_result(self) -> None:
        """Raise ArgumentValueError if no op uses several results: the last may not be meant."""
        used = {parent for step in self._steps for parent in step[3]}
        results = {step[0]: step[1] for step in self._steps if step[0] not in used}
        if len(results) > 1:
            slots = [f"{slot} ({op_name(kernel)})" for slot, kernel in results.items()]
            raise ArgumentValueError(
                f"GradientTape.backward: no op uses slots {', '.join(slots)}; say which of them to "
                f"start from: backward(loss_grad, output={max(results)})"
            )

    def _check_same_shape(self, op: str, lhs: int, rhs: int) -> None:
        one, other = (self._values[self._slot(op, slot)].shape for slot in (lhs, rhs))
        if one != other:
            raise ShapeError(
                f"GradientTape.{op}: slots {lhs} and {rhs} have shapes {one} and {other}, "
                "which must be equal; np.broadcast_to(value, shape) before alloc()"
            )

    def _check_gradient(self, origin: str, slot: int, gradient: Array) -> None:
        """Raise an error if an array cannot be the gradient of a slot."""
        value = self._values[slot]
        if np.shape(gradient) != value.shape:
            raise ShapeError(
                f"GradientTape.backward: the gradient of slot {slot}, from {origin!r}, has shape "
                f"{np.shape(gradient)}, the slot {value.shape}"
            )
        if gradient.dtype != value.dtype:
            raise DTypeError(
                f"GradientTape.backward: the gradient of slot {slot}, from {origin!r}, has dtype "
                f"{gradient.dtype}, the slot {value.dtype}"
            )
        run_check(check_finite, gradient, origin, f"slot {slot}")

    def _check_buffers(self, tensors: object, out: object) -> None:
        """Raise an error if gradients cannot be added to the arrays of `out`."""
        op = "GradientTape.backward"
        if tensors is not None:
            raise ArgumentTypeError(f"{op}: give tensors or out, not both")
        buffers: Any = out
        check_kind(op, "out", out, list, "a list with an array per slot")
        count = len(self._values)
        if len(buffers) < count:
            raise ArgumentValueError(
                f"{op}: out has {len(buffers)} entries, the tape {count} slots; give an array for "
                "each, np.zeros_like(tape.value(slot))"
            )
        arrays = [as_array(op, f"out[{at}]", one) for at, one in enumerate(buffers[:count])]
        for at, array in enumerate(arrays):
            if not array.flags.writeable:
                raise ArgumentValueError(f"{op}: out[{at}] cannot be written to")
            twin = next((one for one in range(at) if np.may_share_memory(arrays[one], array)), None)
            if twin is not None:
                raise ArgumentValueError(
                    f"{op}: out[{twin}] and out[{at}] share memory; each slot needs an array of "
                    "its own"
                )

    def _checked_entries(self, tensors: list[Any]) -> list[Array | None]:
        """Return a copy of `tensors` with one entry per slot."""
        words = "a list with an array or None per slot"
        check_kind("GradientTape.backward", "tensors", tensors, list, words)
        missing = len(self._values) - len(tensors)
        for slot, entry in enumerate(tensors[: len(self._values)]):
            if entry is not None:
                self._check_gradient(
                    "tensors", slot, as_array("GradientTape.backward", f"tensors[{slot}]", entry)
                )
        return [*tensors, *[None] * missing]


def _copied(pullback: Pullback, g: Array) -> Array:
    returned = pullback(g)
    return returned.copy() if is_array(returned) else returned
