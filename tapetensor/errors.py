"""Every error that tapetensor raises on purpose.

The tree, with the built-in class that a caller would expect beside each::

    TapeTensorError
    ├── ShapeError                ValueError           shapes that do not fit the op
    │   └── AxisError             IndexError           an axis or an index outside the shape
    ├── DTypeError                TypeError            dtypes mixed, or not usable for the op
    ├── ArgumentTypeError         TypeError            an argument of the wrong kind
    ├── ArgumentValueError        ValueError           a number outside its range
    ├── TapeUsedError             RuntimeError         what a backward pass has used up, used again
    ├── UntracedTensorError       RuntimeError         a tape wanted where there is none
    ├── TapeClosedError           RuntimeError         a tape used after its context was left
    ├── MissingGradientError      KeyError             `grads[t]` for a tensor without a gradient
    ├── UnusedParametersError     RuntimeError         parameters that an optimizer cannot update
    ├── HigherOrderError          NotImplementedError  a derivative of a derivative, where unknown
    ├── NumericalInstabilityError ArithmeticError      a NaN or an infinity where none may be
    ├── FileFormatError           ValueError           a file that is damaged, or not to be trusted
    ├── StateMismatchError        ValueError           a file that does not fit its model
    ├── DistributedError          RuntimeError         ranks that disagree, or one that has left
    ├── MissingDependencyError    ImportError          an optional package that is not installed
    ├── GradientMismatchError     AssertionError       what check_grad finds; in tapetensor.testing
    ├── BuildError                TypeError            a module whose annotations cannot be built
    └── TraceError                RuntimeError         what a replay cannot repeat

The cause and the cure of each: docs/error_catalogue.md, under the name of the class, which
``python -m tapetensor explain`` prints. A note of every error says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, Final

from typing_extensions import override


def explained_by(name: str) -> str:
    """Return the note that leads from an error to its entry in the catalogue."""
    return f"cause and cure: python -m tapetensor explain {name}"


# The modules of the errors that the catalogue knows.
_CATALOGUED = (__name__, "tapetensor.testing")
_PACKAGE = __name__.split(".", maxsplit=1)[0]


def is_frame_of_library(frame: FrameType) -> bool:
    """Tell whether a frame runs code of this package."""
    module: str = frame.f_globals.get("__name__") or ""
    return module.split(".", maxsplit=1)[0] == _PACKAGE


def cut_traceback(error: BaseException) -> None:
    """Leave out of a traceback the frames of this package, but for the first frame.

    A function that users call catches an error and asks for this before it raises the error again:
    what is shown is the user's line, that function, and the sentence. Frames of the user's own
    functions, which the library has called, stay.
    """
    above: TracebackType | None = error.__traceback__
    while above is not None and (below := above.tb_next) is not None:
        if is_frame_of_library(below.tb_frame):
            above.tb_next = below.tb_next
        else:
            above = below


def _is_explained(excinfo: Any) -> bool:
    """Tell pytest whether an error says by itself what was wrong in the user's line."""
    return isinstance(excinfo.value, TapeTensorError)


def _hide_from_pytest() -> None:
    """Have pytest leave out the frames of the library in which an error is made.

    pytest asks the module of a frame for this name. The modules get it when there is an error, so
    that nothing has to stand in each of them.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if is_frame_of_library(frame):
            frame.f_globals["__tracebackhide__"] = _is_explained
        frame = frame.f_back


class TapeTensorError(Exception):
    """The root of the tree: catch it to catch every error raised by tapetensor on purpose."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        # Of a class of the user's own the catalogue knows what it is derived from.
        known = next(one for one in type(self).__mro__ if one.__module__ in _CATALOGUED)
        if known is not TapeTensorError:
            # A note and no part of the message: it is for those who read a traceback.
            self.add_note(explained_by(known.__name__))
        _hide_from_pytest()

    @override
    def __str__(self) -> str:
        # The message alone: `args` may hold more, from which a pickled error is made again, and
        # KeyError would show the repr.
        return str(self.args[0]) if self.args else ""

    def _render_traceback_(self) -> list[str]:
        """Return what Jupyter and IPython show, which ask an error for it: the user's lines."""
        cut_traceback(self)
        shell: Any = sys.modules["IPython"].get_ipython()
        lines: list[str] = shell.InteractiveTB.structured_traceback(
            type(self), self, self.__traceback__, tb_offset=1
        )
        return lines


class _AtTheCall:
    """What cuts the traceback of an error of the library, as `cut_traceback` does."""

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, TapeTensorError):
            cut_traceback(error)


at_the_call: Final = _AtTheCall()


class ShapeError(TapeTensorError, ValueError):
    """Shapes do not fit the op that was called."""


class AxisError(ShapeError, IndexError):
    """An axis, or an index along an axis, lies outside the shape."""


class DTypeError(TapeTensorError, TypeError):
    """Dtypes were mixed, or an op was called with a dtype that it is not defined for."""


class ArgumentTypeError(TapeTensorError, TypeError):
    """An argument is of a kind that the function does not take."""


class ArgumentValueError(TapeTensorError, ValueError):
    """A number or an option lies outside the range that the function is defined for."""


class TapeUsedError(TapeTensorError, RuntimeError):
    """A backward pass came to what an earlier one had used up."""


class UntracedTensorError(TapeTensorError, RuntimeError):
    """A tape is wanted and the tensor owns none, or it owns one and must not."""


class TapeClosedError(TapeTensorError, RuntimeError):
    """A tape was used after the context that it belongs to had been left."""


class MissingGradientError(TapeTensorError, KeyError):
    """A gradient was asked for that no backward pass produced."""


class UnusedParametersError(TapeTensorError, RuntimeError):
    """Some parameters cannot be updated, so that none was.

    Attributes:
        names: the dotted names of the parameters that cannot be.
    """

    def __init__(self, message: str, names: Sequence[str]) -> None:
        super().__init__(message, names)
        self.names = tuple(names)


class NumericalInstabilityError(TapeTensorError, ArithmeticError):
    """A NaN or an infinity turned up where only finite numbers make sense."""


class HigherOrderError(TapeTensorError, NotImplementedError):
    """A derivative of a derivative was asked for through an op that has none."""


class FileFormatError(TapeTensorError, ValueError):
    """A file is damaged, of another format than its name says, or holds what is never loaded."""


class StateMismatchError(TapeTensorError, ValueError):
    """Saved arrays do not fit what they were to be loaded into, which is as before.

    Attributes:
        differences: all that does not fit, each in words that begin with its name.
    """

    def __init__(self, message: str, differences: Sequence[str]) -> None:
        super().__init__(message, differences)
        self.differences = tuple(differences)


class DistributedError(TapeTensorError, RuntimeError):
    """The ranks of a job disagree, one of them has left, or there are more or fewer than wanted."""


class MissingDependencyError(TapeTensorError, ImportError):
    """An optional package is not installed; the message says how it is."""


class BuildError(TapeTensorError, TypeError):
    """A module cannot be built from its annotations."""


class TraceError(TapeTensorError, RuntimeError):
    """A compiled function did what no replay repeats, or an exported one what ONNX cannot."""


def refusal(rule: Callable[[], object]) -> TapeTensorError:
    """Return the error that a rule raises for shapes that do not fit."""
    try:
        result = rule()
    except TapeTensorError as error:
        # A traceback ends where the user's values were refused, and not in the rule.
        return error.with_traceback(None)
    raise AssertionError(f"these shapes fit, and give {result}")
