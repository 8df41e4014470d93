"""Ctrl-C as a request: the running step ends, and then the training."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from contextlib import AbstractContextManager
from typing import Any, Self

from typing_extensions import override

_SAID = b"\nfit: ends after this step; Ctrl-C once more ends at once, without a checkpoint\n"


class Interruption(AbstractContextManager["Interruption"]):
    """Takes note of a first Ctrl-C inside; a second one is a KeyboardInterrupt, as ever.

    Only the main thread gets Ctrl-C, and a handler that the program has set itself stays in
    charge.

    Attributes:
        asked: whether there was one.
    """

    def __init__(self) -> None:
        self.asked = False
        self._is_ours = False

    @override
    def __enter__(self) -> Self:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._is_ours = True
        return self

    @override
    def __exit__(self, *_: object) -> None:
        if self._is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _note(self, number: int, frame: Any) -> None:
        if self.asked:
            signal.default_int_handler(number, frame)
        self.asked = True
        # A call of print may be what was interrupted, so this writes by itself.
        with contextlib.suppress(OSError, ValueError):
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, _SAID)
