"""Rows of what makes tensors or hands tapes on, and of forms of ops that their rows lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tapetensor as tt
from tests.ops.kinds import (
    ARRAY,
    DTYPE,
    FINITE,
    GENERATOR,
    HUGE,
    INF,
    NAN,
    NEW_DIMS,
    NUMBER,
    SMALL,
    SOME_DTYPE,
    TOO_LARGE,
    Kind,
    no,
    refuses,
)
from tests.ops.rows import Refusal, Row, each, refused, spaced

_RNG = np.random.default_rng(0)
_X = spaced(2, 3)
_TYPE, _VALUE = tt.ArgumentTypeError, tt.ArgumentValueError
_NO_TENSORS = (None, 1, "ab", (), [], {}, tt.ones((2,)))
# Of an array of shape (2, 3).
_ANNOTATION = no(3, 2.0, "ab", error=_TYPE, message="a shape is a tuple of ints, got")
_ANNOTATION += no((2, 3.0), error=_TYPE, message="a dim must be an int, got 3.0")
_ANNOTATION += no((2, -1), error=_VALUE, message="must not be negative")
_ANNOTATION += no((3, 2), (6,), error=tt.ShapeError, message=r"\(2, 3\), the annotation says")


def _counted(name: str, most: str) -> Row:
    call: Callable[..., Any] = getattr(tt, name)
    return Row(
        name=name,
        call=call,
        refusals=(
            refused(
                each(None, 2.0, "3", (3,), (3, 3), True),
                error=_TYPE,
                message="size must be an int, got",
            ),
            refused(-1, error=_VALUE, message="size must not be negative, got -1"),
            refused(TOO_LARGE, error=_VALUE, message=most),
            *refuses(3, SOME_DTYPE),
        ),
    )


def _drawn(name: str, *refusals: Refusal) -> Row:
    only = no(np.int64, np.bool_, error=_VALUE, message="samples are float32 or float64, not")
    return Row(
        name=name,
        call=getattr(tt, name),
        refusals=(
            *refuses(NEW_DIMS, rng=_RNG),
            *refuses((2,), SOME_DTYPE + only, rng=_RNG),
            *refuses((2,), rng=GENERATOR),
            *refusals,
        ),
    )


def _on_traced(name: str, kind: Kind, *operands: Any) -> Row:
    """Return the row of a method that is given one argument, by name or in its place."""
    return Row(name=name, call=getattr(tt.Tensor, name), refusals=refuses(_X, *operands, kind))


CREATION = (
    *(
        Row(
            name=name,
            call=getattr(tt, name),
            refusals=(*refuses(NEW_DIMS), *refuses((2,), SOME_DTYPE)),
        )
        for name in ("zeros", "ones")
    ),
    Row(
        name="full",
        call=tt.full,
        refusals=(
            *refuses(NEW_DIMS, 1.0),
            *refuses((2,), NUMBER),
            *refuses((2,), 1.0, SOME_DTYPE),
            refused((2,), HUGE, error=_VALUE, message="too large to convert to float"),
            refused((2,), HUGE, np.uint8, error=_VALUE, message="too large to convert to C long"),
            refused((2,), each(300, 300.0, -1), np.uint8, error=_VALUE, message="out of bounds"),
            refused((2,), each(0.5, NAN, INF), np.uint8, error=_VALUE, message="not an integer"),
        ),
    ),
    _counted("arange", "int64 cannot count to"),
    Row(
        name="arange",
        call=tt.arange,
        refusals=(refused(257, np.uint8, error=_VALUE, message="uint8 cannot count to 256"),),
    ),
    _counted("eye", "Maximum allowed dimension exceeded"),
    _drawn(
        "normal",
        *refuses((2,), rng=_RNG, mean=SMALL),
        *refuses((2,), rng=_RNG, std=FINITE + no(-1.0, error=_VALUE, message="must be >= 0")),
    ),
    _drawn(
        "uniform",
        *refuses((2,), rng=_RNG, low=FINITE),
        *refuses((2,), rng=_RNG, high=FINITE),
        refused((2,), rng=_RNG, low=2.0, error=_VALUE, message="low must not exceed high"),
        refused((2,), rng=_RNG, high=-1.0, error=_VALUE, message="low must not exceed high"),
        refused((2,), rng=_RNG, low=-3e38, high=3e38, error=_VALUE, message="float32 cannot span"),
        refused(
            *((2,), np.float64), rng=_RNG, low=-1.7e308, high=1.7e308, error=_VALUE, message="span"
        ),
    ),
    Row(
        name="from_array",
        call=tt.from_array,
        refusals=(
            refused(
                each(None, 1.0, [1.0], tt.ones((2,))),
                error=_TYPE,
                message="expected an array .* got",
            ),
            refused(each(np.ones(2, complex)), error=tt.DTypeError, message="complex128"),
        ),
    ),
    Row(
        name="from_numpy",
        call=tt.from_numpy,
        refusals=(
            refused(
                each(None, 1.0, "1", {1.0}, range(3), tt.ones((2,))),
                error=_TYPE,
                message="expected a numpy array or nested lists, got",
            ),
            refused(
                each(
                    *[[[1.0], [1.0, 2.0]], ["a"], [1j], [None], [HUGE], [tt.ones(())]],
                ),
                error=_VALUE,
                message="not an array of numbers",
            ),
            refused(
                each(
                    *[np.ones(2, np.float16), np.ones(2, ">f8"), np.ones(2, complex)],
                    *[np.array(["a"]), np.array([None]), np.ones(2, "M8[s]")],
                ),
                error=tt.DTypeError,
                message="a tensor cannot have dtype",
            ),
            refused(
                each([NAN], ["a"], [1e30], [2.0**63]),
                dtype=np.int64,
                error=_VALUE,
                message="not an array of numbers",
            ),
            refused(
                each([300], [-1], [255.5, 256.0]),
                dtype=np.uint8,
                error=_VALUE,
                message="uint8 does not hold all numbers from",
            ),
        ),
    ),
    Row(
        name="from_array",
        call=lambda shape: tt.from_array(ARRAY, shape),
        refusals=refuses(_ANNOTATION),
    ),
    Row(
        name="from_numpy",
        call=lambda shape=None, dtype=None: tt.from_numpy(ARRAY, shape, dtype=dtype),
        refusals=(*refuses(_ANNOTATION), *refuses(dtype=DTYPE)),
    ),
)

TAPES = (
    Row(
        name="trace",
        call=lambda x, grads: x.detach().trace(grads),
        refusals=(
            refused(
                *(_X, each(1, {}, tt.ones((1,)), tt.Gradients)),
                error=_TYPE,
                message="carried gradients must be Gradients, got",
            ),
        ),
    ),
    _on_traced("traced", no(1, error=tt.TapeTensorError, message="OwnedTape|must be Gradients")),
    _on_traced(
        "put_tape",
        no(
            *(None, 1, tt.OwnedTape, tt.Gradients()),
            error=tt.TapeTensorError,
            message="owns OwnedTape|expected a tape, got",
        ),
    ),
    _on_traced(
        "retaped",
        no(
            *(None, 1, "OwnedTape", tt.NoneTape(), int),
            error=_TYPE,
            message="expected OwnedTape or NoneTape, got",
        ),
    ),
    _on_traced(
        "backward",
        no(*(None, 1.0, ARRAY), error=tt.TapeTensorError, message="no tape|cotangent|tape"),
    ),
    _on_traced(
        "backward",
        no(
            *(tt.ones((3,), np.float64), tt.ones((2, 3), np.int64)),
            error=tt.TapeTensorError,
            message="cotangent|dtypes differ|tape",
        ),
    ),
    Row(
        name="backward",
        call=lambda x, wrt: x.backward(tt.ones((2, 3), np.float64), wrt=wrt),
        refusals=(
            refused(
                *(_X, each(1, "w", [None], [[tt.ones(())]])),
                error=tt.TapeTensorError,
                message="wrt must be|tape",
            ),
        ),
    ),
    *(
        Row(
            name=name,
            call=lambda x, names, name=name: getattr(x.detach().trace(), name)(names=names),
            refusals=(
                refused(_X, each(1.0, "x"), error=_TYPE, message="names must be tensors by name"),
                refused(
                    _X, {"x": 1.0}, error=_TYPE, message=r"names\['x'\] must be a tensor, got float"
                ),
            ),
        )
        for name in ("to_html", "tree")
    ),
)

# Ops whose rows give their arguments in another way.
OTHER_FORMS = (
    Row(
        name="item",
        call=tt.Tensor.item,
        refusals=tuple(
            refused(spaced(*shape), error=tt.ShapeError, message=f"{count} elements, not one")
            for shape, count in (((2, 3), 6), ((3,), 3), ((0, 3), 0))
        ),
    ),
    Row(
        name="dropout",
        call=lambda x, rng: x.dropout(0.5, rng=rng),
        refusals=refuses(_X, GENERATOR),
    ),
    *(
        Row(
            name=name,
            call=getattr(tt, name),
            refusals=(refused(each(*_NO_TENSORS), error=_TYPE, message="one tensor or more in a"),),
        )
        for name in ("concat", "stack")
    ),
    Row(
        name="custom_op",
        call=lambda kernel, x: tt.custom_op(kernel, x, shape=(2, 3)),
        refusals=(
            refused(each(None, 1, "exp"), _X, error=_TYPE, message="must be a function of arrays"),
        ),
    ),
)
