"""Values and gradients of every op that PyTorch has too, where it is installed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tests.ops.calling import gradients_of, result_of, tensors_of
from tests.ops.reduction_rows import REDUCTIONS
from tests.ops.rows import Case, spaced
from tests.ops.samples import CASES, OPS
from tests.ops.transcendental_rows import PREDICATES, STEPS, TRANSCENDENTAL

torch: Any = pytest.importorskip("torch")
functional: Any = torch.nn.functional

# What rounding may do, as a share of the value and of the largest one beside it.
ROUNDING = {np.float32: (1e-5, 5e-6), np.float64: (1e-12, 1e-13)}


def _axes(x: Any, axis: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)


def _over_axes(function: Any) -> Callable[..., Any]:
    """Return a reduction; PyTorch takes no axes for all of them where numpy takes them for none."""

    def reduce(x: Any, axis: Any = None, keepdims: bool = False, **options: Any) -> Any:
        axes = _axes(x, axis)
        # A scalar, or no axis at all, reduces over one axis of size 1.
        if not axes:
            return reduce(x.unsqueeze(-1), -1, **options)
        try:
            return function(x, dim=axes, keepdim=keepdims, **options)
        except TypeError:
            # It takes one axis at a time: the last first, so that the others stay where they are.
            for one in sorted([one % x.ndim for one in axes], reverse=True):
                x = function(x, dim=one, keepdim=keepdims, **options)
            return x

    return reduce


def _variance(
    x: Any, axis: Any = None, keepdims: bool = False, correction: float = 0, eps: float = 0.0
) -> Any:
    return _over_axes(torch.var)(x, axis, keepdims, correction=correction) + eps


def _quantile(x: Any, q: float, axis: Any, keepdims: bool) -> Any:
    # PyTorch's goes over one axis at a time, or over all.
    axes = sorted(one % x.ndim for one in _axes(x, axis)) if x.ndim else []
    rows = x.permute([*[one for one in range(x.ndim) if one not in axes], *axes])
    rows = rows.flatten(x.ndim - len(axes)) if axes else x.unsqueeze(-1)
    # Of no rows it has no quantiles.
    y = rows.quantile(q, -1) if rows.numel() else rows.sum(-1)
    for one in axes if keepdims else []:
        y = y.unsqueeze(one)
    return y


def _of_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes numbers, too, where PyTorch's takes tensors only."""

    def call(*operands: Any) -> Any:
        dtype = next(one.dtype for one in operands if isinstance(one, torch.Tensor))
        return function(
            *[
                one if isinstance(one, torch.Tensor) else torch.tensor(one, dtype=dtype)
                for one in operands
            ]
        )

    return call


def _index(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    if not isinstance(index, np.ndarray):
        return index
    return torch.from_numpy(index if index.dtype == np.bool_ else index.astype(np.int64))


def _pad(x: Any, widths: Any, mode: str = "constant", value: float = 0) -> Any:
    if mode == "constant":
        # The last axis comes first there.
        flat = [width for pair in reversed(widths) for width in pair]
        return functional.pad(x, flat, value=value) if flat else x
    # In the other modes it leaves the leading axes alone.
    places = np.arange(x.numel()).reshape(x.shape)
    modes: dict[str, Any] = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    return x.flatten()[torch.from_numpy(np.pad(places, widths, mode=modes[mode]))]


def _segment_sum(x: Any, segments: Any, count: int) -> Any:
    return torch.zeros(count, *x.shape[1:], dtype=x.dtype).index_add(0, segments.long(), x)


def _scattered(x: Any, values: Any, indices: Any, axis: int = -1, accumulate: bool = False) -> Any:
    places = indices.long() % x.shape[axis]
    return (torch.scatter_add if accumulate else torch.scatter)(x, axis, places, values)


def _gathered(x: Any, indices: Any, axis: int = -1) -> Any:
    # PyTorch neither broadcasts the other axes nor counts from the end.
    places = indices.long() % max(x.shape[axis], 1)
    x, others = (one.transpose(axis, -1) for one in (x, places))
    leading = torch.broadcast_shapes(x.shape[:-1], others.shape[:-1])
    wide = others.expand(*leading, others.shape[-1])
    return torch.gather(x.expand(*leading, x.shape[-1]), -1, wide).transpose(axis, -1)


def _split(x: Any, sections: Any, part: int, axis: int = 0) -> Any:
    if isinstance(sections, int):
        return torch.tensor_split(x, sections, axis)[part]
    return torch.split(x, list(sections), axis)[part]


def _with_batch(function: Callable[..., Any], rank: int) -> Callable[..., Any]:
    """Return a function of images that takes any number of leading axes."""

    def batched(x: Any, *operands: Any, **options: Any) -> Any:
        leading = x.shape[: x.ndim - rank]
        y = function(x.reshape(-1, *x.shape[x.ndim - rank :]), *operands, **options)
        return y.reshape(*leading, *y.shape[1:])

    return batched


def _attention(
    query: Any, key: Any, value: Any, mask: Any = None, causal: bool = False, scale: Any = None
) -> Any:
    if isinstance(mask, torch.Tensor) and mask.ndim == 1:
        mask = mask[None]
    if causal:
        triangle = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
        if mask is None or mask.dtype == torch.bool:
            mask = triangle if mask is None else mask & triangle
        else:
            # PyTorch takes a bias for a mask of numbers.
            mask = mask.masked_fill(~triangle, -math.inf)
    return functional.scaled_dot_product_attention(query, key, value, mask, scale=scale)


def _of_pixels(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that rearranges no images, too, whose shape PyTorch leaves as it is."""

    def rearranged(x: Any, factor: int) -> Any:
        one = x if x.numel() else x.new_zeros(1, *x.shape[1:])
        y = function(one, factor)
        return y if x.numel() else y[:0] + x.sum()

    return rearranged


def _upscale(x: Any, size: Any, mode: str = "nearest", align_corners: bool = True) -> Any:
    aligned = {} if mode == "nearest" else {"align_corners": align_corners}
    return functional.interpolate(x, size=size, mode=mode, **aligned)


def _normalized(x: Any, axis: int = -1, eps: float = 1e-5) -> Any:
    # A layer norm without weights, which PyTorch has for the last axes.
    return functional.layer_norm(x.movedim(axis, -1), (x.shape[axis],), eps=eps).movedim(-1, axis)


SAME: dict[str, Callable[..., Any]] = {
    # A reduction has its name there, unless it stands below.
    **{op.name: _over_axes(getattr(torch, op.name, None)) for op in REDUCTIONS},
    **{
        name: getattr(torch, name)
        for name in ("exp", "log", "sqrt", "square", "abs", "sin", "cos", "tanh", "sigmoid", "relu")
    },
    **{op.name: getattr(torch, op.name) for op in (*TRANSCENDENTAL, *STEPS, *PREDICATES)},
    **{name: getattr(torch, name) for name in ("reciprocal", "add", "subtract", "multiply")},
    **{name: getattr(torch, name) for name in ("divide", "negative", "matmul")},
    "silu": functional.silu,
    "gelu": functional.gelu,
    "gelu_tanh": functional.gelu,
    "softplus": functional.softplus,
    "leaky_relu": functional.leaky_relu,
    "elu": functional.elu,
    "power": torch.pow,
    **{name: _of_tensors(getattr(torch, name)) for name in ("maximum", "minimum")},
    **{name: _of_tensors(getattr(torch, name)) for name in ("not_equal", "less", "less_equal")},
    **{name: _of_tensors(getattr(torch, name)) for name in ("greater", "greater_equal")},
    "equal": _of_tensors(torch.eq),
    "clip": lambda x, low=None, high=None: torch.clip(x, low, high),
    "nans_to": lambda x, number: torch.where(torch.isnan(x), number, x),
    "prelu": lambda x, slope: torch.where(x > 0, x, slope * x),
    "any": _over_axes(torch.any),
    "all": _over_axes(torch.all),
    "norm": _over_axes(torch.linalg.vector_norm),
    "floor_divide": _of_tensors(lambda lhs, rhs: torch.floor(lhs / rhs)),
    "remainder": _of_tensors(torch.remainder),
    "logaddexp": _of_tensors(torch.logaddexp),
    "atan2": _of_tensors(torch.atan2),
    "cumulative_prod": lambda x, axis: torch.cumprod(x, axis, dtype=x.dtype),
    "cumulative_max": lambda x, axis: torch.cummax(x, axis)[0],
    "cumulative_min": lambda x, axis: torch.cummin(x, axis)[0],
    "cumulative_logsumexp": torch.logcumsumexp,
    "inv": torch.linalg.inv,
    "det": torch.linalg.det,
    "solve": torch.linalg.solve,
    "slogdet": lambda x, part: torch.linalg.slogdet(x)[part],
    "pinv": torch.linalg.pinv,
    "cholesky": lambda x: torch.linalg.cholesky(0.5 * (x.mT + x)),
    "pad": _pad,
    "segment_sum": _segment_sum,
    "and": torch.logical_and,
    "or": torch.logical_or,
    "xor": torch.logical_xor,
    "invert": torch.logical_not,
    "max": _over_axes(torch.amax),
    "min": _over_axes(torch.amin),
    "var": _variance,
    "std": lambda x, *args, **options: _variance(x, *args, **options).sqrt(),
    "normalize": _normalized,
    "softmax": lambda x, axis=-1: torch.softmax(x, axis),
    "log_softmax": lambda x, axis=-1: torch.log_softmax(x, axis),
    "argsort": lambda x, axis=-1, descending=False: torch.argsort(
        x, dim=axis, descending=descending, stable=True
    ),
    "argmax": torch.argmax,
    "argmin": torch.argmin,
    "sort": lambda x, axis=-1, descending=False: torch.sort(
        x, dim=axis, descending=descending, stable=True
    )[0],
    "median": lambda x, axis=None, keepdims=False: _quantile(x, 0.5, axis, keepdims),
    "quantile": lambda x, q, axis=None, keepdims=False: _quantile(x, q, axis, keepdims),
    "topk": lambda x, k, axis=-1, largest=True: torch.topk(x, k, axis, largest)[0],
    "reshape": torch.reshape,
    "flatten": torch.flatten,
    "permute_dims": lambda x, axes: torch.permute(x, axes),
    "transpose": lambda x: x.transpose(-1, -2),
    "broadcast_to": lambda x, shape: torch.broadcast_to(x, shape),
    "squeeze": lambda x, axis: torch.squeeze(x, axis),
    "expand_dims": lambda x, axis: torch.unsqueeze(x, axis),
    "split": _split,
    "cumulative_sum": lambda x, axis: torch.cumsum(x, axis, dtype=x.dtype),
    "roll": lambda x, shift, axis=None: torch.roll(x, shift, axis),
    "realize": lambda x, shape: torch.reshape(x, x.shape),
    "tril": lambda x, k=0: torch.tril(x, k),
    "triu": lambda x, k=0: torch.triu(x, k),
    "getitem": lambda x, index: x[_index(index)],
    "take": lambda x, indices, axis=0: x[(slice(None),) * (axis % x.ndim) + (indices.long(),)],
    "take_along_axis": _gathered,
    "put_along_axis": _scattered,
    "where": torch.where,
    "concat": lambda *parts, axis=0: torch.concat(parts, axis),
    "stack": lambda *parts, axis=0: torch.stack(parts, axis),
    "einsum": lambda *operands, subscripts: torch.einsum(subscripts, *operands),
    "unbiased_linear": functional.linear,
    "linear": functional.linear,
    "conv1d": _with_batch(functional.conv1d, 2),
    "conv2d": _with_batch(functional.conv2d, 3),
    "conv_transpose1d": _with_batch(functional.conv_transpose1d, 2),
    "conv_transpose2d": _with_batch(functional.conv_transpose2d, 3),
    "interpolate": _with_batch(
        lambda x, size, mode="nearest", align_corners=False: _upscale(x, size, mode, align_corners),
        3,
    ),
    "upscale2d": _with_batch(_upscale, 3),
    "avg_pool2d": _with_batch(functional.avg_pool2d, 3),
    "max_pool2d": _with_batch(functional.max_pool2d, 3),
    "min_pool2d": _with_batch(lambda x, *a, **o: -functional.max_pool2d(-x, *a, **o), 3),
    "unfold": _with_batch(functional.unfold, 3),
    "fold": _with_batch(functional.fold, 2),
    "pixel_shuffle": _of_pixels(functional.pixel_shuffle),
    "pixel_unshuffle": _of_pixels(functional.pixel_unshuffle),
    "scaled_dot_product_attention": _attention,
    "softsign": functional.softsign,
}

# Samples that PyTorch refuses: steps below 0, and windows with holes that are averaged.
REFUSED_BY_TORCH = {("getitem", "step must be greater"), ("avg_pool2d", "argument 'dilation'")}

# What PyTorch has nothing the same for, or has as a layer (`tests/nn/test_against_torch.py`).
OTHERS = {
    "dropout": "draws other random numbers",
    "astype": "is a matter of dtypes",
    "to": "is a matter of where arrays are",
    "ssm_scan": "is not in PyTorch",
    **dict.fromkeys(("eigh", "qr", "svd"), "may have other signs, and is tried below"),
    "row_scale": "is a custom op of the tests",
    "rnn": "is a layer there",
    "lstm": "is a layer there",
    "gru": "is a layer there",
}


def _of_torch(operand: Any, dtype: Any, traced: bool) -> Any:
    if not isinstance(operand, np.ndarray):
        return operand
    if operand.dtype.kind == "f":
        return torch.tensor(operand.astype(dtype), requires_grad=traced)
    return torch.from_numpy(operand.copy())


def _assert_close(found: Any, wanted: Any, dtype: Any) -> None:
    """Compare arrays up to rounding, which grows with how much is added up."""
    relative, absolute = ROUNDING[dtype]
    assert found.shape == wanted.shape
    finite = np.abs(np.where(np.isfinite(wanted), wanted, 0))
    np.testing.assert_allclose(
        found, wanted, rtol=relative, atol=absolute * finite.max(initial=1.0)
    )


def test_every_op_of_the_table_has_a_counterpart_or_a_reason_for_having_none() -> None:
    assert {op.name for op in OPS} == SAME.keys() | OTHERS.keys()
    assert not SAME.keys() & OTHERS.keys()


# Without a degree of freedom both give NaN or an infinity, PyTorch with a warning.
@pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.op.name in SAME], ids=lambda case: case.name
)
def test_value_and_gradients_are_those_of_torch(case: Case, dtype: Any) -> None:
    theirs = [_of_torch(one, dtype, case.op.is_differentiable) for one in case.sample.operands]
    try:
        expected = SAME[case.op.name](*theirs, **case.sample.options)
    except (TypeError, ValueError) as error:
        if any(case.op.name == op and said in str(error) for op, said in REFUSED_BY_TORCH):
            pytest.skip(str(error))
        raise
    ours = tensors_of(case.sample, dtype)
    result = result_of(case, ours)

    _assert_close(result.numpy(), expected.detach().numpy(), dtype)

    if case.op.is_differentiable and case.sample.float_positions:
        cotangent = tt.from_numpy(spaced(*result.shape, seed=3).astype(dtype))
        expected.backward(torch.tensor(cotangent.numpy()))
        for position, gradient in zip(
            case.sample.float_positions, gradients_of(case, ours, cotangent), strict=True
        ):
            none = np.zeros(ours[position].shape)
            wanted = theirs[position].grad
            _assert_close(
                none if gradient is None else gradient,
                none if wanted is None else wanted.numpy(),
                dtype,
            )


def _of_their_svd(x: Any) -> tuple[Any, ...]:
    return tuple(torch.linalg.svd(x, full_matrices=False))


@pytest.mark.parametrize(
    ("name", "theirs", "shape"),
    [
        ("eigh", lambda x: torch.linalg.eigh(0.5 * (x + x.mT)), (2, 3, 3)),
        *(("qr", torch.linalg.qr, shape) for shape in ((4, 3), (3, 3), (3, 5))),
        *(("svd", _of_their_svd, shape) for shape in ((4, 3), (3, 3), (2, 3, 5))),
    ],
)
def test_decompositions_are_those_of_torch_up_to_signs(name: str, theirs: Any, shape: Any) -> None:
    x = tt.from_numpy(spaced(*shape))
    operand = torch.tensor(x.numpy(), requires_grad=True)
    expected = [part.square() for part in theirs(operand)]
    weights = [spaced(*part.shape, seed=5) for part in expected]
    sum((p * torch.tensor(w)).sum() for p, w in zip(expected, weights, strict=True)).backward()

    parts = [part.square() for part in getattr(x.trace(), name)()]
    for found, wanted in zip(parts, expected, strict=True):
        np.testing.assert_allclose(
            found.detach().numpy(), wanted.detach().numpy(), rtol=1e-9, atol=1e-9
        )
    products = [p * tt.from_numpy(w) for p, w in zip(parts, weights, strict=True)]
    loss = products[0].sum()
    for product in products[1:]:
        loss = loss + product.sum()

    gradient = loss.backward()[x].numpy()
    np.testing.assert_allclose(gradient, operand.grad.numpy(), rtol=1e-9, atol=1e-9)
