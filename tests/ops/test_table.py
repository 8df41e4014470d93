"""The table is complete: every public op has a row, and every kernel is reached by a sample."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import tapetensor as tt
from tapetensor import kernels
from tapetensor.arguments.spellings import OF_TENSORS
from tapetensor.tape import Kernel
from tapetensor.tape.history import gathered, op_name
from tests.ops.calling import result_of, tensors_of, traced_at
from tests.ops.rows import Op
from tests.ops.samples import CASES, OPS

# What a tensor has beside ops: state that is read, tapes that are handed on, Python's protocols.
_READS = {
    "array", "id", "shape", "dtype", "ndim", "size", "numpy", "item", "tolist", "wrap_gradient",
}  # fmt: skip
_TAPE = {
    "tape", "history", "owns_tape", "tape_type", "trace", "traced", "split_tape", "put_tape",
    "with_empty_tape",
    "retaped", "detach", "backward", "to_html", "tree",
}  # fmt: skip
_PROTOCOLS = {
    "__init__", "__array__", "__array_function__", "__array_ufunc__", "__bool__", "__copy__",
    "__deepcopy__", "__dir__", "__dlpack__", "__dlpack_device__", "__float__", "__format__",
    "__hash__", "__int__", "__iter__", "__len__", "__reduce__", "__repr__", "__rmatmul__",
    "__setitem__",
}  # fmt: skip
# Functions of these rooms make tensors, replay tapes, or tell whether there is one.
_NO_OPS = {"creation", "ownership", "base"}
# What layers apply, without being public by themselves.
_OF_LAYERS = {"linear", "unbiased_linear", "rnn", "lstm", "gru"}
_OF_PYTHON = {
    "__module__", "__doc__", "__slots__", "__orig_bases__", "__parameters__", "__annotations__",
    "__weakref__", "__static_attributes__", "__firstlineno__",
}  # fmt: skip
# What these rooms hold is applied by layers, losses and hand-driven tapes, whose tests try it.
_OF_MODULES = {"flat", "losses", "normalization"}
# The kernel of an embedding whose gradient is sparse.
_OF_EMBEDDINGS = {"take_rows"}
_ROOMS = [
    importlib.import_module(f"{kernels.__name__}.{room.name}")
    for room in pkgutil.iter_modules(kernels.__path__)
    if not room.ispkg
]


def _public_methods() -> set[str]:
    rooms = [cls for cls in tt.Tensor.__mro__ if cls.__module__.startswith("tapetensor.")]
    names = {name for cls in rooms for name in vars(cls)}
    public = {name for name in names if name.startswith("__") or not name.startswith("_")}
    return public - _READS - _TAPE - _PROTOCOLS - _OF_PYTHON - set(OF_TENSORS)


def _public_functions() -> set[str]:
    return {
        name
        for name, member in vars(tt).items()
        if inspect.isfunction(member)
        and member.__module__.startswith("tapetensor.tensor.")
        and member.__module__.removeprefix("tapetensor.tensor.") not in _NO_OPS
    }


def _kernels(room: ModuleType) -> set[str]:
    return {
        name
        for name, member in vars(room).items()
        if inspect.isfunction(member)
        and member.__module__ == room.__name__
        and not name.startswith("_")
    }


def test_every_public_op_has_a_row_and_every_row_a_public_op() -> None:
    covered = {name for op in OPS for name in op.covers}

    assert covered == _public_methods() | _public_functions()


def test_the_introspection_finds_methods_operators_and_functions() -> None:
    assert {"exp", "std", "__rpow__", "__getitem__", "__xor__"} <= _public_methods()
    assert {"where", "einsum"} <= _public_functions()


@pytest.mark.parametrize("room", _ROOMS, ids=lambda room: room.__name__)
def test_a_public_function_beside_the_kernels_is_a_kernel(room: ModuleType) -> None:
    returned = {name: vars(room)[name].__annotations__["return"] for name in sorted(_kernels(room))}

    assert returned == dict.fromkeys(returned, "tuple[Array, Pullbacks]")


@pytest.mark.parametrize(
    "room",
    [room for room in _ROOMS if room.__name__.rpartition(".")[2] not in _OF_MODULES],
    ids=lambda room: room.__name__,
)
def test_every_kernel_is_reached_by_a_sample(room: ModuleType) -> None:
    reached: set[Kernel] = set()
    for case in CASES:
        if case.op.is_differentiable:
            operands = traced_at(tensors_of(case.sample), case.sample.float_positions)
            reached.update(one[1] for one in gathered(result_of(case, operands).history)[0])
    names = {
        getattr(kernel, "func", kernel).__name__
        for kernel in reached
        if getattr(kernel, "func", kernel).__module__ == room.__name__
    }

    assert names == _kernels(room) - _OF_EMBEDDINGS


def test_every_op_is_tried_on_one_element_and_on_none() -> None:
    sizes: dict[str, set[int]] = {op.name: set() for op in OPS if op.is_differentiable}
    for case in CASES:
        if case.op.is_differentiable and case.sample.float_positions:
            first = case.sample.operands[case.sample.float_positions[0]]
            sizes[case.op.name].add(first.size)

    # Their first operand has several numbers for each unit; they have a sample of one unit.
    assert {name for name, tried in sizes.items() if not {0, 1} <= tried} == {"lstm", "gru"}


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_a_row_is_named_as_its_errors_spell_the_op(op: Op) -> None:
    sample = op.samples[0]
    operands = tensors_of(sample)
    if op.is_differentiable:
        operands = traced_at(operands, sample.float_positions)
        result = op.call(*operands, **sample.options)
        # The parts of a split are read one by one.
        assert op_name(result.history[1]) in {op.name, "getitem"}
    assert op.samples
    assert op.covers or op.name in _OF_LAYERS
