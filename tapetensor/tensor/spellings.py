"""What other libraries call the methods of a tensor and the functions of this one."""

from __future__ import annotations

from typing import Final

# What to write here, by the name elsewhere.
OF_TENSORS: Final = {
    "T": "transpose()",
    "mT": "transpose()",
    "view": "reshape((2, 6)), with the sizes in one tuple",
    "unsqueeze": "expand_dims(0)",
    "permute": "permute_dims((1, 0)), with the axes in one tuple",
    "swapaxes": "permute_dims((1, 0)), with the axes in one tuple",
    "dim": "shape, and len(...) of it",
    "cumsum": "cumulative_sum(axis=0)",
    "gather": "take_along_axis(indices, axis=1)",
    "float": "astype(np.float32)",
    "long": "astype(np.int64)",
    "tolist": "numpy().tolist()",
    "requires_grad_": "trace(), which returns a new tensor",
}
OF_LIBRARY: Final = {
    "cat": "concat((x, y), axis=0)",
    "concatenate": "concat((x, y), axis=0)",
    "array": "from_numpy([[1.0, 2.0]], (1, 2))",
    "randn": "normal((2, 3), rng=np.random.default_rng(0))",
    "rand": "uniform((2, 3), rng=np.random.default_rng(0))",
}
