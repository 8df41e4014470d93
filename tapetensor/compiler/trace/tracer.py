"""Arrays without elements, which capture what numpy is asked to do with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import unwrap
from operator import attrgetter
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array
from tapetensor.arrays.rearranging import shadow
from tapetensor.arrays.stand_ins import Recorded
from tapetensor.compiler.trace.functions import is_basic, shaped, with_dots
from tapetensor.compiler.trace.methods import known_place
from tapetensor.compiler.trace.node import (
    Keywords,
    Kind,
    Node,
    Shape,
    found_in,
    replaced,
    shape_of_all,
)
from tapetensor.compiler.trace.number import NumberTracer, dummy
from tapetensor.compiler.trace.operands import Operands
from tapetensor.compiler.trace.operations import (
    cast_exactly,
    cast_to,
    copied,
    read_index,
    run_pullbacks,
    write_all,
    write_index,
)
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import check_writer, trace_error
from tapetensor.compiler.trace.trial import capture_by_trial, capture_function
from tapetensor.compiler.trace.ufuncs import captured, computed_like, yields_to
from tapetensor.compiler.trace.view import (
    Memory,
    View,
    inverse,
    is_dense,
    laid_out,
    lying,
    seen_order,
)
from tapetensor.errors import TraceError
from tapetensor.tape.pullbacks import JointPullbacks, Needed


class Part(NamedTuple):
    """Where a view comes from: of which array, and how that is seen."""

    array: ArrayTracer
    view: View


class ArrayTracer(Operands):
    """Stands for an array while a function is captured.

    Views see what is written into the array that they view, and the other way round, as numpy's do.

    Args:
        program: where it puts what it captures.
        node: the value that it stands for; a write replaces it, in a view that of the base.
        part: of which other array it is a view, if it is one.
    """

    __slots__ = (
        "_class",
        "_is_scalar",
        "_node",
        "_seen",
        "came_in",
        "is_read_only",
        "part",
        "program",
    )

    def __init__(self, program: Program, node: Node, part: Part | None = None) -> None:
        self.program = program
        self._node = node
        self.part = part
        # The value of the other array that the node is a part of.
        self._seen = None if part is None else part.array.node
        # Whether the caller holds the same memory, or some object that lasts.
        self.came_in = True
        # Whether numpy has a scalar in its place, which nobody can write into.
        self._is_scalar, self._class = False, np.ndarray
        # Whether numpy refuses to write into it.
        self.is_read_only: bool = part is not None and part.array.is_read_only

    def _set_scalar(self, is_scalar: bool) -> None:
        self._is_scalar = is_scalar
        self._class = self.dtype.type if is_scalar else np.ndarray

    # These are asked for so often that the frames of functions in Python would take most of the
    # time. What it stands for is its class, as programs ask: ``isinstance(x, np.ndarray)``.
    __class__: Any = property(attrgetter("_class"))
    shape: Any = property(attrgetter("_node.shape"))
    dtype: Any = property(attrgetter("_node.dtype"))
    ndim: Any = property(attrgetter("_node.ndim"))
    size: Any = property(attrgetter("_node.size"))
    is_scalar: Any = property(attrgetter("_is_scalar"), _set_scalar)

    @property
    @override
    def node(self) -> Node:
        """The value that it stands for at the moment."""
        # A call for each would be a tenth of a capture.
        if get_ident() != self.program.thread:
            self.program.check_thread()
        if self.part is not None and self.part.array.node is not self._seen:
            base = self.part.array
            self._node = self.program.view(self.part.view, base.node, self._node.shape)
            self._seen = self.part.array.node
        return self._node

    @property
    @override
    def array(self) -> ArrayTracer:
        return self

    def transpose(self, *axes: Any) -> ArrayTracer:
        """Return the axes in another order; without one, in reverse."""
        # Each axis of this array has its own number as its step.
        steps = np.ndarray((1,) * self.ndim, np.uint8, b"0", 0, tuple(range(self.ndim)))
        order = steps.transpose(*axes).strides
        shape = tuple([self.shape[axis] for axis in order])
        return self.viewed(View("transpose", order), shape)

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> ArrayTracer:
        """Return the elements under another shape, in C order where no other is asked for."""
        wanted = shape[0] if len(shape) == 1 else shape
        if order != "C" or copy is not None:
            named = {"order": order, "copy": copy}
            found: ArrayTracer = capture_by_trial(self, np.reshape, (self, wanted), named)
            return found
        array, seen = self.laid_out(), self
        try:
            known = array.reshape(wanted, copy=False).shape
        except ValueError:
            known = shadow(self).reshape(wanted).shape
            # A copy does not see what is written into its base later, nor the other way round.
            seen = self.copy()
        return seen.viewed(View("reshape", known), known)

    @override
    def laid_out(self, *memory: Memory) -> Array:
        views, root = list[View](), self
        while root.part is not None:
            views.append(root.part.view)
            root = root.part.array
        shown = laid_out(root.node, *memory)
        for view in reversed(views):
            shown = view(shown)
        return shown

    @override
    def astype(
        self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True,
        copy: bool = True,
    ) -> ArrayTracer:  # fmt: skip
        # This raises what numpy raises.
        wanted = np.empty(0, self.dtype).astype(dtype, casting=casting).dtype
        order = order or "K"
        if wanted == self.dtype:
            flags = self.laid_out().flags
            lies_so = {"K": True, "A": flags.forc, "C": flags.c_contiguous, "F": flags.f_contiguous}
            return self.copy(order) if copy or not lies_so[order] else self
        if casting == "same_value":
            checked: ArrayTracer = self.capture_step(cast_exactly, (self, wanted, order), {})
            return checked
        like = self._copied_like(order)
        return self.wrap(
            self.program.elementwise(cast_to(wanted), (self.node,), wanted, like), like
        )

    @override
    def copy(self, order: Any = "C") -> ArrayTracer:
        """Return a copy; writing into either array replaces only its own value."""
        node = self.node
        if node.is_written_to or not is_dense(node):
            node = self.fresh()
        return self.wrap(node, self._copied_like(order or "C"))

    def _copied_like(self, order: Any) -> Any:
        """Return what numpy has in the place of a copy, elements aside."""
        return np.empty_like(self.laid_out(), order=order)[() if self.is_scalar else ...]

    def as_scalar(self, is_scalar: bool = True) -> ArrayTracer:
        """Return a copy, which numpy has as a scalar, or as an array without axes."""
        made = self.copy()
        made.is_scalar = is_scalar
        return made

    def __getitem__(self, index: Any) -> ArrayTracer:
        """Return the elements at an index."""
        self._check_no_fields()
        index = replaced(index, known_place)
        if is_basic(index):
            whole = dummy(self) if self.is_scalar else lying(self.shape, self.dtype, None)
            like = whole[index]
            seen = self.viewed(View("index", with_dots(index)), like.shape)
            # A scalar sees no writes.
            return seen.as_scalar() if isinstance(like, np.generic) else seen
        if any(one.dtype.kind == "b" for one in found_in(index, ArrayTracer)):
            raise trace_error(
                "a mask as an index gives a shape that depends on the values; write "
                "np.where(mask, x, 0), or take the elements outside"
            )
        given = replaced(index, dummy)
        # What arrays of indices choose is a copy.
        like = None if is_basic(given) or self.is_scalar else self.laid_out()[given]
        chosen: ArrayTracer = self.capture_step(read_index, (self, index), {}, like)
        return chosen

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write elements, for the library's own kernels."""
        self._check_no_fields()
        check_writer()
        index = replaced(index, known_place)
        if not is_basic(index):
            self.write(write_index, index, value)
            return
        target = self[with_dots(index)]
        # Otherwise it is the second half of ``array[index] += ...``: the values are there already.
        if not (isinstance(value, ArrayTracer) and value.node is target.node):
            target.write(write_all, value)

    def _check_no_fields(self) -> None:
        if self.dtype.names is not None:
            raise trace_error("an array with fields cannot be traced; pass its fields as arrays")

    def _owner(self) -> ArrayTracer:
        """Return the array that holds the elements of this view; refuse what the user writes."""
        check_writer()
        return self.root()

    @override
    def write(self, function: Callable[..., Any], *args: Any) -> None:
        owner: ArrayTracer = self._owner()
        if owner._node.kind is not Kind.WRITE:
            owner.move()
        nodes = (owner._node, self.node, *replaced(args, self.unordered))
        owner._hold(self.program.add(Kind.WRITE, function, nodes, owner.shape, owner.dtype))

    def _hold(self, node: Node) -> None:
        """Stand for another value from now on, and the array of which it is a part, too."""
        self._node = node

    def fresh(self) -> Node:
        """Capture a copy into memory of its own, which no equal value shares."""
        node, copy = self.node, cast_to(self.dtype)
        return self.program.add(
            Kind.ELEMENTWISE, copy, (node,), node.shape, node.dtype, detail=object()
        )

    def becomes(self, node: Node) -> bool:
        """Replace all elements, those of the base of a view, too; return False if it has others."""
        self._owner()
        if self.part is not None:
            base = self.part.array
            whole = self.part.view.undone(base.node)
            return whole is not None and base.becomes(self.program.view(whole, node, base.shape))
        like = self.laid_out()
        self._hold(node)
        self.lies_as(like)
        return True

    @override
    def capture_elementwise(
        self, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> ArrayTracer:
        operands = tuple([self.operand(one, self.dtype) for one in args])
        like = computed_like(args, shape_of_all(operands))
        return self.wrap(self.program.elementwise(function, operands, self.dtype, like), like)

    @override
    def capture_by_rows(self, ufunc: np.ufunc, axes: Shape) -> ArrayTracer:
        return self.wrap(self.program.by_rows(ufunc, self.ordered(), axes))

    @override
    def capture_check(self, function: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.program.add(Kind.EFFECT, function, replaced(args, self.unwrapped), (), np.dtype(bool))

    @override
    def capture_number(self, function: Callable[..., Any], args: tuple[Any, ...]) -> NumberTracer:
        return NumberTracer(self.capture_step(function, args, {}, np.zeros(())))

    @override
    def capture_checkpoint(self, run: Callable[[], Any]) -> Any:
        program = self.program
        if program.checkpoint:
            # What is within another is computed again with it.
            return run()
        program.checkpoints += 1
        program.checkpoint = program.checkpoints
        try:
            result = run()
        finally:
            program.checkpoint = 0
        array = getattr(result, "_array", None)
        node = array.node if isinstance(array, ArrayTracer) else None
        while node is not None:
            node.checkpoint = -abs(node.checkpoint)
            node = node.args[0] if node.kind is Kind.VIEW else None
        return result

    @override
    def capture_update(self, update: Any, gradients: Sequence[ArrayTracer]) -> list[ArrayTracer]:
        if not any(update.group is one for one in self.program.groups):
            raise self.refusal(
                "an optimizer is made, or copied, inside, and its state would go on at the next "
                "call; make it outside, and pass it"
            )
        args = tuple([self.operand(gradient, gradient.dtype) for gradient in gradients])
        node = self.program.add(Kind.UPDATE, update, args, (), np.dtype(np.bool_))
        return self._parts(node, [lying(one.shape, one.dtype, None)[()] for one in gradients])

    @override
    def capture_step(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        results: Any = None,
    ) -> Any:
        """Capture a call as a whole; a trial on zeros shows how its results look."""
        is_shared = False
        if results is None:
            dummies = replaced((args, options), dummy)
            with np.errstate(all="ignore"):
                results = function(*dummies[0], **dummies[1])
            given, made = [list(found_in(nest, np.ndarray)) for nest in (dummies, results)]
            is_shared = any(np.may_share_memory(one, other) for one in made for other in given)
        function = shaped(function, (args, options), results)
        is_in_order = all(one.flags.c_contiguous for one in found_in(results, np.ndarray))
        is_scalar = not isinstance(results, np.ndarray | tuple | list)
        if is_shared or is_scalar or (not is_in_order and function is not read_index):
            # What is written into a view of a scalar of numpy's would be lost.
            function = copied(function)
        nodes = (*replaced(args, self.unwrapped), Keywords(replaced(options, self.unwrapped)))
        if isinstance(results, tuple | list):
            whole = self.program.add(Kind.CALL, function, nodes, (), np.dtype(np.bool_))
            parts = self._parts(whole, results)
            if isinstance(results, list):
                return parts
            return results._make(parts) if hasattr(results, "_make") else tuple(parts)
        array = np.asarray(results)
        strides = array.strides if function is read_index and not is_in_order else None
        whole = self.program.add(Kind.CALL, function, nodes, array.shape, array.dtype, strides)
        return self.wrap(whole, results)

    @override
    def capture_kernel(
        self, kernel: Callable[..., Any], args: tuple[Any, ...], shape: Shape
    ) -> tuple[ArrayTracer, JointPullbacks]:
        add, truth = self.program.add, np.dtype(np.bool_)
        nodes = replaced(args, self.unwrapped)
        operands = [one for one in args if isinstance(one, ArrayTracer | np.ndarray)]
        arrays = [one for one in operands if one.dtype.kind == "f"]
        # What a kernel returns is no array, and goes on to its pullbacks as it is.
        whole = add(Kind.CALL, unwrap(kernel), (*nodes, Keywords()), (), truth)
        (output,) = self._parts(whole, [lying(shape, arrays[0].dtype, None)])

        def cotangents(needed: Needed, g: Any) -> list[Any]:
            if not isinstance(g, ArrayTracer) or self.prefers_steps:
                # A derivative of higher order needs to see what the kernel does, and formats have
                # no ops for derivatives.
                _, pullbacks = kernel(*args)
                return [
                    one(g) if is_needed and one is not None else None
                    for one, is_needed in zip(pullbacks, needed, strict=True)
                ]
            # Pullbacks hold operands, which have to stay where they are until then.
            held = whole, self.unwrapped(g), needed, *nodes, Keywords()
            found = add(Kind.CALL, run_pullbacks, held, (), truth)
            wanted = [one for one, is_needed in zip(arrays, needed, strict=True) if is_needed]
            parts = iter(self._parts(found, [lying(x.shape, x.dtype, None) for x in wanted]))
            return [next(parts) if is_needed else None for is_needed in needed]

        return output, JointPullbacks((True,) * len(arrays), cotangents)

    def lies_as(self, array: Array) -> None:
        """Lie in memory in the order of another array."""
        self._node = self.program.in_order_of(self._node, array)

    @override
    def ordered(self) -> Node:
        root = self.root()
        node = root.node
        if node.kind is Kind.CONSTANT and 0 in node.detail.strides:
            # It has elements of its own to numpy, which adds them in another order.
            root._hold(self.program.constant(node.detail.copy()))  # noqa: SLF001  # of its class
        return self.node

    def _parts(self, whole: Node, like: Sequence[Any]) -> list[ArrayTracer]:
        """Return the arrays that a node computes, which look like the given ones."""
        known: dict[int, ArrayTracer] = {}
        parts: list[ArrayTracer] = []
        for position, one in enumerate(like):
            # One array may be given several times, as by `np.diag_indices_from`.
            part = known.get(id(one)) if isinstance(one, np.ndarray) else None
            if part is None:
                add = self.program.add
                node = add(Kind.PART, None, (whole,), one.shape, one.dtype, detail=position)
                part = known[id(one)] = self.wrap(node, one)
            parts.append(part)
        return parts

    @override
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Capture a ufunc; leave it to what records, which calls it again on what it holds."""
        try:
            return captured(self, ufunc, method, inputs, options)
        except TypeError as error:
            if ufunc not in (np.equal, np.not_equal):
                raise
            # An error of numpy's own has its ``==`` answer by itself, for which it asks for values.
            raise TypeError(str(error)) from None

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], options: Any
    ) -> Any:
        """Capture one of numpy's functions that are no ufuncs."""
        if any(issubclass(one, Recorded) for one in types):
            return NotImplemented
        self.program.check_thread()
        if any(yields_to(one, "__array_function__") for one in types):
            return NotImplemented
        return capture_function(self, function, args, options)

    def wrap(self, node: Node, like: Any = None) -> ArrayTracer:
        """Return the array that stands for a node, as `made` does."""
        return self.made(self.program, node, like)

    @classmethod
    def made(cls, program: Program, node: Node, like: Any = None) -> ArrayTracer:
        """Return the array or the scalar that stands for a node, in memory of its own.

        Args:
            program: the program that computes it.
            node: its value.
            like: what numpy has in its place, elements aside; without, an array as the program has
                it, or a scalar where there are no axes.
        """
        made = cls(program, node)
        made.came_in = False
        if node.shape == () and not isinstance(like, np.ndarray):
            made.is_scalar = True
        if isinstance(like, np.ndarray):
            made.lies_as(like)
        return made

    def root(self) -> ArrayTracer:
        """Return the array whose memory this one shows."""
        root = self
        while root.part is not None:
            root = root.part.array
        return root

    def move(self) -> None:
        """Lie in memory that no other value shares, in the same order."""
        seen = seen_order(self.laid_out())
        turned = self.transpose(inverse(seen)).fresh()
        self._node = self.program.view(View("transpose", seen), turned, self.shape)

    def viewed(self, view: View, shape: Shape) -> ArrayTracer:
        """Return a view of this array; of a scalar, a view of an array that holds it."""
        base = self.as_scalar(False) if self.is_scalar else self
        node = self.program.view(view, base.node, shape)
        seen = ArrayTracer(self.program, node, Part(base, view))
        if self.is_scalar and shape == () and view.name in ("reshape", "transpose"):
            seen.is_scalar = True
        return seen

    @override
    def read_only(self) -> ArrayTracer:
        seen = self.viewed(View("reshape", self.shape), self.shape)
        seen.is_scalar, seen.is_read_only = False, True
        return seen

    @override
    def refusal(self, what: str) -> TraceError:
        """Return the error for what cannot be captured; refuse another thread before."""
        self.program.check_thread()
        return trace_error(what)
