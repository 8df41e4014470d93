"""Kernels of layers in the ops of ONNX that are made for them: each is one op, or few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tapetensor.arrays.array import Array
from tapetensor.compiler.trace.node import Keywords, Kind
from tapetensor.onnx.calls import Operands
from tapetensor.onnx.graph import END, Graph, index_of, indexed
from tapetensor.onnx.merging import Dims, Open, Uniform, Value, refusal

# In which order ONNX has the gates of a cell, of which the kernels have their own.
_GATES: dict[str, list[int]] = {"RNN": [0], "GRU": [1, 0, 2], "LSTM": [0, 3, 1, 2]}


class Memories(NamedTuple):
    """The outputs of a long short-term memory, of which ONNX has only the last state of the cells.

    Attributes:
        size: how many states there are of each kind.
        states: the name of the states after every step.
        cell: the name of the last state of the cells.
        place: where the user computes it.
    """

    size: int
    states: str
    cell: str
    place: Any

    def seen(self, graph: Graph, value: Value, shape: Dims) -> str:
        """Return the name of a part: of the states, or the last state of the cells."""
        if value.function.name == "index":
            index = index_of(value.function.parameter, shape)
            start, end, step = index.cuts.pop(2, (0, END, 1))
            if (start, end, step) == (0, self.size, 1):
                return indexed(graph, self.states, index)
            is_last = not index.cuts and index.numbers.get(1) in (-1, _last(shape[1]))
            if is_last and start == self.size and end in (END, 2 * self.size) and step == 1:
                del index.numbers[1]
                return indexed(graph, self.cell, index)
        raise self.refusal()

    def refusal(self) -> Exception:
        """Return the error for what needs all states of the cells."""
        return refusal("what an LSTM's cells hold before the last step has no form", self.place)


def _last(size: Any) -> Any:
    return size - 1 if isinstance(size, int) else None


def _arguments(whole: Value) -> tuple[Any, ...]:
    return tuple([one for one in whole.args if not isinstance(one, Keywords)])


def _image_op(
    compute: Callable[[Operands, str, tuple[Any, ...]], str],
) -> Callable[[Operands, Value, Value], str]:
    """Return the rule of an op on images, of which ONNX wants one axis before the channels."""

    def rule(on: Operands, whole: Value, value: Value) -> str:
        images, *others = _arguments(whole)
        window = next(one for one in others if hasattr(one, "kernel"))
        spatial = len(window.kernel)
        name, shape = on.name(images), on.shape(images)
        leading = len(shape) - spatial - 1
        if leading != 1:
            name = on.graph.reshaped(name, [-1, *shape[leading:]])
        found = compute(on, name, tuple(others))
        return found if leading == 1 else on.graph.reshaped(found, value.shape)

    return rule


def _attributes(window: Any) -> dict[str, Any]:
    return {
        "kernel_shape": list(window.kernel),
        "strides": list(window.stride),
        "dilations": list(window.dilation),
        "pads": list(window.padding) * 2,
    }


def _convolved(on: Operands, images: str, others: tuple[Any, ...]) -> str:
    weight, *bias, window, groups = others
    operands = [on.name(one) for one in (weight, *bias) if one is not None]
    return on.graph.add("Conv", images, *operands, group=groups, **_attributes(window))


def _pooled(op: str, **attributes: Any) -> Callable[[Operands, str, tuple[Any, ...]], str]:
    def compute(on: Operands, images: str, others: tuple[Any, ...]) -> str:
        return on.graph.add(op, images, **attributes, **_attributes(others[0]))

    return compute


def _lowest(on: Operands, images: str, others: tuple[Any, ...]) -> str:
    return on.graph.add("Neg", _pooled("MaxPool")(on, on.graph.add("Neg", images), others))


def _with_last(
    attribute: str, op: str, **attributes: Any
) -> Callable[[Operands, Value, Value], str]:
    """Return the rule of an op of which the last argument is an attribute."""

    def rule(on: Operands, whole: Value, value: Value) -> str:
        *arrays, last = _arguments(whole)
        return on.graph.add(op, *map(on.name, arrays), **attributes, **{attribute: last})

    return rule


def _attention(on: Operands, whole: Value, value: Value) -> str:
    query, key, attended, *biases, mask, causal, scale = _arguments(whole)
    graph, dtype = on.graph, value.dtype
    axes = [*range(len(on.shape(key)))]
    turned = graph.add("Transpose", on.name(key), perm=[*axes[:-2], axes[-1], axes[-2]])
    scaled = graph.add("Mul", on.name(query), graph.constant(scale, dtype))
    scores = graph.add("MatMul", scaled, turned)
    hidden = graph.constant(-np.inf, dtype)
    for bias in biases:
        scores = graph.add("Add", scores, on.name(bias))
    if mask is not None:
        scores = graph.add("Where", on.name(mask), scores, hidden)
    if causal:
        queries, keys = on.shape(query)[-2], on.shape(key)[-2]
        if isinstance(queries, Open) or isinstance(keys, Open):
            raise refusal("causal attention along the batch has no form in ONNX", whole.place)
        sees = np.arange(keys) <= np.arange(queries)[:, None]
        scores = graph.add("Where", graph.constant(sees), scores, hidden)
    weights = graph.add("Softmax", scores, axis=-1)
    if biases or mask is not None:
        # A query that sees no key gets zeros.
        highest = graph.add("ReduceMax", scores, graph.numbers([-1]), keepdims=1)
        sees_none = graph.add("Equal", highest, hidden)
        weights = graph.add("Where", sees_none, graph.constant(0, dtype), weights)
    return graph.add("MatMul", weights, on.name(attended))


def _recurrent(op: str) -> Callable[[Operands, Value, Value], Any]:
    """Return the rule of a recurrent network, which in ONNX takes inputs, and makes the gates."""

    def rule(on: Operands, whole: Value, value: Value) -> Any:
        gates, weight, bias, *states = _arguments(whole)
        graph, size = on.graph, on.shape(weight)[1]
        if 0 in value.shape:
            # onnxruntime does not run these ops on nothing.
            return graph.repeated(graph.constant(0, value.dtype), value.shape)
        inputs, weight_of_inputs, bias_of_inputs = _inputs_of(on, gates)
        weights = [_in_order(on, one, op, size) for one in (weight_of_inputs, weight)]
        biases = [_in_order(on, one, op, size) for one in (bias_of_inputs, bias)]
        first = graph.unsqueezed(graph.add("Concat", *biases, axis=0), [0])
        before = ["" if is_zero(one) else graph.unsqueezed(on.name(one), [0]) for one in states]
        options = {"linear_before_reset": 1} if op == "GRU" else {}
        found = graph.add_with_results(
            len(states) + 1, op, graph.add("Transpose", inputs, perm=[1, 0, 2]),
            *[graph.unsqueezed(one, [0]) for one in weights], first, "", *before,
            hidden_size=size, **options,
        )  # fmt: skip
        # Steps, directions, batch: there is one direction.
        turned = graph.add("Transpose", graph.squeezed(found[0], [1]), perm=[1, 0, 2])
        if op != "LSTM":
            return turned
        return Memories(size, turned, graph.squeezed(found[2], [0]), whole.place)

    return rule


def is_zero(state: Any) -> bool:
    """Tell whether an operand is an array that is known and has zeros alone."""
    detail = state.detail if isinstance(state, Value) and state.kind is Kind.CONSTANT else state
    array = detail.base if isinstance(detail, Uniform) else detail
    return isinstance(array, np.ndarray) and not array.any()


def _in_order(on: Operands, rows: Any, op: str, size: int) -> str:
    """Return the name of a weight or a bias with the gates in the order of ONNX."""
    order = _GATES[op]
    if isinstance(rows, np.ndarray):
        parts = np.split(rows, len(order))
        return on.graph.constant(np.concatenate([parts[one] for one in order]))
    if len(order) == 1:
        return on.name(rows)
    places = np.concatenate([np.arange(one * size, (one + 1) * size) for one in order])
    known = _known(rows)
    if known is not None:
        return on.graph.constant(known[places])
    return on.graph.add("Gather", on.name(rows), on.graph.constant(places), axis=0)


def _known(value: Value) -> Array | None:
    """Return what a value is, if that is written with the model."""
    known = value.array if value.kind is Kind.INPUT else value.detail
    return known if isinstance(known, np.ndarray) else None


def _inputs_of(on: Operands, gates: Value) -> tuple[str, Any, Any]:
    """Return what the gates are a linear function of: its name, the weight and the bias.

    They are the gates themselves, where nothing is known of how they are made.
    """
    *_, steps, _ = gates.shape
    width: Any = gates.shape[-1]
    same = np.eye(width, dtype=gates.dtype), np.zeros(width, gates.dtype)
    value, bias = _behind_reshapes(gates), None
    if value.kind is Kind.ELEMENTWISE and value.function is np.add:
        value, bias = value.args
        value = _behind_reshapes(value)
    if value.kind is not Kind.MATMUL or (bias is not None and bias.shape != (width,)):
        return on.name(gates), *same
    rows, turned = value.args
    is_turned = turned.kind is Kind.VIEW and turned.function.name == "transpose"
    if not is_turned or len(turned.shape) != 2 or len(rows.shape) != 2:
        return on.name(gates), *same
    (weight,) = turned.args
    bias, shape = same[1] if bias is None else bias, (gates.shape[0], steps, weight.shape[1])
    if rows.kind is Kind.VIEW and rows.function.name == "reshape" and rows.args[0].shape == shape:
        return on.name(rows.args[0]), weight, bias
    return on.graph.reshaped(on.name(rows), shape), weight, bias


def _behind_reshapes(value: Any) -> Any:
    while value.kind is Kind.VIEW and value.function.name == "reshape":
        (value,) = value.args
    return value


_KERNELS = "tapetensor.kernels"
# By the kernel: given the operands, the call and its output, the name of that.
RULES: dict[str, Callable[[Operands, Value, Value], Any]] = {
    f"{_KERNELS}.convolution.conv1d": _image_op(_convolved),
    f"{_KERNELS}.convolution.conv2d": _image_op(_convolved),
    f"{_KERNELS}.images.max_pool2d": _image_op(_pooled("MaxPool")),
    f"{_KERNELS}.images.min_pool2d": _image_op(_lowest),
    f"{_KERNELS}.images.avg_pool2d": _image_op(_pooled("AveragePool", count_include_pad=1)),
    f"{_KERNELS}.normalization.batch_norm_inference": _with_last("epsilon", "BatchNormalization"),
    f"{_KERNELS}.normalization.layer_norm": _with_last("epsilon", "LayerNormalization", axis=-1),
    f"{_KERNELS}.reductions.softmax": _with_last("axis", "Softmax"),
    f"{_KERNELS}.reductions.log_softmax": _with_last("axis", "LogSoftmax"),
    f"{_KERNELS}.attention.scaled_dot_product_attention": _attention,
    f"{_KERNELS}.recurrent.rnn": _recurrent("RNN"),
    f"{_KERNELS}.recurrent.gru": _recurrent("GRU"),
    f"{_KERNELS}.recurrent.lstm": _recurrent("LSTM"),
}
