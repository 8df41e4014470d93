"""Spellings of other libraries, and those of this one: one table for each place.

The run time says it where a name is missing, and the mypy plugin where it sees one. Each cure is a
line that runs, and after a comma why, if that is not plain.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Never

from typing_extensions import override

from tapetensor.errors import ArgumentTypeError

_VALUES = "for tensors are values, which no op changes"
_RETURNED = "for backward() returns the gradients"
_BY_TAPE = "where a plain input is inference, and a traced one training"
_NEW = "which makes a new tensor"

# The attributes of a tensor.
OF_TENSORS: Final = {
    "T": "x.transpose()",
    "mT": "x.transpose()",
    "t": "x.transpose()",
    "view": "x.reshape((2, 6)), with the sizes in one tuple",
    "ravel": "x.flatten()",
    "unsqueeze": "x.expand_dims(0)",
    "permute": "x.permute_dims((1, 0)), with the axes in one tuple",
    "swapaxes": "x.permute_dims((1, 0)), with the axes in one tuple",
    "moveaxis": "x.permute_dims((1, 0)), with the axes in one tuple",
    "dim": "x.ndim, which is a number",
    "ndimension": "x.ndim, which is a number",
    "numel": "x.size, which is a number",
    "nelement": "x.size, which is a number",
    "cumsum": "x.cumulative_sum(axis=0)",
    "cumprod": "x.cumulative_prod(axis=0)",
    "gather": "x.take_along_axis(indices, axis=1)",
    "scatter": "x.put_along_axis(indices, values, axis=1)",
    "scatter_add": "x.put_along_axis(indices, values, axis=1, accumulate=True)",
    "index_select": "x.take(positions, axis=0)",
    "masked_fill": "tt.where(mask, 0.0, x)",
    "expand": "x.broadcast_to((2, 3, 4)), with the sizes in one tuple",
    "repeat": "tt.concat((x, x), axis=0)",
    "tile": "tt.concat((x, x), axis=0)",
    "chunk": "x.split(2, axis=1)",
    "unbind": "list(x)",
    "flip": "x[::-1]",
    "clamp": "x.clip(0.0, 1.0)",
    "amax": "x.max(axis=1)",
    "amin": "x.min(axis=1)",
    "pow": "x ** 2",
    "neg": "-x",
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "div": "x / y",
    "matmul": "x @ w",
    "mm": "x @ w",
    "bmm": "x @ w",
    "dot": "x @ w",
    "eq": "x == y",
    "ne": "x != y",
    "gt": "x > y",
    "ge": "x >= y",
    "lt": "x < y",
    "le": "x <= y",
    "float": "x.astype(np.float32)",
    "double": "x.astype(np.float64)",
    "int": "x.astype(np.int32)",
    "long": "x.astype(np.int64)",
    "bool": "x != 0.0",
    "type": "x.astype(np.float32)",
    "cuda": "x.to(cupy)",
    "cpu": "x.to(numpy)",
    "clone": f"x, {_VALUES}",
    "copy": f"x, {_VALUES}",
    "contiguous": "x, for ops take any layout",
    "data": "x.detach(), which may not be written to; for an array x.numpy()",
    "grad": f"loss.backward()[x], {_RETURNED}",
    "retain_grad": f"loss.backward()[x], {_RETURNED}",
    "grad_fn": "x.owns_tape",
    "requires_grad": "x.owns_tape, for inputs are traced and parameters need not be",
    "requires_grad_": "x.trace(), which returns a new tensor",
    "zero_": "tt.zeros(x.shape), " + _NEW,
    "fill_": "tt.full(x.shape, 1.0), " + _NEW,
    "add_": "x = x + y, " + _NEW,
    "sub_": "x = x - y, " + _NEW,
    "mul_": "x = x * y, " + _NEW,
    "div_": "x = x / y, " + _NEW,
    "clamp_": "x = x.clip(0.0, 1.0), " + _NEW,
    "copy_": "x = y, for names may be bound again, and " + _VALUES.removeprefix("for "),
}

# The attributes of a module.
OF_MODULES: Final = {
    "train": f"model.forward(x.trace()), {_BY_TAPE}",
    "eval": f"model.forward(x), {_BY_TAPE}",
    "state_dict": 'io.save("model.npz", model), or for the arrays io.state_dict(model)',
    "load_state_dict": 'io.load("model.npz", model), or of arrays io.load_state_dict(model, state)',
    "named_parameters": "model.parameters().items()",
    "named_modules": "model.modules().items()",
    "children": "model.modules().values()",
    "zero_grad": f"loss.backward(), {_RETURNED} and leaves none behind",
    "requires_grad_": 'nn.Selection(model, without=["bias"]), which the optimizer is given',
    "cuda": "model.to(cupy)",
    "cpu": "model.to(numpy)",
    "register_buffer": "nn.buffer(nn.init.zeros), which declares a field of the class",
    "register_parameter": "nn.parameter(nn.init.zeros), which declares a field of the class",
}

_METHODS: Final = (
    *("abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "exp", "expm1", "floor", "gelu"),
    *("isfinite", "isinf", "isnan", "log", "log10", "log1p", "log2", "log_softmax", "relu"),
    *("round", "rsqrt", "sigmoid", "sign", "silu", "sin", "sinh", "softmax", "softplus", "sqrt"),
    *("square", "tan", "tanh", "argmax", "argmin", "argsort", "logsumexp", "max"),
    *("mean", "median", "min", "norm", "prod", "sort", "std", "sum", "var", "flatten", "transpose"),
    *("tril", "triu"),
)

# The names of the package and of its rooms.
OF_PACKAGES: Final[Mapping[str, Mapping[str, str]]] = {
    "tapetensor": {
        **{name: f"x.{name}(), for it is a method" for name in _METHODS},
        "all": "(x > 0.0).all(), for it is a method",
        "any": "(x > 0.0).any(), for it is a method",
        "cat": "tt.concat((x, y), axis=0)",
        "concatenate": "tt.concat((x, y), axis=0)",
        "array": "tt.from_numpy([[1.0, 2.0]], (1, 2))",
        "asarray": "tt.from_numpy([[1.0, 2.0]], (1, 2))",
        "as_tensor": "tt.from_numpy([[1.0, 2.0]], (1, 2))",
        "FloatTensor": "tt.from_numpy([[1.0, 2.0]], (1, 2))",
        "LongTensor": "tt.from_numpy([1, 2], (2,))",
        "randn": "tt.normal((2, 3), rng=np.random.default_rng(0))",
        "rand": "tt.uniform((2, 3), rng=np.random.default_rng(0))",
        "randint": "tt.from_numpy(np.random.default_rng(0).integers(10, size=3), (3,))",
        "randperm": "tt.from_numpy(np.random.default_rng(0).permutation(3), (3,))",
        "manual_seed": "np.random.default_rng(0), which is handed to what draws",
        "zeros_like": "tt.zeros(x.shape)",
        "ones_like": "tt.ones(x.shape)",
        "full_like": "tt.full(x.shape, 1.0)",
        "empty": "tt.zeros((2, 3))",
        "linspace": "tt.from_numpy(np.linspace(0.0, 1.0, 5), (5,), np.float32)",
        "matmul": "x @ w",
        "mm": "x @ w",
        "bmm": "x @ w",
        "dot": "x @ w",
        "clamp": "x.clip(0.0, 1.0), for it is a method",
        "clip": "x.clip(0.0, 1.0), for it is a method",
        "reshape": "x.reshape((2, 6)), for it is a method",
        "squeeze": "x.expand_dims(0).squeeze(0), for it is a method",
        "unsqueeze": "x.expand_dims(0), for it is a method",
        "topk": "x.topk(2), for it is a method",
        "split": "x.split(2, axis=1), for it is a method",
        "gather": "x.take_along_axis(indices, axis=1), for it is a method",
        "cumsum": "x.cumulative_sum(axis=0), for it is a method",
        "no_grad": f"model.forward(x), {_BY_TAPE}",
        "inference_mode": f"model.forward(x), {_BY_TAPE}",
        "enable_grad": f"model.forward(x.trace()), {_BY_TAPE}",
        "save": 'io.save("model.npz", model)',
        "load": 'io.load("model.npz", model)',
        "float32": "np.float32, for dtypes are numpy's",
        "float64": "np.float64, for dtypes are numpy's",
        "int64": "np.int64, for dtypes are numpy's",
        "long": "np.int64, for dtypes are numpy's",
        "is_tensor": "isinstance(x, tt.Tensor)",
        "allclose": "np.allclose(x, y)",
        "jit": "tt.compile(step)",
        "autograd": "tt.grad(f, x)",
    },
    "tapetensor.nn": {
        "CrossEntropyLoss": "losses.cross_entropy(logits, labels), for losses are functions",
        "NLLLoss": "losses.nll(logits.log_softmax(), labels), for losses are functions",
        "MSELoss": "losses.mse(x, y), for losses are functions",
        "L1Loss": "losses.mae(x, y), for losses are functions",
        "SmoothL1Loss": "losses.smooth_l1(x, y), for losses are functions",
        "HuberLoss": "losses.huber(x, y), for losses are functions",
        "BCELoss": "losses.binary_cross_entropy(shares, shares), for losses are functions",
        "BCEWithLogitsLoss": "losses.binary_cross_entropy_with_logits(x, shares), "
        "for losses are functions",
        "KLDivLoss": "losses.kl_div(logits, shares), which takes logits; losses are functions",
        "functional": "x.relu(), for these are methods of a tensor; losses are in tt.losses",
        "Parameter": "nn.parameter(nn.init.zeros), which declares a field of the class",
        "ModuleList": "nn.repeat(3), for a field that is annotated list[...]",
        "MultiheadAttention": "nn.MultiHeadAttention",
        "TransformerEncoderLayer": "nn.EncoderBlock",
        "TransformerDecoderLayer": "nn.DecoderBlock",
        "Upsample": "nn.Upscale2dBy",
        "Relu": "nn.ReLU",
        "utils": "loss.backward().clip_by_global_norm(1.0), where it is for clip_grad_norm_",
    },
    "tapetensor.optim": {
        "SGD": "optim.Sgd",
        "RMSProp": "optim.RMSprop",
        "lr_scheduler": "optim.schedules, which are functions that lr= takes",
        "LBFGS": "tt.ravel(model).objective(loss_of), which scipy.optimize.minimize takes",
    },
    "tapetensor.losses": {
        "mse_loss": "losses.mse(x, y)",
        "l1_loss": "losses.mae(x, y)",
        "l1": "losses.mae(x, y)",
        "smooth_l1_loss": "losses.smooth_l1(x, y)",
        "huber_loss": "losses.huber(x, y)",
        "nll_loss": "losses.nll(logits.log_softmax(), labels)",
        "cross_entropy_loss": "losses.cross_entropy(logits, labels)",
        "bce": "losses.binary_cross_entropy(shares, shares)",
        "bce_with_logits": "losses.binary_cross_entropy_with_logits(x, shares)",
    },
    "tapetensor.data": {
        "DataLoader": "data.batches(x, labels, size=2, rng=np.random.default_rng(0))",
        "random_split": "data.split(x, labels, held_out=0.4, rng=np.random.default_rng(0))",
        "train_test_split": "data.split(x, labels, held_out=0.4, rng=np.random.default_rng(0))",
        "TensorDataset": "data.batches(x, labels, size=2, rng=np.random.default_rng(0))",
    },
}

# The arguments of ops.
_OF_ARGUMENTS: Final = {
    "dim": "axis",
    "dims": "axis",
    "keepdim": "keepdims",
    "unbiased": "correction",
    "ddof": "correction",
    "dtype": "astype(...) before or after it",
    "out": "x = ..., for tensors are values",
}


def missing_from(package: str, name: str) -> AttributeError:
    """Return the error for a name that a package has not; it says what that is called here."""
    found = OF_PACKAGES[package].get(name)
    cure = f"; write {found}" if found else ""
    return AttributeError(f"module {package!r} has no attribute {name!r}{cure}")


class CalledOtherwise:
    """The place of an attribute that other libraries have: to read it is an error with the cure.

    A `__getattr__` of the class would cost each op a fifth of its time: where there is one, Python
    reads every attribute the slow way.
    """

    def __init__(self, name: str, cure: str) -> None:
        self._name, self._cure = name, cure

    def __get__(self, instance: object, owner: type) -> Never:
        raise AttributeError(
            f"{owner.__name__!r} object has no attribute {self._name!r}; write {self._cure}",
            name=self._name,
            obj=instance,
        )

    @override
    def __repr__(self) -> str:
        """Say what to write, as the help of the class lists it."""
        return f"<not here; write {self._cure}>"


def without_spellings(instance: object, names: Iterable[str]) -> list[str]:
    """Return the names of what there is, without those that only say what it is called here."""
    return [
        name
        for name in names
        if not isinstance(inspect.getattr_static(instance, name, None), CalledOtherwise)
    ]


def no_such_argument(op: str, given: Iterable[str]) -> ArgumentTypeError:
    """Return the error for arguments that an op has not; it says what they are called here."""
    name = next(iter(given))
    cure = f"; write {_OF_ARGUMENTS[name]}" if name in _OF_ARGUMENTS else ""
    return ArgumentTypeError(f"{op}: there is no argument {name}{cure}")


def not_in_a_tuple(op: str, given: Sequence[object]) -> ArgumentTypeError:
    """Return the error for sizes or axes that are given one by one."""
    return ArgumentTypeError(f"{op}: takes one tuple; write x.{op}(({', '.join(map(str, given))}))")


def given_by_name(name: str, sizes: Sequence[object], has_dims: bool) -> str:
    """Return the complaint about a module that takes its fields by name, and is given sizes."""
    dims = ", ".join("..." if size is None else f"L[{size}]" for size in sizes)
    made = f"{name}[{dims}]" if has_dims else name
    return f"{name}: its fields are given by name; for sizes write tt.build({made}, rng=rng)"
