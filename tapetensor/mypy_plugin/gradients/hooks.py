"""The reports, each where mypy comes to the op that it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mypy.nodes import Context, FuncItem, MypyFile, OpExpr
from mypy.plugin import FunctionContext, MethodContext
from mypy.types import Type

from tapetensor.mypy_plugin import flow
from tapetensor.mypy_plugin.codes import MODULE_GRADIENT, TAPE_DROPPED
from tapetensor.mypy_plugin.gradients.statements import Allowance, Statements
from tapetensor.mypy_plugin.gradients.values import Inside, Lent, Lost
from tapetensor.mypy_plugin.moves.owners import may_be_plain

_FOREIGN = ("builtins.", "typing.", "numpy.", "_typeshed.", "math.", "collections.")


def function_result(fullname: str) -> Callable[[FunctionContext], Type] | None:
    """Return the hook for the calls of a function."""
    if fullname.startswith(_FOREIGN) and fullname not in ("builtins.sum", "builtins.abs"):
        return None
    return lost_gradients


def method_result(fullname: str) -> Callable[[MethodContext], Type] | None:
    """Return the hook for the calls of a method."""
    return None if fullname.startswith(_FOREIGN) else lost_gradients


def lost_gradients(context: FunctionContext | MethodContext) -> Type:
    """Report what is lost at a call or operator."""
    checker, where = context.api, context.context
    found = _found(checker, where)
    if found is not None:
        lost, lent = _at(found.lost, where), _at(found.lent, where)
        if lost is not None and (lost.by or _has_plain(context)):
            flow.report(checker, _words(lost), where, MODULE_GRADIENT)
        if lent is not None:
            flow.report(checker, _words_of_dropped(lent), where, TAPE_DROPPED)
        if (said := _at(found.said, where)) is not None:
            code, text = said
            flow.report(checker, text, where, code)
    return context.default_return_type


def _has_plain(context: FunctionContext | MethodContext) -> bool:
    """Tell whether an op may be given a plain tensor; mypy knows of calls that are not followed."""
    owner = [context.type] if isinstance(context, MethodContext) else []
    return any(map(may_be_plain, [*owner, *(one for each in context.arg_types for one in each)]))


class _Found:
    """What is to be reported of an outermost function, or of the top level of a module."""

    def __init__(self, unit: FuncItem | MypyFile, checker: Any, turn: object) -> None:
        self.unit, self.checker, self.turn = unit, checker, turn
        # By function, all that is found there.
        self._known: dict[FuncItem | MypyFile, set[Context]] = {}
        analysis = self._analysis(unit)
        self.lost = {
            node: one for node, one in analysis.lost.items() if not self._is_said(one.inside)
        }
        self.lent = {one.node: one for one in analysis.unused() if not self._is_said(one.inside)}
        self.said = analysis.said

    def _analysis(self, unit: FuncItem | MypyFile) -> Statements:
        analysis = Statements(unit, flow.tree(self.checker), _allowance_of(self.checker))
        analysis.go()
        self._known[unit] = {*analysis.lost, *(one.node for one in analysis.unused())}
        return analysis

    def _is_said(self, inside: Inside) -> bool:
        """Tell whether a report is made in one of the functions that are called."""
        for function, node in inside:
            if function not in self._known:
                self._analysis(function)
            if node in self._known[function]:
                return True
        return False


# The check of a file in which calls were gone through last, and how many are left.
_allowances: list[tuple[object, object, Allowance]] = [(None, None, Allowance())]


def _allowance_of(checker: Any) -> Allowance:
    run, turn = flow.run_of(checker), flow.turn(checker)
    *last, allowance = _allowances[-1]
    if last != [run, turn]:
        allowance = Allowance()
        _allowances[:] = [(run, turn, allowance)]
    return allowance


# What was found in the module that is being checked, and in a function in it.
_current: dict[bool, _Found] = {}


def _found(checker: Any, where: Context) -> _Found | None:
    if not flow.is_heard(checker):
        return None
    unit, turn = flow.unit(checker), flow.turn(checker)
    kept = _current.get(isinstance(unit, MypyFile))
    if kept is None or (kept.unit, kept.checker, kept.turn) != (unit, checker, turn):
        if not flow.is_supported(checker, where):
            return None
        kept = _current[isinstance(unit, MypyFile)] = _Found(unit, checker, turn)
    return kept


def _at(found: dict[Context, Any], where: Context) -> Any:
    """Return what was found of an expression, or of the right side of ``x += y``."""
    if where not in found and isinstance(where, OpExpr):
        return found.get(where.right)
    return found.get(where)


def _words(lost: Lost) -> str:
    origin = lost.origin
    late = ", and a tape that comes after it is too late" if lost.traced else ""
    tape = "OwnedTape" if lost.traced else lost.tape
    return (
        f'{lost.op}: "{origin.name}" gets no gradient here, for {origin.why} is not recorded'
        f"{lost.by}{late}; write {origin.cure.format(tape=tape)}{lost.note}, or "
        f"{origin.constant} for a constant"
    )


def _words_of_dropped(lent: Lent) -> str:
    gone = (
        "is not used after this, and all that its tape has recorded is gone with it: no gradient "
        "gets further back than this handle"
    )
    if not lent.name:
        return (
            f"{lent.op}: the tensor that is lent {gone}; leave {lent.op}() out, or write detach() "
            "for a constant"
        )
    return (
        f'{lent.op}: "{lent.name}" {gone}; use {lent.name} itself the last time, take '
        f"{lent.name}.share(), which has the record too, or {lent.name}.detach() for a constant"
    )
