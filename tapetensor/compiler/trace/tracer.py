"""Arrays without elements, and generators, which capture what they are asked to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import unwrap
from operator import attrgetter
from threading import get_ident
from typing import Any, Never

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array
from tapetensor.arrays.stand_ins import CapturedGenerator, Recorded, shadow
from tapetensor.compiler.trace.functions import (
    capture_by_trial,
    capture_function,
    captured,
    is_basic,
    shaped,
    with_dots,
    yields_to,
)
from tapetensor.compiler.trace.methods import ArrayMethods, known_place
from tapetensor.compiler.trace.node import (
    DType,
    Keywords,
    Kind,
    Node,
    Shape,
    View,
    found_in,
    is_in_order,
    laid_out,
    lying,
    replaced,
)
from tapetensor.compiler.trace.number import NumberTracer, dummy
from tapetensor.compiler.trace.operations import (
    cast_to,
    copied,
    item,
    number_of,
    read_index,
    run_pullbacks,
    write_all,
    write_index,
)
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import check_writer, trace_error
from tapetensor.errors import TraceError
from tapetensor.tape.pullbacks import JointPullbacks, Needed


class ArrayTracer(ArrayMethods):
    """Stands for an array, or a scalar of numpy's, while a function is captured.

    Only the library's own kernels write into one: it stands for another value then, and so does the
    array that it is a view of, with all views of that.
    """

    __slots__ = ("_class", "_node", "_seen", "base", "is_scalar", "program")

    def __init__(
        self,
        program: Program,
        node: Node,
        *,
        is_scalar: bool = False,
        base: tuple[ArrayTracer, View] | None = None,
    ) -> None:
        self.program = program
        self._node = node
        self.base = base
        # The value of the base that the node is a view of.
        self._seen = None if base is None else base[0].node
        self.is_scalar = is_scalar
        self._class = node.dtype.type if is_scalar else np.ndarray

    # These are asked for so often that the frames of functions in Python would take most of the
    # time. What it stands for is its class, as programs ask: ``isinstance(x, np.ndarray)``.
    __class__: Any = property(attrgetter("_class"))
    shape: Any = property(attrgetter("_node.shape"))
    dtype: Any = property(attrgetter("_node.dtype"))
    ndim: Any = property(attrgetter("_node.ndim"))
    size: Any = property(attrgetter("_node.size"))

    @property
    @override
    def node(self) -> Node:
        """The value that it stands for at the moment."""
        # A call for each would be a tenth of a capture.
        if get_ident() != self.program.thread:
            self.program.check_thread()
        if self.base is not None and self.base[0].node is not self._seen:
            array, view = self.base
            self._node = self.program.view(view, array.node, self.shape)
            self._seen = array.node
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
        if order not in ("C", "F"):
            raise trace_error(
                f"elements are read in the order {order!r} of memory, which is another one in a "
                'plan; write order="C" or "F"'
            )
        if order != "C" or copy is not None:
            named = {"order": order, "copy": copy}
            found: ArrayTracer = capture_by_trial(self, np.reshape, (self, wanted), named)
            return found
        known = shadow(self).reshape(wanted).shape
        if not is_in_order(self.node):
            seen = laid_out(self.node)
            if not np.may_share_memory(seen, seen.reshape(known)):
                # A copy does not see what is written into its base later.
                return self.in_order().reshape(known)
        return self.viewed(View("reshape", known), known)

    @override
    def laid_out(self) -> Array:
        return laid_out(self.node)

    @override
    def astype(
        self, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: bool = True,
        copy: bool = True,
    ) -> ArrayTracer:  # fmt: skip
        # This raises what numpy raises.
        wanted = np.empty(0, self.dtype).astype(dtype, order, casting=casting).dtype
        if wanted == self.dtype:
            return self.copy() if copy else self
        if casting == "same_value":
            raise trace_error("a cast that checks values is no step; check them outside")
        node = self.program.elementwise(cast_to(wanted), (self.node,), wanted)
        return ArrayTracer(self.program, node, is_scalar=self.is_scalar)

    @override
    def copy(self, order: Any = "C") -> ArrayTracer:
        """Return a copy, in which elements that are repeated have places of their own."""
        if not is_in_order(self.node) and 0 in laid_out(self.node).strides:
            return self.in_order()
        return self.as_scalar(self.is_scalar)

    def in_order(self) -> ArrayTracer:
        """Capture a copy in C order."""
        node = self.node
        node = self.program.add(
            Kind.ELEMENTWISE, cast_to(node.dtype), (node,), node.shape, node.dtype
        )
        return ArrayTracer(self.program, node)

    def as_scalar(self, is_scalar: bool = True) -> ArrayTracer:
        """Return a copy, which numpy has as a scalar, or as an array without axes."""
        return ArrayTracer(self.program, self.node, is_scalar=is_scalar)

    def __getitem__(self, index: Any) -> ArrayTracer:
        """Return the elements at an index."""
        self._check_no_fields()
        index = replaced(index, known_place)
        if is_basic(index):
            whole = dummy(self) if self.is_scalar else shadow(self)
            like = whole[index]
            seen = self.viewed(View("index", with_dots(index)), like.shape)
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
        if is_basic(index):
            target = self[with_dots(index)]
            # Otherwise it is the second half of ``array[index] += ...``, which has written it.
            if not (isinstance(value, ArrayTracer) and value.node is target.node):
                target.write(write_all, value)
        else:
            self.write(write_index, index, value)

    def _check_no_fields(self) -> None:
        if self.dtype.names is not None:
            raise trace_error("an array with fields cannot be traced; pass its fields as arrays")

    @override
    def write(self, function: Callable[..., Any], *args: Any) -> None:
        check_writer()
        nodes = replaced(args, self.unwrapped)
        views, whole = list[tuple[View, Shape]](), self
        while whole.base is not None:
            views.append((whole.base[1], whole.shape))
            whole = whole.base[0]
        whole.becomes(self.program.write(whole.node, views[::-1], function, nodes))

    def becomes(self, node: Node) -> None:
        """Stand for another value, given what the elements of all of it are."""
        if self.base is None:
            self._node = node
            return
        array, view = self.base
        whole = view.undone(array.node)
        if whole is None:
            self.write(write_all, ArrayTracer(self.program, node))
        else:
            array.becomes(self.program.view(whole, node, array.shape))

    @override
    def capture_elementwise(
        self, function: Callable[..., Any], args: tuple[Any, ...]
    ) -> ArrayTracer:
        operands = tuple([self.operand(one, self.dtype) for one in args])
        return self.wrap(self.program.elementwise(function, operands, self.dtype))

    @override
    def capture_by_rows(self, ufunc: np.ufunc, axes: Shape) -> ArrayTracer:
        shape, operands = (*self.shape[: axes[0]], *[1] * len(axes)), (self.node,)
        node = self.program.add(Kind.REDUCE, ufunc, operands, shape, self.dtype, (axes, True))
        return self.wrap(node)

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
        return self._parts(node, [lying(one.shape, one.dtype)[()] for one in gradients])

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
        (output,) = self._parts(whole, [lying(shape, arrays[0].dtype)])

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
            parts = iter(self._parts(found, [lying(x.shape, x.dtype) for x in wanted]))
            return [next(parts) if is_needed else None for is_needed in needed]

        return output, JointPullbacks((True,) * len(arrays), cotangents)

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
        """Return what stands for a node, a scalar if there are no axes and `like` is no array."""
        is_scalar = node.shape == () and not isinstance(like, np.ndarray)
        return ArrayTracer(self.program, node, is_scalar=is_scalar)

    def viewed(self, view: View, shape: Shape) -> ArrayTracer:
        """Return a view of this array; that of a scalar may be one, too."""
        node = self.program.view(view, self.node, shape)
        is_scalar = self.is_scalar and shape == () and view.name in ("reshape", "transpose")
        base = None if is_scalar else (self, view)
        return ArrayTracer(self.program, node, is_scalar=is_scalar, base=base)

    @override
    def read_only(self) -> ArrayTracer:
        return self.as_scalar(False)

    def operand(self, value: Any, dtype: DType) -> Node:
        """Return the node of an operand; a plain number becomes one of `dtype`."""
        if isinstance(value, ArrayTracer):
            return value.node
        if isinstance(value, NumberTracer):
            number = value.array
            if dtype.kind in "iu" and dtype != number.dtype:
                # numpy refuses an integer of Python's that does not fit.
                number = self.capture_step(number_of(dtype), (value,), {})
            return number.astype(dtype).node
        if isinstance(value, np.ndarray):
            return self.program.constant(self.program.snapshot(value))
        return self.program.constant(value, None if hasattr(value, "dtype") else dtype)

    def unwrapped(self, value: Any) -> Any:
        """Return an argument of a step: a node, a number as Python's own, or what it is."""
        if isinstance(value, NumberTracer):
            # With Python's numbers results have other dtypes than with numpy's.
            nodes = (value.array.node, Keywords())
            return self.program.add(Kind.CALL, item, nodes, (), value.array.dtype)
        if isinstance(value, ArrayTracer):
            return value.node
        return self.program.snapshot(value) if isinstance(value, np.ndarray) else value

    @override
    def refusal(self, what: str) -> TraceError:
        """Return the error for code that cannot be captured; refuse another thread before."""
        self.program.check_thread()
        return trace_error(what)


_OWN = ("program", "source", "drops", "draws", "undropping")


class GeneratorTracer(np.random.Generator, CapturedGenerator):
    """Stands for a random generator while a function is captured: draws become steps.

    A copy that is made inside may not draw, for it would draw numbers of its own.
    """

    def __init__(self, program: Program, source: Node, *, drops: bool, draws: bool = True) -> None:
        super().__init__(np.random.PCG64(0))
        self.program = program
        self.source = source
        self.drops = drops
        self.draws = draws

    @override
    def undropping(self) -> GeneratorTracer:
        """Return what stands for a copy with which nothing is dropped, and which may not draw."""
        return GeneratorTracer(self.program, self.source, drops=False, draws=False)

    @property  # type: ignore[misc]  # a class is an attribute to mypy
    @override
    def __class__(self) -> type[Any]:
        """What it stands for, as programs ask: ``type(rng)``."""
        return np.random.Generator

    @override
    def __getattribute__(self, name: str) -> Any:
        """Return a function that captures a draw, in place of one that draws."""
        if name.startswith("_") or name in _OWN:
            return object.__getattribute__(self, name)
        if not self.draws:
            raise trace_error(
                f"rng.{name} of a model that nn.inference copies inside; make that outside, once"
            )
        method = getattr(np.random.Generator, name, None)
        if not callable(method) or name in ("spawn", "bit_generator", "shuffle"):
            raise trace_error(f"rng.{name} cannot be traced; call it outside, and pass the result")

        def draw(*args: Any, **options: Any) -> ArrayTracer | NumberTracer:
            if options.get("out") is not None:
                raise trace_error(f"rng.{name} writes into an array; use the array that it returns")
            given, named = replaced((args, Keywords(options)), self._known)
            drawn = getattr(np.random.default_rng(0), name)(*given, **named)
            result = np.asarray(drawn)
            if result.dtype.kind not in "biuf":
                raise trace_error(f"rng.{name} gives no numbers; call it outside, and pass them")
            operands = (self.source, given, named)
            node = self.program.add(Kind.RANDOM, name, operands, result.shape, result.dtype)
            is_array = isinstance(drawn, np.ndarray)
            array = ArrayTracer(self.program, node, is_scalar=not is_array)
            is_number = not isinstance(drawn, np.ndarray | np.generic)
            return NumberTracer(array) if is_number else array

        return draw

    def _known(self, value: Any) -> Any:
        if isinstance(value, ArrayTracer | NumberTracer):
            if value.array.node.kind is not Kind.CONSTANT:
                raise trace_error(
                    "a generator draws by what is not known yet; draw by plain numbers, and "
                    "compute with that, as in mean + std * rng.normal(size=n)"
                )
            return value.array.read()
        return self.program.snapshot(value) if isinstance(value, np.ndarray) else value

    def _refuse_a_copy(self, *_: object) -> Never:
        """Refuse: a copy would draw numbers of its own."""
        raise trace_error("a random generator is copied; copy it outside, and pass the copy")

    __copy__ = __deepcopy__ = __reduce__ = _refuse_a_copy
