"""From a captured program to a flat list of numpy calls on planned memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import partial
from typing import get_args

import numpy as np

from tapetensor.arguments import check_choice
from tapetensor.compiler.emit.blocks import BlockLoops
from tapetensor.compiler.emit.code import Code, call_into
from tapetensor.compiler.plan.groups import Group, Unit, recomputed
from tapetensor.compiler.plan.memory import Memory, lay_out
from tapetensor.compiler.plan.schedule import scheduled
from tapetensor.compiler.plan.storage import TAKES_OUT, may_write_over, source_of
from tapetensor.compiler.trace.node import Backend, Kind, Node, laid_out
from tapetensor.compiler.trace.operations import unwritten
from tapetensor.compiler.trace.program import Program
from tapetensor.extras import import_extra
from tapetensor.kernels.numerics.decorators import BACKEND_VARIABLE


class Planner:
    """Gives every value of a program its place and writes the steps."""

    def __init__(
        self,
        units: list[Unit],
        inputs: dict[Node, str],
        outputs: list[Node],
        executor: BlockLoops,
    ) -> None:
        self._units = units
        self._outputs = outputs
        self._executor = executor
        self.memory = Memory(units, outputs)
        lay_out(self.memory, units)
        self.code = Code(self.memory, inputs)
        # The variables of the optimizers' buffers.
        self._buffers: dict[Node, str] = {}

    def run(self) -> None:
        """Plan all steps, in as little memory as can be found."""
        for position, unit in enumerate(self._units):
            if isinstance(unit, Group):
                self._place_group(unit)
            else:
                self._place(unit)
            for node in self.memory.released(position):
                self._free(node)
        arena, names = self.memory.arena, self.code.names
        places = arena.better_places()
        if places is not None:
            arena.move(places)
            self.code.names = {name: arena.moved(value) for name, value in names.items()}

    def leaving_expressions(self, owned: Collection[int] = ()) -> list[str]:
        """Return the source of every array that leaves; others may write into the owned ones."""
        storages = [self.memory.storage(node) for node in self._outputs]
        found = []
        for position, (node, storage) in enumerate(zip(self._outputs, storages, strict=True)):
            source = self.code.operand(node).source
            # Others hold what came in, what is known, and what an optimizer has made.
            is_others = storage.owner.kind in (Kind.INPUT, Kind.CONSTANT) or (
                storage.owner.kind is Kind.PART and storage.owner.args[0].kind is Kind.UPDATE
            )
            # What is repeated lies in memory once, where nobody is to write.
            is_shared = position in owned and (
                storages.count(storage) > 1 or not laid_out(node).flags.writeable
            )
            found.append(f"{source}.copy()" if is_others or is_shared else source)
        return found

    def _place(self, node: Node) -> None:
        if node.kind in TAKES_OUT:
            self._place_out(node)
        elif node.kind is Kind.VIEW:
            self._place_view(node)
        elif node.kind is Kind.CONSTANT:
            self.memory.arrays[node] = node.detail
        elif node.kind is Kind.WRITE:
            self._place_write(node)
        elif node.kind is Kind.PART:
            self._place_part(node)
        elif node.kind is Kind.UPDATE:
            self._place_update(node)
        elif node.kind is not Kind.INPUT:
            self._place_call(node)

    def _place_group(self, group: Group) -> None:
        read_outside = self.memory.read_outside(group)
        views = [node for node in read_outside if node.kind is Kind.VIEW]
        group.kept = set(read_outside) - set(views)
        for node in read_outside:
            if node in group.kept:
                may_write_over = partial(group.may_write_over, node, shares=self.memory.shares)
                self._place_result(node, may_write_over)
        self._executor.build(group, self.code)
        for node in views:
            self._place_view(node)

    def _place_view(self, node: Node) -> None:
        """Place a view of something that is placed already."""
        (seen,) = node.args
        base = self.memory.arrays.get(seen)
        if base is None:
            self.code.assign(node, self.code.seen_by(node.function, self.code.operand(seen).source))
            return
        view = node.function(base)
        assert view.size == 0 or np.may_share_memory(view, base), node
        self.memory.arrays[node] = view

    def _copy(self, node: Node, target: str, source: Node) -> None:
        copy = self.code.bind(np.copyto)
        self.code.emit(node, f"{copy}({target}, {self.code.operand(source).source})")

    def _place_update(self, node: Node) -> None:
        # Where no parameter of the group has a gradient, a step only counts.
        flat = self._buffer_of(node, node) if node.args else "None"
        parts = [f"{flat}_{position}" for position in range(len(node.args))]
        run, title = self._kernel(node)
        arguments = f"{flat}, ({''.join([f'{part}, ' for part in parts])})"
        # As in eager mode the gradient of an only parameter is read where it lies; but a loop has
        # it in the buffer.
        is_only = len(node.function.group.tensors) == 1
        is_alone = is_only and self._executor.kernel(node.function) is node.function
        for gradient, part in zip(node.args, parts, strict=True):
            placed = self.memory.storage(gradient).gradient
            if placed is not None and placed[0] is node:
                continue
            if is_alone:
                arguments += f", {self.code.operand(gradient).source}"
            else:
                self._copy(node, part, gradient)
        call = f"{run}({arguments})"
        if not self.code.is_at_risk:
            call = f"is_late = True; {call}"
        self.code.emit(node, call, title)

    def _buffer_of(self, update: Node, first: Node) -> str:
        """Return the variable of the buffer for the gradients of a step; its parts are numbered.

        If nobody has asked before, a step that takes the buffer is added to those of `first`.
        """
        name = self._buffers.get(update)
        if name is None:
            name = self._buffers[update] = f"g{update.index}"
            group, bind = update.function.group, self.code.bind
            parts = "".join([f"{name}_{position}, " for position in range(len(update.args))])
            take = bind(update.function.parts)
            line = f"{name} = {bind(group.buffer)}(); {parts}= {take}({name})"
            self.code.emit(first, line, title="take the optimizer's buffer")
        return name

    def _place_write(self, node: Node) -> None:
        memory = self.memory
        target, *arguments = node.args
        # Otherwise what is read later would be written over.
        assert target not in memory.outputs, node
        assert memory.last_read(target) <= memory.positions[node], node
        if not any(memory.storage(parent).copied_by is node for parent in node.parents()):
            write, title = self._kernel(node)
            self.code.emit(node, f"{write}({self.code.arguments(tuple(arguments))})", title)
        if target in memory.arrays:
            memory.arrays[node] = memory.arrays[target]
        else:
            self.code.lies_in(node, self.code.operand(target).source)

    def _place_out(self, node: Node) -> None:
        memory = self.memory
        may = partial(may_write_over, node, shares=memory.shares)
        is_in_place = self._place_result(node, may)
        is_there = is_in_place and source_of(node) is not None
        if not is_there and node.function is not unwritten:
            operands = [self.code.operand(operand) for operand in node.args]
            self.code.emit(node, call_into(self.code.operand(node), node, operands, self.code))

    def _place_result(self, node: Node, may_write_over: Callable[[Node], bool]) -> bool:
        """Place a value that is about to be computed; tell whether over one of its operands."""
        storage = self.memory.storage(node)
        if self.memory.take_over(node, may_write_over):
            return True
        if storage.escapes:
            shape, dtype = self.code.bind(node.shape), self.code.bind(node.dtype)
            self.code.assign(node, f"{self.code.bind(np.empty)}({shape}, {dtype})", "allocate")
        elif storage.gradient is not None:
            update, position = storage.gradient
            part = f"{self._buffer_of(update, node)}_{position}"
            if update.args[position].shape == node.shape:
                self.code.lies_in(node, part)
            else:
                self.code.assign(node, f"{part}.reshape({node.shape})")
        elif storage.copied_by is not None and self.memory.storage(storage.copied_by).escapes:
            self._place_part_of(storage.copied_by, node)
        else:
            self.memory.place(node)
        return False

    def _place_part_of(self, write: Node, node: Node) -> None:
        """Place a value in an array that leaves, where a write would copy it to."""
        whole, part, value = write.args
        views = [] if value is node else [value.function.undone(node)]
        while part is not whole:
            views.append(part.function)
            (part,) = part.args
        source = self.code.operand(self.memory.storage(write).owner).source
        for view in reversed(views):
            source = self.code.seen_by(view, source)
        self.code.assign(node, source)

    def _free(self, node: Node) -> None:
        """Let go of a large array that a function returned, and of several in one."""
        is_large = node.nbytes > 65_536 or (node.kind is Kind.CALL and node.shape == ())
        if is_large and node.kind in (Kind.CALL, Kind.PART, Kind.RANDOM):
            self.code.emit(node, f"{self.code.operand(node).source} = None", title="free")

    def _place_part(self, node: Node) -> None:
        (whole,) = node.args
        if whole.kind is Kind.UPDATE:
            tensor = self.code.bind(whole.function.tensors[node.detail])
            self.code.assign(node, f"{tensor}._array")
        else:
            self.code.assign(node, f"{self.code.operand(whole).source}[{node.detail}]")

    def _place_call(self, node: Node) -> None:
        code = self.code
        if node.kind is Kind.RANDOM:
            source, args, options = node.args
            draw = f"{code.operand(source).source}.{node.function}"
            code.assign(node, f"{draw}({code.arguments((*args, options))})")
            return
        function, title = self._kernel(node)
        call = f"{function}({code.arguments(node.args)})"
        if node.kind is Kind.CALL:
            code.assign(node, call, title)
        else:
            code.emit(node, call, title)

    def _kernel(self, node: Node) -> tuple[str, str]:
        """Return the source of what runs a step that is captured whole, and what it does."""
        kernel = self._executor.kernel(node.function)
        title = node.name if kernel is node.function else f"native {node.name}"
        return self.code.bind(kernel), title


def chosen_backend(backend: Backend | None) -> Backend:
    """Return the name of a backend: the one that is given, the environment's, or "numpy"."""
    subject, name = "compile", str(backend)
    if backend is None:
        subject, name = BACKEND_VARIABLE, os.environ.get(BACKEND_VARIABLE) or "numpy"
    check_choice(subject, "backend", name, get_args(Backend))
    if name == "numpy":
        return "numpy"
    import_extra("numba", "native groups", "numba", "backend='numpy' needs nothing more")
    return "numba"


def planned(program: Program, inputs: dict[Node, str], outputs: list[Node]) -> Planner:
    """Return a planner that has planned a program."""
    schedule = scheduled(program, outputs)
    has_products = any(node.kind is Kind.MATMUL for node in schedule)
    if program.backend == "numpy":
        executor = BlockLoops(has_products)
    else:
        from tapetensor.native.executor import NativeLoops

        executor = NativeLoops(has_products)
    units = recomputed(executor.prepared(schedule), outputs, executor)
    planner = Planner(units, inputs, outputs, executor)
    planner.run()
    return planner
