"""The guard keeps an error inside the plugin from becoming the end of a user's mypy."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from tapetensor.mypy_plugin import flow

ContextT = TypeVar("ContextT")
ResultT = TypeVar("ResultT")

_NOTE = (
    "tapetensor.mypy_plugin: internal error in {name} ({error!r}); the check goes on without this "
    "hint, please report it at the issue tracker of tapetensor"
)
# The plugin's own tests, and a bug report, set this to see the traceback instead.
RAISE = "TAPETENSOR_PLUGIN_RAISE"


def guarded(
    hook: Callable[[ContextT], ResultT], default: Callable[[ContextT], ResultT]
) -> Callable[[ContextT], ResultT]:
    """Return `hook` with its exceptions turned into one note, and the default answer.

    Args:
        hook: what the plugin does at a call, a class, ...
        default: what mypy would have done without the plugin.
    """

    def safe(context: ContextT) -> ResultT:
        try:
            return hook(context)
        except Exception as error:
            if os.environ.get(RAISE):
                raise
            _note(context, hook, error)
            return default(context)

    return safe


_noted: set[str] = set()


def _note(context: Any, hook: Callable[..., object], error: Exception) -> None:
    """Tell of an internal error, once per hook and run, where the user can see it."""
    name = hook.__name__
    # The context of a class has it under another name.
    where = getattr(context, "context", None) or getattr(context, "cls", None)
    if name in _noted or where is None or not flow.is_heard(context.api):
        return
    _noted.add(name)
    flow.note(context.api, _NOTE.format(name=name, error=error), where)
