"""Shape arithmetic under the plugin: what it infers is true, and what it rejects raises."""

from __future__ import annotations

import operator
import pkgutil
import re
import runpy
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import tapetensor as tt
from tapetensor.mypy_plugin import shapes
from tapetensor.mypy_plugin.plugin import SOURCES
from tests.ops.samples import OPS
from tests.plugin.checked import EXAMPLES, SHAPES, bare_files, plugin_report, refused_file
from tests.typing import checkers
from tests.typing.checkers import FAIL
from tests.typing.operands import mask, q, vmask, zw

REVEAL, BAD, DOUBTFUL = (
    [path for path in SHAPES if path.stem.startswith(f"{kind}_")]
    for kind in ("reveal", "bad", "doubtful")
)
PLAIN = [*checkers.REVEAL, *checkers.PASS, *EXAMPLES]

_MORE_EXACT = re.compile(
    r'Expression is of type "(?P<found>.+)", not "(?P<claimed>.+)"  \[assert-type\]'
)
_OTHER_ROOMS = re.compile(r"  \[module-[a-z]+\]$")
_CODE = re.compile(r"  \[(shape-mismatch|axis-range|dtype-mismatch|(argument|operand)-kind)\]$")

# What plain typing rejects although it is right, which the plugin knows.
RIGHT = {
    ("elementwise_ops.pyi", "mask & vmask"),
    ("matmul_ops.pyi", "q @ zw"),
}

# How messages begin that have a code of mypy's own.
OF_MYPY = ("Argument", "Incompatible", "got", "'Tensor'", "has no attribute")

# The ops that the plugin has no rule for, since plain types say all that there is to say.
WITHOUT_RULE = {
    "they keep the shape of their tensor, whatever that is": {
        *("__abs__", "__invert__", "__neg__", "abs", "astype", "clip", "cos", "dropout", "elu"),
        *("exp", "gelu", "leaky_relu", "log", "nans_to", "realize", "reciprocal", "relu"),
        *("sigmoid", "silu", "sin", "softplus", "sqrt", "square", "tanh", "to", "tril", "triu"),
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "expm1", "log10"),
        *("log1p", "log2", "rsqrt", "sinh", "tan", "ceil", "floor", "round", "sign", "trunc"),
        *("isfinite", "isinf", "isnan"),
    },
    "its slopes broadcast to the tensor, never the tensor to them": {"prelu"},
    "its user declares the types of each": {"custom_op"},
}


def expected(path: Path) -> dict[int, str]:
    """Return the fragments of the message, with ... between, that each bad line is marked with.

    A mark on a line of its own is for the next one.
    """
    lines = enumerate(path.read_text().splitlines(), 1)
    return {
        number + line.strip().startswith("# E: "): line.split("# E: ")[1]
        for number, line in lines
        if "# E: " in line
    }


@pytest.mark.parametrize("path", REVEAL, ids=lambda path: path.stem)
def test_mypy_infers_what_is_claimed(path: Path) -> None:
    assert plugin_report()[path] == {}


@pytest.mark.parametrize("path", [*REVEAL, *DOUBTFUL], ids=lambda path: path.stem)
def test_what_is_inferred_is_true_at_run_time(path: Path) -> None:
    runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize("path", [*BAD, *DOUBTFUL], ids=lambda path: path.stem)
def test_each_bad_line_has_one_error_that_says_why_and_no_other_line_has_one(path: Path) -> None:
    errors, marks = plugin_report()[path], expected(path)

    assert errors.keys() == marks.keys()
    assert [line for line in errors if len(errors[line]) != 1] == []
    assert {n: errors[n][0] for n, words in marks.items() if not says(errors[n][0], words)} == {}


def says(message: str, words: str) -> bool:
    """Tell whether a message has all the fragments in it."""
    return all(fragment in message for fragment in words.split(" ... "))


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_each_bad_line_raises(path: Path) -> None:
    thunks = runpy.run_path(str(path))["BAD"]

    assert len(thunks) == len(expected(path))
    for thunk in thunks:
        # Python's own for an argument that is missing, and for an attribute.
        with pytest.raises((tt.TapeTensorError, TypeError, AttributeError)):
            thunk()


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_errors_of_the_plugin_have_codes_of_their_own(path: Path) -> None:
    ours = [words for words in expected(path).values() if not words.startswith(OF_MYPY)]
    messages = [message for line in plugin_report()[path].values() for message in line]

    assert len([one for one in messages if _CODE.search(one)]) == len(ours)


@pytest.mark.parametrize("path", PLAIN, ids=lambda path: f"{path.parent.name}_{path.stem}")
def test_of_valid_programs_nothing_is_rejected_and_claims_only_become_more_exact(
    path: Path,
) -> None:
    source = path.read_text()
    if "matplotlib" in source:
        pytest.importorskip("matplotlib")
    lines = source.splitlines()
    for number, messages in plugin_report()[path].items():
        for message in messages:
            assert is_welcome(message, lines[number - 1], lines[number - 2]), f"{number}: {message}"


def is_welcome(message: str, line: str, before: str) -> bool:
    """Tell whether the plugin rightly differs from what a line says of plain typing."""
    if match := _MORE_EXACT.fullmatch(message):
        # An open dim, or a size that plain typing forgot, has become a literal.
        return "Literal" in match["found"] or "tuple[()]" in match["found"]
    if _OTHER_ROOMS.search(message):
        return True
    if "Unused" in message:
        return "# type: ignore" in line
    if "raises(" in before:
        return _CODE.search(message) is not None
    # A shape that holds a -1 is no shape.
    return line.startswith("minus_one: ") and "[assignment]" in message


@pytest.mark.parametrize("path", FAIL, ids=lambda path: path.stem)
def test_what_plain_typing_rejects_is_still_rejected(path: Path) -> None:
    errors = plugin_report()[bare_files()[path]]
    bad = {
        number: line
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if "# type: ignore" in line and (path.name, line.split("  #")[0]) not in RIGHT
    }

    assert {number: line for number, line in bad.items() if number not in errors} == {}
    assert errors.keys() <= bad.keys()


@pytest.mark.parametrize("name", [*shapes._METHODS, *shapes._FUNCTIONS])
def test_every_op_that_the_plugin_knows_exists(name: str) -> None:
    # A function that moved to another module would go unchecked without a word.
    assert callable(pkgutil.resolve_name(name))


@pytest.mark.parametrize("name", sorted({name for op in OPS for name in op.covers}))
def test_every_op_has_a_rule_or_a_reason_to_have_none(name: str) -> None:
    known = {one.rpartition(".")[2] for one in (*shapes._METHODS, *shapes._FUNCTIONS)}
    reasons = [reason for reason, names in WITHOUT_RULE.items() if name in names]

    # One of the two, so that an op whose rule comes later leaves the list.
    assert (name in known) + len(reasons) == 1


def test_what_only_plain_typing_rejects_runs() -> None:
    logic, product = partial(operator.and_, mask), partial(operator.matmul, q)

    assert logic(vmask).shape == (2, 3)
    assert product(zw).shape == (5, 4, 2, 6)


# What a block says at run time, its first layer says; a layer's type has the number of channels
# that go in, which are not those of its weight where they are in groups; of some shapes mypy knows
# the last axes alone.
_OTHER_WORDS = ("EncoderBlock: ", "the layer takes ", "of the last axes, ")


def said_by_both(path: Path, calls: list[Callable[[], object]]) -> dict[str, str]:
    """Return what the plugin says of shapes in calls, each on a line, by what the run time says."""
    by_line = {call.__code__.co_firstlineno: call for call in calls}
    found: dict[str, str] = {}
    for line, messages in plugin_report()[path].items():
        message, _, code = messages[0].rpartition("  [")
        is_shared = code in {"shape-mismatch]", "axis-range]", "dtype-mismatch]"}
        # Those that are not on a line of their own are called with sizes in place of names.
        if line in by_line and is_shared and not any(words in message for words in _OTHER_WORDS):
            try:
                by_line[line]()
            except tt.TapeTensorError as error:
                found[str(error)] = message
            except TypeError:
                # The table hands over by place what is given by name.
                continue
    return found


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_of_shapes_and_axes_the_plugin_says_what_the_run_time_says(path: Path) -> None:
    said = said_by_both(path, runpy.run_path(str(path))["BAD"])

    assert said == {at_run_time: at_run_time for at_run_time in said}


def test_of_what_the_table_of_ops_refuses_both_say_one_sentence() -> None:
    path = refused_file()
    names = runpy.run_path(str(path))

    said = said_by_both(path, [one for name, one in names.items() if name.startswith("call_")])

    assert said == {at_run_time: at_run_time for at_run_time in said}
    assert len(said) > 200


def test_what_the_table_of_ops_refuses_mypy_refuses_but_for_values_and_empty_axes() -> None:
    path = refused_file()
    accepted = {
        next(name for name in re.findall(r"\.(\w+)\(", call) if name not in ("ones", "zeros"))
        for number, call in enumerate(path.read_text().splitlines(), 1)
        if call.startswith("def ") and number not in plugin_report()[path]
    }

    assert accepted == {
        *("max", "min", "median", "quantile", "argmax", "argmin", "interpolate", "upscale2d"),
        *("__getitem__", "take", "take_along_axis", "segment_sum"),
    }


def test_what_mypy_keeps_is_checked_anew_after_a_change_of_any_room_that_the_plugin_asks() -> None:
    library = Path(tt.__file__).parent
    watched = {source for pattern in SOURCES for source in library.glob(pattern)}
    asked = {
        found
        for source in (library / "mypy_plugin").rglob("*.py")
        for found in re.findall(r"^from tapetensor\.(\w+)", source.read_text(), re.MULTILINE)
    }

    assert asked
    assert {one for one in asked if not _is_watched(library, one, watched)} == set()


def _is_watched(library: Path, room: str, watched: set[Path]) -> bool:
    return (library / f"{room}.py") in watched or (library / room / "__init__.py") in watched
