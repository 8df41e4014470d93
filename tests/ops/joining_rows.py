"""Rows of the ops that join tensors: end to end, or in sums of products."""

from __future__ import annotations

import numpy as np

import tapetensor as tt
from tapetensor.kernels import linear_algebra
from tapetensor.tensor.apply import apply
from tests.ops.kinds import ARRAY, AXIS, NEW_AXIS, refuses
from tests.ops.rows import Op, each, given, refused, spaced

_X = spaced(2, 3)
_CUBE = spaced(2, 3, 4)
_NO_TENSORS = (
    refused(tt.ArgumentTypeError, "one tensor or more"),
    refused(tt.ArgumentTypeError, "must be a tensor, got", _X, each(None, 1.0, ARRAY)),
    refused(tt.ArgumentTypeError, "must be a tensor, got", each(1, ARRAY)),
    refused(tt.DTypeError, "dtypes differ", _X, tt.ones((2, 3))),
    refused(tt.ShapeError, r"\(2, 3\) and \(2, 2\)", _X, spaced(2, 2)),
    refused(tt.ShapeError, r"\(2, 3\) and \(2, 4\)", _X, spaced(2, 4)),
)


JOINING = (
    Op(
        name="concat",
        covers=("concat",),
        call=lambda *tensors, **options: tt.concat(tensors, **options),
        reference=lambda *arrays, **options: np.concatenate(arrays, **options),
        samples=(
            given(_X, spaced(4, 3, seed=1)),
            given(_X, spaced(2, 1), spaced(2, 2, seed=1), axis=-1),
            given(_CUBE, spaced(2, 0, 4), spaced(2, 1, 4), axis=1),
            given(_X),
            given(spaced(0), spaced(1)),
            given(spaced(1), spaced(0)),
        ),
        refusals=(
            *_NO_TENSORS,
            *refuses(_X, _X, axis=AXIS),
            refused(tt.ShapeError, r"\(2, 3\) and \(3,\)", _X, spaced(3)),
            refused(tt.AxisError, "0-d", spaced()),
            refused(tt.AxisError, "0-d", spaced(), spaced()),
        ),
        takes_integers=True,
    ),
    Op(
        name="stack",
        covers=("stack",),
        call=lambda *tensors, **options: tt.stack(tensors, **options),
        reference=lambda *arrays, **options: np.stack(arrays, **options),
        samples=(
            given(_X, spaced(2, 3, seed=1)),
            given(_X, spaced(2, 3, seed=1), spaced(2, 3, seed=2), axis=-1),
            given(_X, spaced(2, 3, seed=1), axis=1),
            given(spaced(), spaced(seed=1)),
            given(spaced(0), spaced(0), axis=1),
        ),
        refusals=(
            *_NO_TENSORS,
            *refuses(_X, axis=NEW_AXIS),
            refused(tt.ShapeError, r"\(2, 3\) and \(\)", _X, spaced()),
        ),
        takes_integers=True,
    ),
    Op(
        name="einsum",
        covers=("einsum",),
        call=lambda *tensors, subscripts: tt.einsum(subscripts, *tensors),
        reference=lambda *arrays, subscripts: np.einsum(subscripts, *arrays),
        samples=(
            given(_X, spaced(3, 4), subscripts="ij,jk->ik"),
            given(_CUBE, spaced(2, 4, 5), subscripts="bij,bjk -> bik"),
            given(_X, spaced(3, 4), subscripts="ij,jk"),
            given(_X, subscripts="ij->ji"),
            given(_X, subscripts="ji"),
            given(_X, subscripts="ij->"),
            given(_X, subscripts="ij->j"),
            given(spaced(3, 3), subscripts="ii->"),
            given(spaced(3, 3), subscripts="ii->i"),
            given(spaced(3, 3, 4), spaced(3), subscripts="iij,i->j"),
            given(spaced(3), spaced(4), subscripts="i,j->ij"),
            given(_X, spaced(2, 3, seed=1), subscripts="ij,ij->"),
            given(_X, spaced(4), subscripts="ij,k->i"),
            given(_X, spaced(3, 4), spaced(4), subscripts="ij,jk,k->i"),
            given(_CUBE, spaced(4, 5), subscripts="...i,ij->...j"),
            given(_CUBE, spaced(3, 1), spaced(4, seed=1), subscripts="...,...,...->..."),
            given(spaced(2, 1, 4), spaced(3, 4, 2), subscripts="b...i,...ij->b...j"),
            given(spaced(1, 3, 3), spaced(2), subscripts="...ii,...->..."),
            given(spaced(), subscripts="->"),
            given(spaced(), _X, subscripts=",ij->ij"),
            given(spaced(2, 0), spaced(0, 3), subscripts="ij,jk->ik"),
        ),
        refusals=(
            refused(tt.ShapeError, "names 2 operands", _X, subscripts=each("ij,jk", "ij,jk->ik")),
            refused(tt.ShapeError, "'j'", _X, spaced(4), subscripts="ij,j->i"),
            refused(tt.ShapeError, "'j' .* 3 and 2", _X, _X[:, :2], subscripts="ij,jk->ik"),
            refused(tt.ShapeError, "'jk'", _X, spaced(3), subscripts="ij,jk->ik"),
            refused(
                tt.ShapeError,
                r"in '.*' (does not fit|has sizes 2 and 3 in) shapes? \(2, 3\)",
                _X,
                subscripts=each("i", "ijk", "ijk->i", "i...jk->i", "i j k", "ii", "", "->"),
            ),
            refused(
                tt.ArgumentValueError,
                "the output of '.*' must name letters of the operands, each once",
                _X,
                subscripts=each("ij->k", "ij->ii", "...->...i"),
            ),
            refused(
                tt.ArgumentValueError,
                "cannot read",
                _X,
                subscripts=each("i.j->", "ij->i->j", "i1->i", "ij->ij,", "i...j...", "é"),
            ),
            refused(tt.ArgumentTypeError, "must be a string, got", _X, subscripts=each(None, 1)),
            refused(
                tt.ArgumentTypeError,
                "an operand must be a tensor, got",
                _X,
                each(2.0, None, ARRAY),
                subscripts="ij,jk->ik",
            ),
            refused(tt.DTypeError, "dtypes differ", _X, tt.ones((3, 2)), subscripts="ij,jk"),
            refused(tt.DTypeError, "bool.*astype", _X > 0, _X > 0, subscripts="ij,ij->"),
            refused(tt.ArgumentTypeError, "one tensor or more", subscripts=""),
        ),
        takes_integers=True,
    ),
    Op(
        name="unbiased_linear",
        # Not public by itself: what `nn.UnbiasedLinear` applies.
        covers=(),
        call=lambda x, weight: apply(linear_algebra.unbiased_linear, (x, weight)),
        reference=lambda x, weight: x @ weight.T,
        samples=(
            *(
                given(spaced(*leading, 3), spaced(4, 3, seed=1))
                for leading in ((2,), (), (2, 5), (0,), (2, 0))
            ),
            given(spaced(1), spaced(1, 1)),
        ),
        refusals=(refused(tt.ShapeError, r"\(4, 2\)", _X, spaced(4, 2)),),
        takes_integers=True,
    ),
    Op(
        name="linear",
        # Not public by itself: what `nn.Linear` applies.
        covers=(),
        call=lambda x, weight, bias: apply(linear_algebra.linear, (x, weight, bias)),
        reference=lambda x, weight, bias: x @ weight.T + bias,
        samples=(
            *(
                given(spaced(*leading, 3), spaced(4, 3, seed=1), spaced(4, seed=2))
                for leading in ((2,), (), (2, 5), (0,), (2, 0))
            ),
            given(spaced(2, 0), spaced(4, 0), spaced(4)),
            given(spaced(2, 3), spaced(0, 3), spaced(0)),
            given(spaced(1), spaced(1, 1), spaced(1)),
        ),
        refusals=(
            refused(tt.ShapeError, r"\(4, 2\)", _X, spaced(4, 2), spaced(4)),
            refused(tt.ShapeError, r"\(3,\)", _X, spaced(4, 3), spaced(3)),
        ),
        takes_integers=True,
    ),
)
