"""Writing a merged program as a graph: a table from what computes a value to ops of ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapetensor.compiler.trace.node import Kind, found_in
from tapetensor.compiler.trace.operations import write_all
from tapetensor.onnx import calls, elementwise, layers
from tapetensor.onnx.elementwise import BOOL
from tapetensor.onnx.graph import END, Graph, seen, written
from tapetensor.onnx.merging import Counted, Open, Uniform, Value, refusal

_REDUCTIONS = {
    "np.add": "ReduceSum",
    "np.multiply": "ReduceProd",
    "np.maximum": "ReduceMax",
    "np.minimum": "ReduceMin",
}
_LOGICAL = ("np.logical_or", "np.logical_and")
_TRACE = "tapetensor.compiler.trace.operations"


class Writer:
    """Writes values into a graph, operands first.

    Args:
        graph: where they go.
        names: those of the inputs.
    """

    def __init__(self, graph: Graph, names: dict[Value, str]) -> None:
        self.graph = graph
        self._names: dict[Value, Any] = dict(names)

    def name(self, result: Value) -> str:
        """Write what leads to a value, if it is not there yet; return its name."""
        waiting = [result]
        while waiting:
            value = waiting[-1]
            if value in self._names:
                waiting.pop()
                continue
            if value.kind is Kind.RANDOM:
                raise refusal("a random draw has no form in ONNX", value.place)
            operands = [*found_in(value.args, Value)]
            before = [one for one in operands if one not in self._names]
            if before:
                waiting.extend(before)
                continue
            if value.kind is not Kind.VIEW:
                self._check_whole(operands)
            self._names[value] = self._written(value)
            waiting.pop()
        self._check_whole([result])
        name = self._names[result]
        if not isinstance(name, str):
            raise _no_form(result)
        return name

    def _check_whole(self, values: list[Value]) -> None:
        """Refuse what ONNX gives in parts only."""
        for value in values:
            if isinstance(self._names[value], layers.Memories):
                raise self._names[value].refusal()

    def _written(self, value: Value) -> Any:
        kind = value.kind
        if kind is Kind.INPUT:
            if value.array is None:
                raise refusal(f"{value.label}, which every call reads anew, has no form", None)
            label = value.label.rpartition("__self__.")[2]
            return self.graph.constant(value.array, value.dtype, label)
        if kind is Kind.CONSTANT:
            return self._constant(value)
        on = calls.Operands(self.graph, self._names, value)
        if kind is Kind.ELEMENTWISE:
            return self._elementwise(on, value)
        if kind is Kind.VIEW:
            (base,) = value.args
            if isinstance(self._names[base], layers.Memories):
                return self._names[base].seen(self.graph, value, base.shape)
            return seen(self.graph, value.function, self._names[base], base.shape, value.shape)
        if kind is Kind.MATMUL:
            return self.graph.add("MatMul", *[on.cast(one, value.dtype) for one in value.args])
        if kind is Kind.REDUCE:
            return self._reduced(on, value)
        if kind is Kind.CALL and value.called in layers.RULES:
            # What it is becomes clear with the shape of its output.
            return None
        if kind is Kind.CALL:
            rule = calls.RULES.get(value.called)
            if rule is None:
                raise _no_form(value)
            return rule(on, value)
        if kind is Kind.PART:
            (whole,) = value.args
            if whole.called in layers.RULES:
                on = calls.Operands(self.graph, self._names, whole)
                return layers.RULES[whole.called](on, whole, value)
            found = self._names[whole][value.detail]
            if found is None:
                raise _no_form(whole)
            return found
        if kind is Kind.WRITE:
            return self._write(on, value)
        raise _no_form(value)

    def _constant(self, value: Value) -> str:
        detail = value.detail
        if isinstance(detail, Uniform):
            return self.graph.repeated(self.graph.constant(detail.base), value.shape)
        if isinstance(detail, Counted):
            count = self.graph.squeezed(self.graph.numbers(value.shape), [0])
            step = self.graph.constant(detail.step, np.int64)
            end = self.graph.add("Mul", count, step)
            start = self.graph.constant(detail.start, np.int64)
            name = self.graph.add("Range", start, self.graph.add("Add", start, end), step)
            return self.graph.cast(name, np.dtype(np.int64), value.dtype)
        if isinstance(detail, Open):
            name = self.graph.squeezed(self.graph.numbers([detail]), [0])
            return self.graph.cast(name, np.dtype(np.int64), value.dtype)
        return self.graph.constant(detail, value.dtype)

    def _elementwise(self, on: calls.Operands, value: Value) -> str:
        operands = value.args
        if value.called.startswith(_TRACE):
            name = value.function.__name__
            if name == "cast":
                return on.cast(operands[0], value.dtype)
            if name == "select":
                mask, *choices = operands
                chosen = [on.cast(one, value.dtype) for one in choices]
                return self.graph.add("Where", on.cast(mask, BOOL), *chosen)
            if name == "unwritten":
                zero = self.graph.constant(0, value.dtype)
                return self.graph.repeated(zero, value.shape)
        rule = elementwise.RULES.get(value.called)
        if rule is None:
            raise _no_form(value)
        loop = [value.dtype] * len(operands)
        if isinstance(value.function, np.ufunc):
            dtypes = [one.dtype if isinstance(one, Value) else type(one) for one in operands]
            *loop, _ = value.function.resolve_dtypes((*dtypes, None))
        names = [on.cast(one, dtype) for one, dtype in zip(operands, loop, strict=True)]
        is_of_zero = value.called == "np.maximum" and layers.is_zero(operands[1])
        if is_of_zero and loop[0].kind == "f" and operands[1].shape == ():
            # That is what those who run models look for.
            return self.graph.add("Relu", names[0])
        return rule(self.graph, loop[0], *names)

    def _reduced(self, on: calls.Operands, value: Value) -> str:
        (axes, _), graph = value.detail, self.graph
        if value.function is np.vecdot:
            name = graph.add("Mul", *[on.cast(one, value.dtype) for one in value.args])
            axes = (len(value.shape) - 1,)
            op = "ReduceSum"
        elif value.called in _LOGICAL:
            # Whether any is true, or whether not any is false: so it is right without elements.
            name = on.cast(value.args[0], BOOL)
            inverted = value.called == "np.logical_and"
            name = graph.add("Not", name) if inverted else name
            name = graph.cast(name, BOOL, np.dtype(np.int64))
            name = graph.add("ReduceSum", name, graph.numbers(axes), keepdims=1) if axes else name
            name = graph.cast(name, np.dtype(np.int64), BOOL)
            return graph.add("Not", name) if inverted else name
        elif value.called in _REDUCTIONS:
            op = _REDUCTIONS[value.called]
            name = on.cast(value.args[0], value.dtype)
        else:
            raise _no_form(value)
        return graph.add(op, name, graph.numbers(axes), keepdims=1) if axes else name

    def _write(self, on: calls.Operands, value: Value) -> str:
        target, view, *args = value.args
        function, graph = value.function, self.graph
        called = getattr(function, "__name__", "")
        if function in (write_all, np.copyto) and len(args) == 1:
            name = on.cast(args[0], value.dtype)
        elif called == "run_recurrence":
            name = self._recurrence(value, *args)
        else:
            raise _no_form(value)
        name = graph.repeated(name, view.shape)
        return written(graph, target, view, name, self._names)

    def _recurrence(self, value: Value, values: Value, decay: Value) -> str:
        """Return the name of ``h[t] = values[t] + decay[t-1] * h[t-1]``."""
        graph, helper = self.graph, self.graph.onnx.helper
        name = self._names[values]
        if decay.shape[0] == 0:
            return str(name)
        element = helper.np_dtype_to_tensor_dtype(value.dtype)
        first = graph.sliced(name, {0: (0, 1, 1)})
        rest = graph.sliced(name, {0: (1, END, 1)})
        known = [helper.make_tensor_value_info(one, element, None) for one in ("h", "v", "d")]
        made = [helper.make_tensor_value_info(one, element, None) for one in ("next", "seen")]
        body = helper.make_graph(
            [
                helper.make_node("Mul", ["d", "h"], ["kept"]),
                helper.make_node("Add", ["v", "kept"], ["next"]),
                helper.make_node("Identity", ["next"], ["seen"]),
            ],
            "step", known, made,
        )  # fmt: skip
        start = graph.squeezed(first, [0])
        _, states = graph.add_with_results(
            2, "Scan", start, rest, self._names[decay], body=body, num_scan_inputs=2
        )
        return graph.add("Concat", first, states, axis=0)


def _no_form(value: Value) -> Exception:
    return refusal(f"{value.called} has no form in ONNX", value.place)
