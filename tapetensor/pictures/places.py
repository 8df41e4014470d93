"""Places in the user's program."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from typing_extensions import override

# The modules that are not the user's, by the first part of their names.
NOT_USERS = {*sys.stdlib_module_names, "numpy", __name__.split(".", maxsplit=1)[0]}
NOT_USERS.discard("__main__")


_LIBRARY = str(Path(__file__).parents[1]) + os.sep
# Some builds of Python, as those for WebAssembly, have it in a zip file beside these folders.
_STDLIB = (
    *{sysconfig.get_path(one) for one in ("stdlib", "platstdlib")},
    str(Path(os.__file__).parent),
)


@cache
def is_users_module(name: str | None) -> bool:
    """Tell whether a module is neither one of numpy, nor of Python, nor of this library."""
    root = (name or "").split(".", maxsplit=1)[0]
    return root not in NOT_USERS or (root in sys.stdlib_module_names and _is_elsewhere(root))


def _is_elsewhere(root: str) -> bool:
    """Tell whether a module that is called as one of Python's lies in a folder of the user's."""
    module = sys.modules.get(root)
    file = getattr(module, "__file__", None)
    places = [file] if file else [*getattr(module, "__path__", [])]
    return any(not place.startswith(_STDLIB) for place in places)


def is_users_file(file: str) -> bool:
    """Tell whether a file is none of this library's own."""
    return not file.startswith(_LIBRARY)


@cache
def is_installed(file: str) -> bool:
    """Tell whether a file is that of an installed package, and not of the user's own project."""
    return not {"site-packages", "dist-packages"}.isdisjoint(file.split(os.sep))


class Place(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    @override
    def __str__(self) -> str:
        """Show it as tracebacks and editors do."""
        return f"{self.file}:{self.line}"

    def lines_around(self, count: int) -> list[tuple[int, str]]:
        """Return the numbered lines up to `count` before and after; none if the file is gone."""
        numbers = range(max(1, self.line - count), self.line + count + 1)
        found = [(number, linecache.getline(self.file, number)) for number in numbers]
        return [(number, text.rstrip()) for number, text in found if text]

    @property
    def uri(self) -> str | None:
        """The address of the file; None for what was typed in, which has none."""
        path = Path(self.file)
        return path.as_uri() if path.is_absolute() else None


def users_place() -> Place | None:
    """Return the line that called into the library; None if a thread began inside."""
    frame = users_frame()
    return None if frame is None else Place(frame.f_code.co_filename, frame.f_lineno)


def calling_place() -> tuple[str, int]:
    """Return file and line that called the function that asks, as a `Place` has them."""
    # Two frames, and no search, which costs ten times as much: this is asked at every step.
    frame = sys._getframe(2)
    return frame.f_code.co_filename, frame.f_lineno


def users_frame() -> FrameType | None:
    """Return the frame that called into the library; None if a thread began inside."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_users_module(frame.f_globals.get("__name__")) and not _is_written(frame.f_code):
            break
        frame = frame.f_back
    return frame


def _is_written(code: CodeType) -> bool:
    """Tell whether Python has written code itself, as the methods of data classes."""
    return code.co_filename == "<string>" and code.co_name.startswith("__")


_is_on: ContextVar[bool] = ContextVar("tapetensor_source_lines", default=False)
# Whether one tells of itself that it remembers lines.
remembers_lines = _is_on.get


@contextmanager
def source_lines() -> Iterator[None]:
    """Have tapes that begin inside remember which line of the program ran each op.

    `to_html` and `tree` show the lines. Finding a line costs about as much as a small op, so it is
    done on request only; without, ops cost what they cost.

    >>> import tapetensor as tt
    >>> with tt.source_lines():
    ...     loss = tt.ones((2,)).trace().exp().sum()
    >>> print(loss.tree(ascii=True))  # doctest: +ELLIPSIS
    tape of Tensor (), float32: 2 ops, 1 input, 12 B of results, backward time ...s
    #3 sum  () float32  4 B  ...s  /...py:...
    #2 exp  (2,) float32  8 B  ...s  /...py:...
    `- input  (2,) float32
    """
    before = _is_on.set(True)
    try:
        yield
    finally:
        _is_on.reset(before)


class Located(partial):  # type: ignore[type-arg]  # of whatever a kernel returns
    """A kernel, as a step names it, and the line that ran it."""

    place: Place | None
