"""A traceback is for the user's line: what stands between it and the sentence."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import data, losses, nn, optim, training
from tapetensor.errors import TapeTensorError, cut_traceback

_LIBRARY = str(Path(tt.__file__).parent)

_rng = np.random.default_rng(0)
_x: Any = tt.ones((4, 2))
_column: Any = tt.ones((3,))
_floats: Any = tt.ones((4,))
_narrow: Any = nn.Linear(3, 4, rng=_rng)
_images: Any = nn.Conv2d(3, 8, kernel_size=3, rng=_rng)
_sequences: Any = nn.LSTM(3, 4, rng=_rng)
_table: Any = nn.Embedding(4, 3, rng=_rng)
_chain: Any = nn.Sequential(nn.Linear(2, 3, rng=_rng), nn.ReLU(), nn.Linear(4, 3, rng=_rng))
_other: Any = optim.Adam(nn.Linear(2, 3, rng=_rng))


class _Model(nn.Module):
    layer: Any

    def forward(self, x: Any) -> Any:
        return self.layer(x)


class _Unsized(nn.Module):
    layer: nn.Linear[Any, Any]


_model: Any = _Model(layer=_narrow)


def _product(x: Any) -> Any:
    return x @ x


def _backward_twice() -> None:
    loss = _x.trace().square().sum()
    loss.backward()
    loss.backward()


def _step_of_another_model() -> None:
    loss = _narrow.forward(_column.trace()).sum()
    _other.step(loss.backward(wrt=_narrow))


def _loss_of(model: Any, x: Any) -> Any:
    return losses.mse(model.forward(x.trace()), _column)


def _fit() -> None:
    training.fit(_narrow, optim.Adam(_narrow), _loss_of, [tt.ones((4, 3))], epochs=1)


_compiled: Any = tt.compile(_product)
_conditional: Any = tt.compile(lambda x: x if x.sum() > 0 else -x)
_build: Any = tt.build
_zeros: Any = tt.zeros

# What people do wrong, and how many functions of their own are on the way.
_MISTAKES: dict[str, tuple[Callable[[], object], int]] = {
    "a product of shapes that do not fit": (lambda: _x @ _x, 0),
    "a sum of shapes that do not fit": (lambda: _x + _column, 0),
    "the same with a tape": (lambda: _x.trace() + _column, 0),
    "a power of shapes that do not fit": (lambda: _x**_column, 0),
    "a comparison of shapes that do not fit": (lambda: _x > _column, 0),
    "the larger of shapes that do not fit": (lambda: tt.maximum(_x, _column), 0),
    "dtypes that differ": (lambda: _x + tt.ones((4, 2), np.float64), 0),
    "a reshape to another size": (lambda: _x.reshape((3, 3)), 0),
    "a concatenation of other widths": (lambda: tt.concat([_x, tt.ones((4, 3))], axis=0), 0),
    "a stack of other shapes": (lambda: tt.stack([_x, _column]), 0),
    "a choice of shapes that do not fit": (lambda: tt.where(_x > 0, _x, _column), 0),
    "an axis that is not there": (lambda: _x.sum(axis=4), 0),
    "an index that is not there": (lambda: _x[5], 0),
    "a wrong contraction": (lambda: tt.einsum("ij,jk->ik", _x, _x), 0),
    "a convolution of other channels": (lambda: _images(tt.ones((2, 4, 8, 8))), 0),
    "a layer of another width": (lambda: _narrow(_x), 0),
    "the same by forward": (lambda: _narrow.forward(_x), 0),
    "a layer in a chain": (lambda: _chain(_x), 0),
    "the same chain by forward": (lambda: _chain.forward(_x), 0),
    "a layer in a model of the user's": (lambda: _model(_x), 1),
    "ids beyond a table": (lambda: _table(tt.arange(5)), 0),
    "labels that are floats": (lambda: losses.cross_entropy(_x, _floats), 0),
    "labels that are no classes": (lambda: losses.cross_entropy(_x, tt.arange(4)), 0),
    "a target of another shape": (lambda: losses.mse(_x, tt.ones((4,))), 0),
    "a backward pass without a tape": (lambda: _x.sum().backward(), 0),
    "a backward pass of what is no scalar": (lambda: _x.trace().backward(), 0),
    "a backward pass that is the second": (_backward_twice, 1),
    "an optimizer of another model": (_step_of_another_model, 1),
    "a gradient that nobody computed": (lambda: tt.Gradients()[_x], 0),
    "the item of several": (lambda: _x.item(), 0),
    "the truth of several": (lambda: bool(_x > 0), 0),
    "another tensor in a field": (lambda: setattr(_narrow, "weight", _x), 0),
    "a model without sizes": (lambda: _build(_Unsized, rng=_rng), 0),
    "a shape that is no tuple": (lambda: _zeros(3), 0),
    "a sequence of another width": (lambda: _sequences.forward(tt.ones((2, 5, 2))), 0),
    "batches of other rows": (lambda: data.batches(_x, _column, size=2), 0),
    "a function in a checkpoint": (lambda: tt.checkpoint(_product, _x.trace()), 1),
    "a loss within fit": (_fit, 2),
    "a function within grad": (lambda: tt.grad(lambda x: _product(x).sum(), _x), 2),
    "a function that is no scalar": (lambda: tt.grad(lambda x: x.square(), _x), 0),
    "a function that is compiled": (lambda: _compiled(_x), 1),
    "a condition that is compiled": (lambda: _conditional(_x), 1),
}


@pytest.mark.parametrize("mistake", _MISTAKES)
def test_between_the_users_line_and_the_sentence_stand_two_frames_at_most(mistake: str) -> None:
    make, own_frames = _MISTAKES[mistake]
    with pytest.raises(TapeTensorError) as refused:
        make()

    lines = "".join(traceback.format_exception(refused.value)).splitlines()
    files = [frame.filename for frame in traceback.extract_tb(refused.value.__traceback__)]
    of_user = [file for file in files if file == __file__]

    assert sum("Traceback" in line for line in lines) == 1
    assert len(files) - len(of_user) <= 2
    # The frame of this test, and that of the lambda, which may be the function itself.
    assert len(of_user) - 1 >= own_frames
    notes = refused.value.__notes__
    assert lines[-len(notes) :] == notes
    assert lines[-len(notes) - 1].endswith(str(refused.value))
    assert not any("numpy" in file for file in files)


@pytest.mark.parametrize("mistake", _MISTAKES)
def test_pytest_shows_the_users_lines_alone(mistake: str) -> None:
    with pytest.raises(TapeTensorError) as refused:
        _MISTAKES[mistake][0]()

    shown = refused.traceback.filter(refused)

    assert {str(entry.path) for entry in shown} == {__file__}


def test_pytest_shows_all_of_an_error_that_is_not_meant() -> None:
    with pytest.raises(TapeTensorError):
        _product(_x)

    def kernel(x: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        tt.custom_op(kernel, _x, shape=(4, 2))

    shown = {str(entry.path) for entry in raised.traceback.filter(raised)}
    assert any(path.startswith(_LIBRARY) for path in shown)


def test_a_notebook_shows_the_users_lines_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(kind: type, error: TapeTensorError, tb: TracebackType, tb_offset: int) -> list[str]:
        frames = traceback.extract_tb(tb)[tb_offset:]
        return [f"{frame.filename} {frame.name}" for frame in frames]

    shell = SimpleNamespace(InteractiveTB=SimpleNamespace(structured_traceback=shown))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with pytest.raises(TapeTensorError) as refused:
        tt.grad(lambda x: _product(x).sum(), _x)
    render: Any = refused.value

    assert render._render_traceback_() == [f"{__file__} <lambda>", f"{__file__} _product"]


def test_the_cause_is_shown_where_it_is_in_a_kernel_of_the_users() -> None:
    def kernel(x: Any) -> Any:
        return x + np.ones(7), (None,)

    with pytest.raises(tt.ShapeError) as refused:
        tt.custom_op(kernel, _x, shape=(4, 2))

    shown = "".join(traceback.format_exception(refused.value))
    assert "return x + np.ones(7)" in shown
    assert shown.count("Traceback") == 2


def test_what_is_cut_is_below_the_function_that_asks() -> None:
    def ask() -> None:
        try:
            _product(_x)
        except TapeTensorError as error:
            cut_traceback(error)
            raise

    with pytest.raises(tt.ShapeError) as refused:
        ask()

    names = [frame.name for frame in traceback.extract_tb(refused.value.__traceback__)]
    assert names[1:] == ["ask", "_product"]
