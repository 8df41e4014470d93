"""Exporting a function: capturing it at several batch sizes, and writing the file."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tapetensor.arguments import check_function, check_path
from tapetensor.compiler.compiled import CAPTURES
from tapetensor.compiler.trace.capture import capturing
from tapetensor.compiler.trace.node import Node, replaced
from tapetensor.compiler.trace.number import NumberTracer
from tapetensor.compiler.trace.program import Program
from tapetensor.compiler.trace.refusals import NotTracedError, trace_error
from tapetensor.compiler.trace.tracer import ArrayTracer
from tapetensor.errors import ArgumentTypeError, ArgumentValueError, TraceError
from tapetensor.extras import import_extra
from tapetensor.io.disk import write_atomically
from tapetensor.onnx.graph import Graph
from tapetensor.onnx.merging import Dims, Merger, Open, Value, refusal
from tapetensor.onnx.writer import Writer
from tapetensor.tensor.base import TensorBase
from tapetensor.tensor.creation import from_numpy

# Which version of the set of ops is written, and which of the format goes with it.
_OPSET, _FORMAT = 19, 9
# Sizes that no axis of a model is likely to have. Where a kernel goes another way for one of them
# than for the next, three others are tried.
_SIZES = ((17, 19, 23), (3, 5, 7), (101, 103, 107))
# What the check of a model allows for: it looks for another thing, not for the last digit.
_NEAR = 1e-3
# A file of ONNX can have no more.
_MOST_BYTES = (1 << 31) - (1 << 20)


def export(
    path: str | os.PathLike[str],
    function: Callable[..., Any],
    *examples: Any,
    open_batch: bool | Sequence[bool] = True,
) -> None:
    """Write a function as a model in the format ONNX, as a whole or not at all.

    The function may be compiled or not; it is captured as by `tapetensor.compile`. The file holds
    the present values of the parameters that it reads. Checks of values, such as that of an index,
    are left out. In the file, the inputs have the names of the function's arguments. Before it is
    written, the package onnx runs the model on the examples, and on one row of them if the batch is
    open, and the results are compared with those of the function.

    Args:
        path: a path that ends in ``.onnx``.
        function: a function of tensors that returns a tensor, or a tuple or list of them.
        examples: its arguments: tensors without a tape, of the shapes and dtypes of the inputs.
            Arguments of other types become constants.
        open_batch: whether the first axis of each input may have any size in the file, which must
            be one size in the examples; or which of the inputs have such an axis.

    Raises:
        TraceError: if the function does something that ONNX cannot, with its name and the line, or
            something else at another batch size.
        ArgumentTypeError: if an argument is of the wrong kind.
        ArgumentValueError: if `path` ends otherwise, the examples have no common size, or the model
            takes more than 2 GiB.
        MissingDependencyError: if the package onnx is not installed.
        OSError: if the file cannot be written.

    >>> import numpy as np
    >>> import onnxruntime  # doctest: +SKIP
    >>> import tapetensor as tt
    >>> from tapetensor import nn, onnx
    >>> model = nn.Linear(3, 2, rng=np.random.default_rng(0))
    >>> onnx.export("model.onnx", model.forward, tt.zeros((1, 3)))  # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession("model.onnx")  # doctest: +SKIP
    >>> session.run(None, {"x": np.ones((5, 3), np.float32)})[0].shape  # doctest: +SKIP
    (5, 2)
    """
    check_path("export", "path", path)
    check_function("export", "the function", function)
    if Path(path).suffix.lower() != ".onnx":
        raise ArgumentValueError(f"export: the path must end in .onnx, got {os.fspath(path)!r}")
    onnx = import_extra("onnx", "models in the format ONNX", "onnx")
    places = [place for place, one in enumerate(examples) if _is_input(one)]
    is_open = _flags(open_batch, [examples[place] for place in places])
    is_input = dict(zip(places, is_open, strict=True))
    values, inputs = _merged(function, examples, is_input)
    names = _names_of(function, places)
    graph = Graph(onnx, names)
    infos = []
    for name, place, opened in zip(names, places, is_open, strict=True):
        array = _array(examples[place])
        dims: list[int | str] = list(array.shape)
        if opened:
            graph.batched = graph.batched or name
            dims[0] = "batch"
        infos.append(_info(onnx, name, array.dtype, dims))
    known = {value: name for name, value in zip(names, inputs, strict=True) if value is not None}
    writer = Writer(graph, known)
    results = []
    for position, value in enumerate(values):
        name = graph.free("output" if len(values) == 1 else f"output_{position}")
        made = writer.name(value)
        graph.nodes.append(onnx.helper.make_node("Identity", [made], [name]))
        results.append(_info(onnx, name, value.dtype, _spelled(value.shape)))
    if sum([one.nbytes for one in graph.arrays.values()]) > _MOST_BYTES:
        raise ArgumentValueError("export: the model takes more than 2 GiB, which no ONNX file can")
    graph.drop_unread([one.name for one in results])
    arrays = [onnx.numpy_helper.from_array(one, name) for name, one in graph.arrays.items()]
    made = onnx.helper.make_graph(graph.nodes, "tapetensor", infos, results, arrays)
    model = onnx.helper.make_model(
        made,
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_FORMAT,
        producer_name="tapetensor",
    )
    onnx.checker.check_model(model)
    _compare(model, function, examples, is_input)
    if any(is_open):
        _compare(model, function, _batch(examples, is_input, 1), is_input)
    content = model.SerializeToString()
    write_atomically(Path(path), lambda temporary: temporary.write_bytes(content))


def _compare(
    model: Any, function: Callable[..., Any], examples: tuple[Any, ...], is_open: dict[int, bool]
) -> None:
    """Refuse a model that gives something else than the function."""
    expected = function(*examples)
    several = expected if isinstance(expected, tuple | list) else [expected]
    evaluator = import_extra("onnx.reference", "models in the format ONNX", "onnx")
    given = [np.asarray(_array(examples[place])) for place in is_open]
    names = [one.name for one in model.graph.input]
    try:
        with np.errstate(all="ignore"):
            found = evaluator.ReferenceEvaluator(model).run(
                None, dict(zip(names, given, strict=True))
            )
    # What does not fit shows itself in many ways.
    except Exception as error:
        raise _other_thing(given, any(is_open.values())) from error
    for one, tensor in zip(found, several, strict=True):
        array = np.asarray(_array(tensor))
        size = np.max(np.abs(array), initial=1, where=np.isfinite(array))
        if one.shape != array.shape or not np.allclose(
            one, array, rtol=_NEAR, atol=_NEAR * size, equal_nan=True
        ):
            raise _other_thing(given, any(is_open.values()))


def _other_thing(given: list[Any], is_open: bool) -> TraceError:
    shapes = ", ".join([str(one.shape) for one in given])
    if not is_open:
        return refusal(f"what was written computes something else for inputs of {shapes}", None)
    return refusal(
        f"for inputs of {shapes} the function does another thing than at other batch sizes",
        None,
        "write it without asking for the size, or export with open_batch=False",
    )


def _is_input(value: object) -> bool:
    return isinstance(value, TensorBase | np.ndarray)


def _array(value: Any) -> Any:
    return value._array if isinstance(value, TensorBase) else value


def _flags(open_batch: bool | Sequence[bool], inputs: list[Any]) -> list[bool]:
    """Return which inputs have a batch of any size."""
    if not inputs:
        raise ArgumentValueError("export: give an example of each input, a tensor")
    for one in inputs:
        if isinstance(one, TensorBase) and one.tape is not None:
            raise ArgumentTypeError(
                "export: an example owns a tape, and a model computes no gradients; pass it plain"
            )
    if isinstance(open_batch, bool):
        flags = [open_batch] * len(inputs)
    else:
        flags = list(open_batch) if isinstance(open_batch, list | tuple) else []
        if len(flags) != len(inputs) or not all(isinstance(one, bool) for one in flags):
            raise ArgumentTypeError(
                f"export: open_batch must be a bool, or one for each of {len(inputs)} inputs, "
                f"got {open_batch!r}"
            )
    shapes = [_array(one).shape for one, opened in zip(inputs, flags, strict=True) if opened]
    if any(shape[:1] != shapes[0][:1] or not shape for shape in shapes):
        raise ArgumentValueError(
            f"export: the first axis is the batch, of one size, got {', '.join(map(str, shapes))}; "
            "say which inputs have it: open_batch=(True, False)"
        )
    return flags


def _merged(
    function: Callable[..., Any], examples: tuple[Any, ...], is_open: dict[int, bool]
) -> tuple[list[Value], list[Value | None]]:
    """Return the results and the inputs of the function as values that know the batch size."""
    error: TraceError | None = None
    for sizes in _SIZES if any(is_open.values()) else ((0,),):
        batches = [_batch(examples, is_open, size) for size in sizes]
        captures = [_captured(function, batch) for batch in batches]
        nodes = [
            [_node_of(arrays, batch[place]) for place in is_open]
            for (arrays, _), batch in zip(captures, batches, strict=True)
        ]
        results = [_results(result) for _, result in captures]
        known = {node: array for arrays, _ in captures for node, array in arrays.items()}
        merger = Merger(sizes, [[one for one in several if one] for several in nodes], known)
        try:
            return merger.values(results), [merger.value(one) for one in nodes[0]]
        except TraceError as found_error:
            error = found_error
    assert error is not None
    raise error


def _captured(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[dict[Node, Any], Any]:
    """Capture a function that changes nothing around itself.

    Returns:
        The inputs by node, arguments and arrays in the surroundings of the function, and its
        result, with nodes in the place of tensors and arrays.

    Raises:
        TraceError: if it changes something, or cannot be captured.
    """
    program = Program(prefers_steps=True)
    with CAPTURES, capturing(function, program, args, {}) as (one, run):

        def node_of(value: Any) -> Any:
            array = _array(value)
            if isinstance(array, ArrayTracer):
                return array.node
            return program.constant(array) if isinstance(array, np.ndarray) else value

        try:
            result = replaced(run(), node_of)
        except NotTracedError as error:
            # The function's own error is what there is to tell.
            raise error.__cause__ or error from None
        change = one.inputs.change()
        if change is not None:
            raise trace_error(f"{change} is changed, which a program of arrays cannot do")
        return dict(one.inputs.arrays), result


def _batch(examples: tuple[Any, ...], is_open: dict[int, bool], size: int) -> tuple[Any, ...]:
    """Return examples of another batch size."""
    batch = [*examples]
    for place in [place for place, opened in is_open.items() if opened]:
        array = np.asarray(_array(examples[place]))
        if not array.shape[0]:
            raise ArgumentValueError("export: an example has no rows")
        rows = np.ascontiguousarray(array[np.arange(size) % array.shape[0]])
        batch[place] = from_numpy(rows) if isinstance(examples[place], TensorBase) else rows
    return tuple(batch)


def _node_of(arrays: dict[Node, Any], example: Any) -> Node | None:
    """Return the node of an input; None where the function does not use it."""
    wanted = _array(example)
    return next((node for node, array in arrays.items() if array is wanted), None)


def _results(result: Any) -> list[Node]:
    several = list(result) if isinstance(result, tuple | list) else [result]
    for one in several:
        if not isinstance(one, Node):
            what = "a number" if isinstance(one, NumberTracer) else f"a {type(one).__name__}"
            raise refusal(
                f"the function returns {what}, and a model returns tensors",
                None,
                "return a tensor, or a tuple of them",
            )
    return several


def _names_of(function: Callable[..., Any], places: list[int]) -> list[str]:
    """Return the names of the arguments; numbers where there are none."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    plain = [one.name for one in parameters if one.kind <= inspect.Parameter.POSITIONAL_OR_KEYWORD]
    return [plain[place] if place < len(plain) else f"input_{place}" for place in places]


def _spelled(shape: Dims) -> list[int | str]:
    spelled: list[int | str] = []
    for dim in shape:
        if not isinstance(dim, Open):
            spelled.append(dim)
            continue
        times = "batch" if dim.times == 1 else f"{dim.times}*batch"
        spelled.append(times + (f"+{dim.plus}" if dim.plus else ""))
    return spelled


def _info(onnx: Any, name: str, dtype: Any, dims: list[int | str]) -> Any:
    element = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return onnx.helper.make_tensor_value_info(name, element, dims)
