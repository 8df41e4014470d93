"""Functions that call the function that they are given: with what, and whether at once."""

from __future__ import annotations

from mypy.nodes import ARG_POS, CallExpr

from tapetensor.mypy_plugin.moves.graph import Graph

# Functions that call their first argument with each item of the second one.
APPLIERS = {"builtins.map": 1, "builtins.filter": 1, "functools.reduce": 2, "_functools.reduce": 2}
_LAZY_APPLIERS = ("builtins.map", "builtins.filter")
# Functions and methods that run what stands at this place of their arguments, with the others.
RUNNERS = {
    **{
        f"concurrent.futures.{room}.{name}": 0
        for room in ("_base.Executor", "thread.ThreadPoolExecutor", "process.ProcessPoolExecutor")
        for name in ("submit", "map")
    },
    "asyncio.events.AbstractEventLoop.run_in_executor": 1,
    "asyncio.threads.to_thread": 0,
}


def applied_by(call: CallExpr, name: str, graph: Graph) -> CallExpr | None:
    """Return the call that a function makes which is given another one; None if not known."""
    args = call.args[RUNNERS.get(name, 0) :]
    kinds, names = call.arg_kinds[-len(args) :], call.arg_names[-len(args) :]
    if not args or (name in _LAZY_APPLIERS and call not in graph.consumed):
        return None
    if name in APPLIERS or name.endswith(".map"):
        several = args[1:2] * APPLIERS.get(name, 1)
        if len(several) > 1 and len(args) > len(several):
            # A reduction begins with what it is given for that.
            several[0] = args[len(several)]
        kinds, names = [ARG_POS] * len(several), [None] * len(several)
        return CallExpr(args[0], several, kinds, names) if several else None
    made = CallExpr(args[0], args[1:], kinds[1:], names[1:])
    is_awaited = call in graph.awaited
    return made if is_awaited or name != "asyncio.threads.to_thread" else None
