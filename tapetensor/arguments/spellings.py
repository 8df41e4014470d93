"""What people write who know other libraries, and what to write here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# The methods of a tensor, and the functions of the library, by their names elsewhere.
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
    "requires_grad_": "trace(), which returns a new tensor",
}
OF_LIBRARY: Final = {
    "cat": "concat((x, y), axis=0)",
    "concatenate": "concat((x, y), axis=0)",
    "array": "from_numpy([[1.0, 2.0]], (1, 2))",
    "randn": "normal((2, 3), rng=np.random.default_rng(0))",
    "rand": "uniform((2, 3), rng=np.random.default_rng(0))",
}


def given_by_name(name: str, sizes: Sequence[object], has_dims: bool) -> str:
    """Return the complaint about a module that takes its fields by name, and is given sizes.

    Args:
        name: the class.
        sizes: what it is given.
        has_dims: whether the class has dims for type arguments.
    """
    dims = ", ".join("..." if size is None else f"L[{size}]" for size in sizes)
    made = f"{name}[{dims}]" if has_dims else name
    return f"{name}: its fields are given by name; for sizes write tt.build({made}, rng=rng)"
