"""Every op of the table: onnxruntime computes the same, or the op is refused by its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tapetensor as tt
from tests.onnx.running import assert_same, exported
from tests.ops.calling import tensors_of
from tests.ops.samples import CASES

# What has no form in ONNX, by the name of the op.
REFUSED = {
    "atan2": "np.arctan2",
    "cholesky": "np.linalg.cholesky",
    "eigh": "np.linalg.eigh",
    "getitem": "read_index",
    "inv": "np.linalg.inv",
    "lstm": "before the last step has no form",
    "pinv": "np.linalg.pinv",
    "put_along_axis": ".at has no form",
    "qr": "np.linalg.qr",
    "slogdet": "np.linalg.slogdet",
    "solve": "np.linalg.solve",
    "svd": "np.linalg.svd",
}


def test_every_op_is_exported_or_refused_by_name(tmp_path: Path) -> None:
    refused: dict[str, set[str]] = {}
    for case in CASES:
        inputs = [
            one.astype(np.float32)
            if isinstance(one, tt.Tensor) and one.dtype == np.float64
            else one
            for one in tensors_of(case.sample)
        ]
        call, options = case.op.call, case.sample.options
        try:
            session = exported(
                tmp_path / "op.onnx",
                lambda *args, call=call, options=options: call(*args, **options),
                *inputs,
                open_batch=False,
            )
        except tt.TraceError as error:
            refused.setdefault(case.name.rpartition("-")[0], set()).add(str(error))
            continue
        given = [one for one in inputs if isinstance(one, tt.Tensor | np.ndarray)]
        assert_same(session.run(*given), call(*inputs, **options))

    assert refused.keys() == REFUSED.keys()
    for name, told in refused.items():
        assert all(REFUSED[name] in one or "depends on the values" in one for one in told), told
