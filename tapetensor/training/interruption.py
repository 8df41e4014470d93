"""Ctrl-C and SIGTERM as requests: the running step ends, and then the training."""

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
    """Takes note of a first Ctrl-C or SIGTERM inside; a second one does what it ever does.

    Schedulers of clusters send SIGTERM. Only the main thread gets signals, and a handler that the
    program has set itself stays in charge.

    Attributes:
        asked: whether there was one.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    @override
    def __enter__(self) -> Self:
        usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        if threading.current_thread() is threading.main_thread():
            for number, handler in usual.items():
                if signal.getsignal(number) is handler:
                    self._before[number] = signal.signal(number, self._note)
        return self

    @override
    def __exit__(self, *_: object) -> None:
        while self._before:
            signal.signal(*self._before.popitem())

    def _note(self, number: int, frame: Any) -> None:
        if self.asked:
            self.__exit__()
            signal.raise_signal(number)
        self.asked = True
        # A call of print may be what was interrupted, so this writes by itself.
        with contextlib.suppress(OSError, ValueError):
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, _SAID)
