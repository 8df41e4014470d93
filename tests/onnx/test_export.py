"""What goes into a file, what its inputs are called, and what is refused with nothing written."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn, onnx
from tapetensor.kernels.numerics import attention_tiles, columns
from tests.onnx import running
from tests.onnx.running import assert_same, exported
from tests.ops.calling import tensors_of
from tests.ops.samples import CASES
from tests.test_pages import DOCS, SNIPPET


def linear(seed: int = 0) -> nn.Linear[Any, Any]:
    return nn.Linear(3, 2, rng=np.random.default_rng(seed))


def rows(count: int, width: int = 3) -> Any:
    return tt.from_numpy(np.arange(count * width, dtype=np.float32).reshape(count, width) / 7)


def test_inputs_have_the_names_of_arguments_and_outputs_are_numbered(tmp_path: Path) -> None:
    scale = 2.0

    def both(left: Any, right: Any) -> Any:
        return left + right, [left * scale][0]

    session = exported(tmp_path / "m.onnx", both, rows(4), rows(4))

    assert session.inputs == {"left": ["batch", 3], "right": ["batch", 3]}
    assert session.outputs == {"output_0": ["batch", 3], "output_1": ["batch", 3]}
    assert_same(session.run(rows(2), rows(2)), both(rows(2), rows(2)))


def test_methods_compiled_functions_and_partial_ones_are_exported(tmp_path: Path) -> None:
    class Model(nn.Module):
        layer: nn.Linear[Any, Any]

        def __init__(self) -> None:
            self.layer = linear()

        @tt.compile
        def forward(self, x: Any) -> Any:
            return self.layer.forward(x)

    model = Model()
    for function in (
        model.forward,
        tt.compile(lambda x: model.layer.forward(x)),
        partial(lambda layer, x: layer.forward(x), model.layer),
    ):
        session = exported(tmp_path / "m.onnx", function, rows(2))
        assert_same(session.run(rows(5)), model.layer.forward(rows(5)))
    with_model = exported(tmp_path / "m.onnx", lambda m, x: m.layer.forward(x), model, rows(2))
    assert list(with_model.inputs) == ["x"]
    assert_same(with_model.run(rows(5)), model.layer.forward(rows(5)))


def test_what_follows_the_batch_size_follows_it(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        size, width = x.shape
        start: Any = tt.zeros((size, 1))
        places = tt.from_numpy(np.arange(size), (size,))
        pairs = tt.concat((x, x * 2.0)).reshape((2 * size, width))
        return (
            tt.concat((start, x), axis=1),
            x.sum(axis=0) / float(size),
            x.reshape((size * width,)),
            pairs,
            pairs[1:],
            x[places, places * 0 + 1],
            x[::-1],
            x.pad(((1, 0), (0, 2))),
        )

    session = exported(tmp_path / "m.onnx", function, rows(2))

    assert [*session.outputs.values()][3:5] == [["2*batch", 3], ["2*batch+-1", 3]]
    for size in (1, 2, 17, 40):
        assert_same(session.run(rows(size)), function(rows(size)))


def test_an_input_without_a_batch_stays_as_it_is(tmp_path: Path) -> None:
    def function(x: Any, weight: Any, unused: Any) -> Any:
        return x @ weight

    examples = rows(2), rows(3, 5), rows(1)
    session = exported(tmp_path / "m.onnx", function, *examples, open_batch=(True, False, False))

    assert session.inputs == {"x": ["batch", 3], "weight": [3, 5], "unused": [1, 3]}
    assert_same(session.run(rows(6), *examples[1:]), rows(6) @ examples[1])
    fixed = exported(tmp_path / "m.onnx", function, *examples, open_batch=False)
    assert fixed.inputs["x"] == [2, 3]


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_other_dtypes_keep_theirs(tmp_path: Path, dtype: Any) -> None:
    x: Any = tt.from_numpy(np.arange(6, dtype=dtype).reshape(2, 3))
    session = exported(tmp_path / "m.onnx", lambda x: (x * 2 - x // 3).max(axis=1), x)

    assert_same(session.run(x), (x * 2 - x // 3).max(axis=1))


def test_special_numbers_go_the_same_way(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        return x.relu(), x.silu(), x.abs().log1p(), x.expm1(), x.clip(-1.0, 1.0), x.gelu()

    numbers = [0.0, -0.0, 1e-30, -1e-9, 1e-4, 80.0, -80.0, np.inf, np.nan]
    x: Any = tt.from_numpy(np.array([numbers], np.float32))
    session = exported(tmp_path / "m.onnx", function, tt.ones((2, 9)))

    with np.errstate(all="ignore"):
        found, expected = session.run(x), function(x)
    assert_same(found, expected)
    small = slice(2, 5)
    for place in (2, 3):
        wanted = expected[place].numpy()[0, small]
        np.testing.assert_allclose(found[place][0, small], wanted, rtol=1e-5)


RNG = np.random.default_rng(0)


def by_size(x: Any) -> Any:
    return x * 2.0 if x.shape[0] < 10 else x * 3.0


def by_minimum(x: Any) -> Any:
    return x * float(min(x.shape[0], 10))


REFUSED: list[tuple[Any, Any, str]] = [
    (
        lambda x: (x.transpose() @ x).inv(),
        rows(4),
        r"test_export\.py:\d+: export: np\.linalg\.inv has",
    ),
    (lambda x: x[x > 0.0], rows(4), "a mask as an index"),
    (
        lambda x: x.sum().item(),
        rows(4),
        "the function returns a number, and a model returns tensors",
    ),
    (by_size, rows(4), "another thing than at other batch sizes"),
    (by_minimum, rows(4), "another thing than at other batch sizes"),
    (lambda x: x * float(x.shape[0] ** 2), rows(4), "depends on the batch size otherwise"),
    (
        partial(lambda rng, x: tt.normal((3,), rng=rng) + x, RNG),
        rows(2),
        "a random draw has no form",
    ),
    (lambda x: tt.normal((3,), rng=RNG) + x, rows(2), "a random draw has no form"),
]


@pytest.mark.parametrize(("function", "example", "told"), REFUSED)
def test_what_has_no_form_is_refused_by_name(
    tmp_path: Path, function: Any, example: Any, told: str
) -> None:
    path = tmp_path / "m.onnx"
    onnx.export(path, linear().forward, rows(2))
    before = path.read_bytes()
    with pytest.raises(tt.TapeTensorError, match=told):
        onnx.export(path, function, example)

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_arguments_that_are_none_are_refused(tmp_path: Path) -> None:
    forward, path = linear().forward, tmp_path / "m.onnx"
    cases: list[tuple[type[Exception], str, tuple[Any, ...], dict[str, Any]]] = [
        (tt.ArgumentValueError, r"must end in \.onnx", (tmp_path / "m.pt", forward, rows(2)), {}),
        (tt.ArgumentTypeError, "path", (3, forward, rows(2)), {}),
        (tt.ArgumentTypeError, "function", (path, rows(2), rows(2)), {}),
        (tt.ArgumentValueError, "an example of each input", (path, forward), {}),
        (tt.ArgumentTypeError, "owns a tape", (path, forward, rows(2).trace()), {}),
        (tt.ArgumentValueError, "of one size", (path, forward, rows(2), rows(3)), {}),
        (
            tt.ArgumentTypeError,
            "open_batch",
            (path, forward, rows(2)),
            {"open_batch": (True, False)},
        ),
        (tt.ArgumentTypeError, "open_batch", (path, forward, rows(2)), {"open_batch": "yes"}),
    ]
    for error, told, args, options in cases:
        with pytest.raises(error, match=told):
            onnx.export(*args, **options)
    assert list(tmp_path.iterdir()) == []


def test_without_the_package_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(tt.MissingDependencyError, match=r"pip install 'tapetensor\[onnx\]'"):
        onnx.export(tmp_path / "m.onnx", linear().forward, rows(2))


def test_what_goes_by_tiles_and_blocks_elsewhere_is_written_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention_tiles, "_FEWEST", 1)
    monkeypatch.setattr(columns, "_MANY", 0)
    rng = np.random.default_rng(0)
    weight: Any = tt.normal((4, 3, 3, 3), rng=rng)

    def seen(x: Any) -> Any:
        y = tt.conv2d(x, weight, padding=1)
        return tt.scaled_dot_product_attention(y, y, y, causal=True)

    x: Any = tt.normal((2, 3, 6, 5), rng=rng)
    session = exported(tmp_path / "m.onnx", seen, x)
    assert_same(session.run(x), seen(x))


def test_every_snippet_says_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert running.runtime
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    snippets = SNIPPET.findall((DOCS / "export.md").read_text())
    assert len(snippets) == 3
    for program, said in snippets:
        try:
            exec(compile(program, "docs/export.md", "exec"), names)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
        assert capsys.readouterr().out == said


# What has no form in ONNX, by the name of the op.
EVERY_OP_REFUSED = {
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

    assert refused.keys() == EVERY_OP_REFUSED.keys()
    for name, told in refused.items():
        assert all(
            EVERY_OP_REFUSED[name] in one or "depends on the values" in one for one in told
        ), told
