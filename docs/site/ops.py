"""Write the reference of ops by family: ``python -m docs.site.ops``.

docs/reference/ops.md is a table of all of them, docs/reference/tensor.md their docstrings. Which
family an op belongs to, and what it is called elsewhere, stands here and nowhere else.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import tapetensor as tt

REFERENCE = Path(__file__).parents[1] / "reference"
# By family, each op and its names in numpy and in PyTorch; ``=`` is that of the op, ``-`` is none.
FAMILIES = {
    "Elementwise": """
        abs = =; sign = =; square = =; sqrt = =; rsqrt - =; reciprocal = =; exp = =; expm1 = =
        log = =; log1p = =; log2 = =; log10 = =; logaddexp = =; sin = =; cos = =; tan = =
        asin = =; acos = =; atan = =; atan2 arctan2 =; sinh = =; cosh = =; tanh = =
        asinh = =; acosh = =; atanh = =; erf - =; clip = =; nans_to - -
    """,
    "Activations": """
        relu - relu; leaky_relu - nn.functional.leaky_relu; prelu - nn.functional.prelu
        elu - nn.functional.elu; gelu - nn.functional.gelu; silu - nn.functional.silu
        sigmoid - sigmoid; softplus - nn.functional.softplus; softmax - softmax
        log_softmax - log_softmax; normalize - nn.functional.layer_norm
        dropout - nn.functional.dropout
    """,
    "Rounding and tests": """
        floor = =; ceil = =; round = =; trunc = =; isnan = =; isinf = =; isfinite = =
    """,
    "Choices": "where = =; maximum = =; minimum = =",
    "Reductions": """
        sum = =; prod = =; mean = =; var = =; std = =; max = amax; min = amin; argmax = =
        argmin = =; norm linalg.norm linalg.vector_norm; logsumexp - =; median = -
        quantile = =; any = =; all = =
    """,
    "Running totals": """
        cumulative_sum cumsum cumsum; cumulative_prod cumprod cumprod
        cumulative_max maximum.accumulate cummax; cumulative_min minimum.accumulate cummin
        cumulative_logsumexp logaddexp.accumulate logcumsumexp; diff = =
    """,
    "Order": "sort = =; argsort = =; topk - =",
    "Shapes": """
        reshape = =; flatten ravel =; permute_dims transpose permute; transpose matrix_transpose mT
        squeeze = =; expand_dims = unsqueeze; broadcast_to = =; roll = =; pad = nn.functional.pad
    """,
    "Joining and splitting": "concat concatenate cat; stack = =; split = tensor_split",
    "Indexing": """
        take = index_select; take_along_axis = take_along_dim; put_along_axis = scatter
        segment_sum - index_add
    """,
    "Linear algebra": """
        einsum = =; solve linalg.solve linalg.solve; inv linalg.inv linalg.inv
        det linalg.det linalg.det; slogdet linalg.slogdet linalg.slogdet
        cholesky linalg.cholesky linalg.cholesky; eigh linalg.eigh linalg.eigh
        qr linalg.qr linalg.qr; svd linalg.svd linalg.svd; pinv linalg.pinv linalg.pinv
        tril = =; triu = =
    """,
    "Convolutions, windows and images": """
        conv1d - =; conv2d - =; conv_transpose1d - =; conv_transpose2d - =
        max_pool2d - nn.functional.max_pool2d; min_pool2d - -
        avg_pool2d - nn.functional.avg_pool2d; unfold - nn.functional.unfold
        fold - nn.functional.fold; pixel_shuffle - =; pixel_unshuffle - =
        interpolate - nn.functional.interpolate; upscale2d - nn.functional.interpolate
    """,
    "Sequences": """
        scaled_dot_product_attention - nn.functional.scaled_dot_product_attention; ssm_scan - -
    """,
    "Dtypes, libraries and known shapes": "astype astype Tensor.to; to - Tensor.to; realize - -",
}
_CREATION = (
    *("zeros", "ones", "full", "arange", "eye", "normal", "uniform", "from_numpy", "from_array"),
    "from_memmap",
)
_OWN_OPS = ("custom_op",)
_READ = (
    *("id", "shape", "dtype", "ndim", "size", "owns_tape", "tape_type", "numpy", "item", "tolist"),
)
_FORMULA = re.compile(r"\n\n    (?! )(.+)\n(?:\n|    )", re.MULTILINE)


def ops() -> dict[str, list[tuple[str, str, str]]]:
    """Return the ops by family, each with what numpy and PyTorch call it; nothing for none."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for family, text in FAMILIES.items():
        found[family] = []
        for row in filter(None, map(str.strip, text.replace("\n", ";").split(";"))):
            name, numpys, torchs = row.split()
            other = {"=": name, "-": ""}
            found[family].append((name, other.get(numpys, numpys), other.get(torchs, torchs)))
    return found


def path_of(name: str) -> str:
    """Return where an op is: a method of a tensor, or a function of the package."""
    return f"tapetensor.Tensor.{name}" if hasattr(tt.Tensor, name) else f"tapetensor.{name}"


def _what(name: str) -> str:
    """Return the formula of an op, or what it does in a sentence."""
    text = inspect.getdoc(getattr(tt.Tensor, name, None) or getattr(tt, name)) or ""
    formula = _FORMULA.search(text.partition("\nShape:")[0] + "\n\n")
    if formula:
        return f"`{re.split(r' {2,}|,$', formula[1].strip())[0].rstrip(',')}`".replace("|", "\\|")
    sentence = " ".join(text.partition("\n\n")[0].split()).removeprefix("Return ").rstrip(".")
    return sentence.partition("; ")[0].replace("|", "\\|")


def table() -> str:
    """Return the page with all ops."""
    lines = [
        "# All ops",
        "",
        "By family, with their names in numpy and in PyTorch. What differs where the name is the",
        "same stands in [Coming from PyTorch](../coming_from.md#from-pytorch).",
        "Operators (`+ - * / // % ** @`, comparisons, `& | ^ ~` of masks, `x[...]`) are Python's.",
        "`python -m docs.site.ops` writes this page from the docstrings.",
    ]
    for family, rows in ops().items():
        lines += ["", f"## {family}", "", "| op | what it is | numpy | PyTorch |"]
        lines.append("|---|---|---|---|")
        for name, numpys, torchs in rows:
            spelled = f"x.{name}" if hasattr(tt.Tensor, name) else f"tt.{name}"
            others = [f"`{one}`" if one else "" for one in (numpys, torchs)]
            lines.append(
                f"| [`{spelled}`](tensor.md#{path_of(name)}) | {_what(name)} | {others[0]} "
                f"| {others[1]} |"
            )
    return "\n".join(lines) + "\n"


def reference() -> str:
    """Return the page with the docstrings, family by family."""
    lines = [
        "# Tensors",
        "",
        "[All ops](ops.md) stand in one table, too. `python -m docs.site.ops` writes this page.",
        "",
        "::: tapetensor.Tensor",
        "    options:",
        "      members: false",
        "      merge_init_into_class: false",
        "",
        "## Creation",
    ]
    lines += [f"\n::: tapetensor.{name}" for name in _CREATION]
    lines += ["", "## What a tensor is"]
    lines += [f"\n::: tapetensor.Tensor.{name}" for name in _READ]
    for family, rows in ops().items():
        lines += ["", f"## {family}"]
        lines += [f"\n::: {path_of(name)}" for name, _, _ in rows]
    lines += ["", "## Tapes"]
    known = {*_READ, *(name for rows in ops().values() for name, _, _ in rows), "wrap_gradient"}
    others = [
        name
        for name in sorted(dir(tt.ones(())))
        if name[0] != "_" and name not in known and not hasattr(tt.tensor.base.TensorBase, name)
    ]
    lines += [f"\n::: tapetensor.Tensor.{name}" for name in others]
    lines += ["", "## Ops of your own"]
    lines += [f"\n::: tapetensor.{name}" for name in _OWN_OPS]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (REFERENCE / "ops.md").write_text(table())
    (REFERENCE / "tensor.md").write_text(reference())
