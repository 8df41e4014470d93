"""Rows of what makes tensors or hands tapes on, and of forms of ops that their rows lack."""

from __future__ import annotations

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
    NOT_NEGATIVE,
    NUMBER,
    SMALL,
    SOME_DTYPE,
    TOO_LARGE,
    Kind,
    no,
    refuses,
)
from tests.ops.rows import Refusal, Row, each, refused, refusing, spaced

_RNG = np.random.default_rng(0)
_X = spaced(2, 3)
_TYPE, _VALUE = tt.ArgumentTypeError, tt.ArgumentValueError
_NO_TENSORS: tuple[Any, ...] = (None, 1, "ab", (), [], {}, tt.ones((2,)))
# Of an array of shape (2, 3).
_ANNOTATION = no(_TYPE, "a shape is a tuple of ints, got", 3, 2.0, "ab")
_ANNOTATION += no(_TYPE, "a dim must be an int, got 3.0", (2, 3.0))
_ANNOTATION += no(_VALUE, "must not be negative", (2, -1))
_ANNOTATION += no(tt.ShapeError, r"\(2, 3\), the annotation says", (3, 2), (6,))


def _drawn(name: str, *refusals: Refusal) -> Row:
    only = no(tt.DTypeError, "samples are float32 or float64, not", np.int64, np.bool_)
    return refusing(
        name,
        *refuses(NEW_DIMS, rng=_RNG),
        *refuses((2,), SOME_DTYPE + only, rng=_RNG),
        *refuses((2,), rng=GENERATOR),
        *refusals,
    )


def _method(name: str, kind: Kind) -> Row:
    """Return the row of a method of one argument."""
    return refusing(name, *refuses(_X, kind))


CREATION = (
    *(refusing(name, *refuses(NEW_DIMS), *refuses((2,), SOME_DTYPE)) for name in ("zeros", "ones")),
    refusing(
        "full",
        *refuses(NEW_DIMS, 1.0),
        *refuses((2,), value=NUMBER),
        *refuses((2,), 1.0, SOME_DTYPE),
        refused(_VALUE, "too large to convert to float", (2,), HUGE),
        refused(_VALUE, "too large to convert to C long", (2,), HUGE, np.uint8),
        refused(_VALUE, "out of bounds", (2,), each(300, 300.0, -1), np.uint8),
        refused(_VALUE, "not an integer", (2,), each(0.5, NAN, INF), np.uint8),
    ),
    *(
        refusing(
            name,
            refused(_TYPE, "size must be an int, got", each(None, 2.0, "3", (3,), (3, 3), True)),
            refused(_VALUE, "size must not be negative, got -1", -1),
            refused(_VALUE, "is more than an array can hold", TOO_LARGE),
            *refuses(3, SOME_DTYPE),
        )
        for name in ("arange", "eye")
    ),
    refusing("arange", refused(_VALUE, "uint8 cannot count to 256", 257, np.uint8)),
    _drawn(
        "normal", *refuses((2,), rng=_RNG, mean=SMALL), *refuses((2,), rng=_RNG, std=NOT_NEGATIVE)
    ),
    _drawn(
        "uniform",
        *refuses((2,), rng=_RNG, low=FINITE),
        *refuses((2,), rng=_RNG, high=FINITE),
        refused(_VALUE, "low must not exceed high", (2,), rng=_RNG, low=2.0),
        refused(_VALUE, "low must not exceed high", (2,), rng=_RNG, high=-1.0),
        refused(_VALUE, "float32 cannot span", (2,), rng=_RNG, low=-3e38, high=3e38),
        refused(_VALUE, "span", (2,), np.float64, rng=_RNG, low=-1.7e308, high=1.7e308),
    ),
    refusing(
        "from_array",
        refused(_TYPE, "expected an array .* got", each(None, 1.0, [1.0], tt.ones((2,)))),
        refused(tt.DTypeError, "complex128", each(np.ones(2, complex))),
    ),
    refusing(
        "from_memmap",
        refused(_TYPE, "expected a numpy.memmap, got", each(None, 1.0, [1.0], np.ones(2))),
    ),
    refusing(
        "from_numpy",
        refused(
            _TYPE,
            "expected a numpy array or nested lists, got",
            each(None, 1.0, "1", {1.0}, range(3), tt.ones((2,))),
        ),
        refused(
            _VALUE,
            "not an array of numbers",
            each(*[[[1.0], [1.0, 2.0]], ["a"], [1j], [None], [HUGE]]),
        ),
        refused(
            tt.ArgumentTypeError,
            "gradients would be lost",
            each([tt.ones(())], [[1.0, tt.ones(())]], (tt.ones((2,)),)),
        ),
        refused(
            tt.DTypeError,
            "a tensor cannot have dtype",
            each(
                *[np.ones(2, np.float16), np.ones(2, complex)],
                *[np.array(["a"]), np.array([None]), np.ones(2, "M8[s]")],
            ),
        ),
        refused(
            _VALUE, "not an array of numbers", each([NAN], ["a"], [1e30], [2.0**63]), dtype=np.int64
        ),
        refused(
            _VALUE,
            "uint8 does not hold all numbers from",
            each([300], [-1], [255.5, 256.0]),
            dtype=np.uint8,
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
                _TYPE,
                "carried gradients must be Gradients, got",
                _X,
                each(1, {}, tt.ones((1,)), tt.Gradients),
            ),
        ),
    ),
    _method("traced", no(tt.TapeTensorError, "OwnedTape|must be Gradients", 1)),
    _method(
        "put_tape",
        no(
            tt.TapeTensorError,
            "has OwnedTape|the argument must be a tape, got",
            None,
            1,
            tt.OwnedTape,
            tt.Gradients(),
        ),
    ),
    _method(
        "retaped",
        no(_TYPE, "expected OwnedTape or NoneTape, got", None, 1, "OwnedTape", tt.NoneTape(), int),
    ),
    _method(
        "backward",
        no(
            tt.TapeTensorError,
            "cotangent|dtypes differ|tape",
            *[None, 1.0, ARRAY, tt.ones((3,), np.float64), tt.ones((2, 3), np.int64)],
        ),
    ),
    Row(
        name="backward",
        call=lambda x, wrt: x.backward(tt.ones((2, 3), np.float64), wrt=wrt),
        refusals=(
            refused(
                tt.TapeTensorError, "wrt must be|tape", _X, each(1, "w", [None], [[tt.ones(())]])
            ),
        ),
    ),
    *(
        Row(
            name=name,
            call=lambda x, names, name=name: getattr(x.detach().trace(), name)(names=names),
            refusals=(
                refused(_TYPE, "names must be tensors by name", _X, each(1.0, "x")),
                refused(_TYPE, r"names\['x'\] must be a tensor, got float", _X, {"x": 1.0}),
            ),
        )
        for name in ("to_html", "tree")
    ),
)

# Ops whose rows give their arguments in another way.
OTHER_FORMS = (
    refusing(
        "item",
        *tuple(
            refused(tt.ShapeError, f"{count} elements, not one", spaced(*shape))
            for shape, count in (((2, 3), 6), ((3,), 3), ((0, 3), 0))
        ),
    ),
    Row(
        name="dropout", call=lambda x, rng: x.dropout(0.5, rng=rng), refusals=refuses(_X, GENERATOR)
    ),
    *(
        refusing(name, refused(_TYPE, "one tensor or more in a", each(*_NO_TENSORS)))
        for name in ("concat", "stack")
    ),
    Row(
        name="custom_op",
        call=lambda kernel, x: tt.custom_op(kernel, x, shape=(2, 3)),
        refusals=(refused(_TYPE, "the kernel must be a function, got", each(None, 1, "exp"), _X),),
    ),
)
