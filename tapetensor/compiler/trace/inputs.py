"""What comes into a compiled function: the arrays of tensors, generators, optimizers; tapes.

During the capture tracers stand in the place of arrays. The way to them in the next call is written
down as Python source. In the history of a caller a compiled function is one step.
"""

from __future__ import annotations

import operator
import warnings
import weakref
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, Never

import numpy as np
from typing_extensions import override

from tapetensor.arrays.array import Array, is_masked
from tapetensor.arrays.libraries import library_of
from tapetensor.arrays.stand_ins import Recorded
from tapetensor.compiler.trace.guards import MISS, GuardWriter, differs, spelling
from tapetensor.compiler.trace.kinds import is_set, place_of
from tapetensor.compiler.trace.node import Kind, Node
from tapetensor.compiler.trace.number import NumberTracer
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import NotTracedError, Untraced, trace_error
from tapetensor.compiler.trace.tracer import ArrayTracer, GeneratorTracer
from tapetensor.compiler.trace.watching import Accessors, Held, nothing, whole
from tapetensor.errors import ArgumentTypeError
from tapetensor.optim.optimizer import Optimizer
from tapetensor.surroundings.places import GeneratorState, Name, Place, contents_of
from tapetensor.tape import OwnedTape
from tapetensor.tape.gaps import Gap, computed_outside
from tapetensor.tape.gradients import Gradients
from tapetensor.tape.history import (
    OWN,
    BackwardPass,
    History,
    Step,
    detached_step,
    ids_before,
    is_detached,
)
from tapetensor.tape.row_sparse import RowSparse
from tapetensor.tensor.base import TensorBase


class Tapes:
    """Follows tapes and histories through a function that is captured.

    During the capture a tensor with a tape has another tape, which carries a marker. The markers in
    the tape of a result say which tapes of the caller it has. The history of a tensor is one step
    meanwhile, through which no gradient can flow.
    """

    def __init__(self, guards: GuardWriter, program: Program, op: Any) -> None:
        # They refer to this, too.
        self._guards = weakref.proxy(guards)
        self.program = program
        self.op = op
        # Each marker by its id, with the variable of the tensor whose tape it is for.
        self.markers: dict[int, tuple[Gradients, str]] = {}
        # The source of each history that came in, by the address of what it is in the capture.
        self.histories: dict[int, tuple[History, str]] = {}
        # Whether a backward pass has run inside.
        self.has_replayed = False
        self.returned: list[OwnedTape] = []
        # The tensors that leave, whose histories lead to what came in.
        self.results: list[tuple[Any, str]] = []

    def bring(self, tape: OwnedTape, local: str) -> OwnedTape:
        """Return the tape that takes the place of that of the tensor in a local variable."""
        name = self.op.__name__
        tape.check_usable(name)
        guards = self._guards
        guards.guards.append(f"{local}_tape = {local}.tape")
        guards.guard(f"{local}_tape.__class__ is not {guards.bind(tape.__class__)}")
        guards.guard(f"bool({local}_tape.stores) is not {bool(tape.stores)}")
        marker = Gradients()
        if tape.stores:
            marker.arrays = _Outside()
        self.markers[id(marker)] = marker, local
        # Not in the context that is entered where it is found.
        return tape.beside(marker)

    def enter(self, history: History, tensor: Any, local: str) -> History:
        """Return the stand-in for the history of a tensor that comes in."""
        if history is None or history is OWN:
            return history
        entered = history
        if is_detached(history):
            entered = detached_step(tensor.id)
        elif history[2] is not None:
            found = ids_before(history)
            ids = tuple(sorted({*found, *[one for each in found.ranges for one in each]}))
            # Gradients stop at what was computed; of what is recorded that would be unexpected.
            entered = [tensor.id, computed_outside, None, ids, None, history[5]]
            if not history[5]:
                entered[2] = (_no_way_out,) * len(ids)
        self.histories[id(entered)] = entered, f"{local}.history"
        return entered

    def is_outside(self, step: Step) -> bool:
        """Tell whether a step stands for the history of a tensor that came in."""
        return id(step) in self.histories

    def local(self, tape: OwnedTape) -> str:
        """Return the variable of a tape that leaves."""
        if tape.is_closed:
            raise trace_error(
                "a result has a tape of a context that is left inside; return x.detach()"
            )
        if not any(tape is one for one in self.returned):
            self.returned.append(tape)
        return f"t{[one is tape for one in self.returned].index(True)}"


def kind_of(history: History) -> tuple[bool, ...]:
    """Return the facts of a history on which ops and a backward pass of a plan depend."""
    if history is None:
        return ()
    return history is OWN, history[2] is None, is_detached(history), history[5] > 0


def overlap(
    history: Step, fixed: frozenset[int], others: tuple[int, ...]
) -> tuple[frozenset[int], tuple[bool, ...]]:
    """Return which of the fixed ids are before a value, and of the others whether they are."""
    found = ids_before(history, min(fixed.union(others), default=0))
    return frozenset(found.among(fixed)), tuple([one in found for one in others])


def lacking(
    gaps: tuple[Gap, ...], fixed: frozenset[int], others: tuple[int, ...]
) -> tuple[frozenset[int], tuple[bool, ...]]:
    """Return of which of the fixed ids the gradients lack a part, and whether of the others."""
    if not gaps:
        return frozenset(), (False,) * len(others)
    found = {key for key in (*fixed, *others) for one in gaps if one.concerns(key)}
    return fixed & found, tuple([one in found for one in others])


def _no_way_out(_: Array) -> Never:
    raise trace_error(
        "backward runs inside, through what was recorded outside; call it outside, or compute all "
        "of it inside, from the plain tensor and x.trace()"
    )


class _Outside(dict[int, Any]):
    """The gradients that a tape holds from before the call, which cannot be captured."""

    @override
    def items(self) -> Never:
        """Refuse to be read: a backward pass inside would leave it out."""
        raise trace_error(
            "backward runs inside on a tape with gradients from outside; call it outside, or pass "
            "the plain tensor and write x.trace() inside"
        )


# Reads and sets the array of a tensor, also while something else does that in its place.
ARRAY: Any = vars(TensorBase)["_array"]


def _all_gaps() -> None:
    """Stand for all that the gradients of a store lack at a call."""


def elements(array: Any) -> Any:
    """Return a key that is equal for arrays of equal dtypes, shapes and elements."""
    look = array.shape, array.strides, array.dtype, array.flags.writeable
    return *look, array.tobytes()


# The guards of every plan may use these names.
_NAMES = {
    "MISS": MISS,
    "ndarray": np.ndarray,
    "arrays": (np.ndarray, np.generic),
    "spelling": spelling,
    "differs": differs,
    "contents_of": contents_of,
    "is_set": is_set,
    "elements": elements,
    "OwnedTape": OwnedTape,
    "overlap": overlap,
    "lacking": lacking,
    "OWN": OWN,
    "kind_of": kind_of,
}


class Inputs:
    """The arrays of one plan that come in, and the objects that the capture has replaced."""

    def __init__(self, guards: GuardWriter, program: Program, function: Any) -> None:
        guards.names.update(_NAMES)
        self.guards = guards
        self.guard, self.bind, self.local = guards.guard, guards.bind, guards.local
        self.program = program
        # Where the function is defined, for what is refused before or after it runs.
        self.place = place_of(function)
        # The source expression of each input node.
        self.expressions: dict[Node, str] = {}
        # The array that each of them is while the function is captured.
        self.arrays: dict[Node, Any] = {}
        # The local variables that hold random generators.
        self.generators: list[str] = []
        self.tapes = Tapes(
            guards, program, function if hasattr(function, "__name__") else type(function)
        )
        # Each tensor with its local variable, its node and its tape in the capture.
        self.tensors: list[tuple[Any, str, Node, OwnedTape | None]] = []
        self._direct: list[str] = []
        # The histories of those that were computed, and whether they are recorded.
        self._computed: list[tuple[Step, str, bool]] = []
        # Tensors that are attributes of objects that last, by their local variable.
        self.fields: dict[str, Any] = {}
        # The dicts of attributes of objects, each with what it held when the function began.
        self.states: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        self._optimizers: list[tuple[Optimizer, str]] = []
        self.stores: list[tuple[Gradients, str, dict[int, Any], tuple[Gap, ...]]] = []
        # What stands for all that the gradients of a store lack or are of, by its address.
        self.lacks: dict[int, str] = {}
        # What stands for the array of each tensor that came in, by the address of that: others
        # go on reading the tensor meanwhile.
        self.overlay: dict[int, Any] = {}
        # What can change around the function; `restore` puts back the last of it first.
        self.held: list[Held] = []
        # Each object and tensor that was walked by its id, with what stands for it and its source.
        self.seen: dict[int, tuple[Any, str]] = {}
        # A numpy array that a function reads from around it is a constant, as its numbers are; a
        # tensor is not, for optimizers and modules change tensors.
        self.is_around = False
        # What was another one at an earlier call, as the user calls it: a float or an array is no
        # constant there, and an object may be any of its class.
        self.varying: Collection[str] = ()

    def hold(
        self,
        where: str,
        place: Place,
        listed: Callable[[Any], dict[str, Any]] = whole,
        same: Callable[[Any, Any], object] = operator.is_,
    ) -> Held:
        """Watch an object for changes, and let `restore` put back its present contents."""
        held = Held(where, place, listed, same)
        self.held.append(held)
        return held

    def restore(self) -> None:
        """Put back all that the walk replaced, and all that the function changed."""
        while self.held:
            # One that is interrupted is done again.
            self.held[-1].put_back()
            self.held.pop()

    def _of_another_kind(self, why: str) -> Exception:
        """Return the error for what is no array of numpy's; for an argument, the caller's own."""
        return trace_error(why) if self.is_around else ArgumentTypeError(f"compile: {why}")

    def walk_array(self, array: Any, expression: str, where: str, *, is_varying: bool) -> Any:
        """Return the stand-in for an array: a tracer, or the array itself if it is a constant."""
        if array.__class__ is not np.ndarray:
            cure = "masked.filled(0), say, and its mask apart"
            raise self._of_another_kind(
                f"{where} is a {type(array).__name__}, which has rules of its own; pass "
                f"{cure if is_masked(array) else 'np.asarray(...) of it'}"
            )
        local = self.local(expression)
        if not self.is_around or is_varying:
            tracer = self.input(array, local, where)
            if not array.shape:
                self.guard(f"isinstance({local}, {self.bind(np.generic)})")
            self.seen[id(array)] = self.seen[id(tracer)] = tracer, local
            return tracer
        if array.dtype.hasobject:
            raise trace_error(f"{where} is an array of Python objects; make it a list of them")
        self.seen[id(array)] = array, local
        self.guard(f"{local} is not {self.bind(array)}")
        self.guard(f"elements({local}) != {self.bind(elements(array))}")
        place = Accessors(partial(elements, array), partial(_put_back, array))
        self.hold(where, place, same=operator.eq)
        return array

    def walk_number(self, value: Any, expression: str, where: str) -> Any:
        """Return the stand-in for a float, Python's or numpy's, that differs from call to call."""
        number = np.asarray(value)[()]
        node = self.program.add(Kind.INPUT, None, (), (), number.dtype, label=where)
        self.expressions[node] = f"{self.bind(number.__class__)}({expression})"
        if isinstance(value, np.generic):
            return ArrayTracer(self.program, node, is_scalar=True)
        return NumberTracer(ArrayTracer(self.program, node))

    def walk_tensor(self, tensor: Any, expression: str, where: str) -> Any:
        """Have a tracer stand for the array of a tensor."""
        local = self.local(expression)
        tape, history, data = tensor.tape, tensor.history, ARRAY.__get__(tensor)
        if isinstance(data, Recorded):
            raise NotTracedError(Untraced())
        if expression not in self.fields:
            self.guard_tensor(tensor, tape, local)
        if expression not in self.fields or not (history is None or history is OWN):
            self.guard_history(history, local)
        library = library_of(data)
        if library != "numpy":
            raise self._of_another_kind(
                f"{where} is over an array of {library}, and a plan runs on numpy's; "
                "call the function without compile, or move everything with to(numpy)"
            )
        array = self.local(f"{local}._array")
        tracer = self.input(data, array, where, is_of_tensor=expression in self.fields)
        self.overlay[id(tensor)] = tracer

        brought = None if tape is None else self.tapes.bring(tape, local)
        entered = self.tapes.enter(history, tensor, local)
        if brought is not tape or entered is not history:

            def leave(_: object) -> None:
                tensor.tape, tensor.history = tape, history

            self.hold(where, Accessors(nothing, leave))
            tensor.tape, tensor.history = brought, entered
        self.seen[id(tensor)] = tensor, local
        self.tensors.append((tensor, local, tracer.node, tensor.tape))
        return tensor

    def guard_tensor(self, tensor: Any, tape: OwnedTape | None, local: str) -> None:
        """Write guards for a tensor, which may be another one in the next call."""
        self.guard(f"{local}.__class__ is not {self.bind(tensor.__class__)}")
        self._direct.append(local)
        if tape is None:
            self.guard(f"{local}.tape is not None")

    def guard_history(self, history: History, local: str) -> None:
        """Write guards for the history of a tensor."""
        if history is None or history is OWN:
            self.guard(f"{local}.history is not {'None' if history is None else 'OWN'}")
        else:
            self.guard(f"kind_of({local}.history) != {self.bind(kind_of(history))}")
            is_recorded = history[5] == 0
            self._computed.append((history, f"{local}.history", is_recorded))

    def walk_generator(self, rng: np.random.Generator, local: str, where: str) -> Any:
        """Return the stand-in for a generator, which is watched if it cannot be replaced."""
        self.watch_randomness(rng, where)
        self.guard(f"not isinstance({local}, {self.bind(np.random.Generator)})")
        node = self.program.add(Kind.INPUT, None, (), (), np.dtype(object), label=where)
        self.expressions[node] = local
        self.generators.append(local)
        drops = getattr(rng, "drops", True)
        self.guard(f"getattr({local}, 'drops', True) is not {drops}")
        tracer = GeneratorTracer(self.program, node, drops=drops)
        self.seen[id(rng)] = self.seen[id(tracer)] = tracer, local
        return tracer

    def watch_randomness(self, generator: Any, where: str) -> None:
        """Refuse that a generator draws by itself."""
        # One of numpy's new ones has its state in another object.
        place = GeneratorState(getattr(generator, "bit_generator", generator))
        self.hold(f"the state of {where}", place, same=operator.eq)

    def walk_gradients(self, store: Gradients, local: str, where: str) -> Gradients:
        """Put tracers into a store of gradients."""
        arrays = store.arrays
        if any(isinstance(array, RowSparse) for array in arrays.values()):
            raise trace_error(
                "gradients of rows come in, of the table of an Embedding with sparse=True, which a "
                "plan does not take; use them outside: optimizer.step(grads), say"
            )
        keys = self.bind(tuple(arrays))
        self.guard(f"tuple({local}.arrays) != {keys} or {local}.is_leaky != {store.is_leaky}")
        self.guard(f"{local}.leafs != {self.bind(store.leafs)}")
        tracer: dict[int, Any] = {
            key: self.input(array, self.local(f"{local}.arrays[{key}]"), f"{where}[{key}]")
            for key, array in arrays.items()
        }
        store.arrays = tracer
        gaps, origins = store.gaps, store.origins
        all_gaps, all_origins = Gap("", "", _all_gaps, None), BackwardPass()
        self.lacks |= {id(one): "" for one in (*gaps, *origins)}
        self.lacks[id(all_gaps)] = f"*{local}.gaps, "
        self.lacks[id(all_origins)] = f"*{local}.origins, "
        store.gaps, store.origins = (*gaps, all_gaps), (*origins, all_origins)
        self.stores.append((store, local, dict(store.arrays), store.gaps))

        def undo(_: object) -> None:
            store.arrays, store.gaps, store.origins = arrays, gaps, origins

        self.hold(where, Accessors(nothing, undo))
        return store

    def walk_optimizer(self, optimizer: Optimizer, where: str) -> None:
        """Let a plan read the learning rate at each call; the function itself cannot set it."""
        self.program.groups += optimizer.groups
        fields = vars(optimizer)
        held = self.bind(fields)
        tracer = self.walk_number(fields["_lr"], f"{held}['_lr']", f"{where}.lr")
        watched = self.hold(f"{where}.lr", Name(fields, "_lr"))
        fields["_lr"] = tracer
        watched.settle()
        self._optimizers.append((optimizer, held))

    def parameters_of_optimizers(self) -> Iterator[tuple[Any, str]]:
        """Yield the parameters of optimizers that no model has shown, each with its source."""
        while self._optimizers:
            optimizer, held = self._optimizers.pop()
            for position, group in enumerate(optimizer.groups):
                for place, tensor in enumerate(group.tensors):
                    _, source = self.seen.get(id(tensor), (None, ""))
                    # What is an argument may be another one at the next call.
                    if source not in self.fields:
                        yield tensor, f"{held}['groups'][{position}].tensors[{place}]"

    def input(
        self, array: Any, local: str, label: str, *, is_of_tensor: bool = False
    ) -> ArrayTracer:
        """Return the tracer for an array that the source has in a local variable.

        Shape and dtype of a tensor that the next call has again need no guards.
        """
        # Only the class tells another library's array. A scalar may stand for a 0-d array.
        is_scalar = f"not isinstance({local}, arrays)"
        cls = "ndarray" if type(array) is np.ndarray else self.bind(array.__class__)
        self.guard(f"{local}.__class__ is not {cls}" if array.shape else is_scalar)
        if not is_of_tensor:
            self.guard_look(array, local)
        self.guard(f"{local}.strides != {self.bind(array.strides)}")
        in_order = np.empty(array.shape, array.dtype).strides
        strides = None if array.strides == in_order else array.strides
        node = self.program.add(
            Kind.INPUT, None, (), array.shape, array.dtype, detail=strides, label=label
        )
        self.expressions[node] = local
        self.arrays[node] = array
        return ArrayTracer(self.program, node)

    def guard_look(self, array: Any, local: str) -> None:
        """Write guards for the shape and the dtype of an array."""
        compare = "is not" if array.dtype.isbuiltin == 1 else "!="
        self.guard(f"{local}.shape != {self.bind(array.shape)}")
        self.guard(f"{local}.dtype {compare} {self.bind(array.dtype)}")

    def change(self) -> str | None:
        """Return the name of something that the function has changed around itself, if any."""
        changes = (one.change() for one in self.held)
        return next((name for name in changes if name is not None), None)

    def guard_origins(self, replaced: set[int]) -> None:
        """Write guards: what came of tensors that come in, or lacks a part, does so again."""
        others = {local: tensor.id for tensor, local, _, _ in self.tensors}
        lasting = [local for local, one in self.fields.items() if id(one) not in replaced]
        fixed = frozenset([others.pop(local) for local in lasting])
        asked = f"{self.bind(fixed)}, ({''.join([f'{local}._id, ' for local in others])})"
        ids = tuple(others.values())
        for history, source, is_recorded in self._computed:
            # What is recorded may be long, and counts only where a backward pass comes to it.
            if is_recorded and not self.tapes.has_replayed:
                continue
            known = self.bind(overlap(history, fixed, ids))
            self.guard(f"overlap({source}, {asked}) != {known}")
        for _, store, _, lacked in self.stores:
            known = self.bind(lacking(lacked, fixed, ids))
            self.guard(f"lacking({store}.gaps, {asked}) != {known}")
        if fixed and self._direct:
            # A tensor may come in beside the model that it is a parameter of.
            meeting = {local: one for local, one in others.items() if one in fixed}
            for local in self._direct:
                if local in meeting:
                    self.guard(f"{local}._id != {meeting[local]}")
                else:
                    self.guard(f"{local}._id in {self.bind(fixed)}")

    def guard_distinct(self) -> None:
        """Write guards: what are several objects, or values, are several at the next call, too."""
        several: dict[Any, dict[str, None]] = {}
        for stands_for, source in self.seen.values():
            # Those that nobody can change may be one or several.
            if not isinstance(stands_for, tuple | frozenset | TensorBase):
                several.setdefault(stands_for.__class__, {})[source] = None
        ids = {local: tensor.id for tensor, local, _, _ in self.tensors}
        # Tensors of one id are handles of one value, whose gradient is one.
        handles: dict[int, dict[str, None]] = {}
        for local in self._direct:
            handles.setdefault(ids[local], {})[local] = None
        for first, *others in handles.values():
            for other in others:
                self.guard(f"{other}._id != {first}._id")
        for sources in (*several.values(), *handles.values()):
            if not all(one.startswith("k") for one in sources):
                self._guard_several([f"id({one})" for one in sources])
        self._guard_several([f"{next(iter(one))}._id" for one in handles.values()])

    def _guard_several(self, expressions: list[str]) -> None:
        if len(expressions) > 1:
            self.guard(f"len({{{', '.join(expressions)}}}) != {len(expressions)}")


def _put_back(array: Any, before: Any) -> None:
    """Write into an array what it held, unless it still does, or nobody can by way of it."""
    shape, _, dtype, is_writeable, held = before
    if (is_writeable or array.flags.writeable) and elements(array) != before:
        array.flags.writeable = True
        with warnings.catch_warnings():
            # numpy 2.5 warns of it, but nothing else changes an array that others hold.
            warnings.simplefilter("ignore", DeprecationWarning)
            array.dtype = dtype
            array.shape = shape
        array[...] = np.frombuffer(held, dtype).reshape(shape)
        array.flags.writeable = is_writeable
