"""The one place that reports, and all contact with the inside of mypy's checker.

The error codes can each be silenced on its own; their causes and cures are in
docs/error_catalogue.md, under their names. What no interface for plugins promises stands here, too,
and `guarded` keeps an error inside the plugin from becoming the end of a user's mypy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final, TypeVar

from mypy.binder import CurrentType
from mypy.checker import TypeChecker
from mypy.errorcodes import CALL_OVERLOAD, MISC, OPERATOR, ErrorCode
from mypy.literals import literal_hash
from mypy.nodes import Context, Expression, FuncItem, MypyFile, NameExpr, Var
from mypy.types import Type

from tapetensor.errors import explained_by

# The parents of these are the codes that mypy alone gives such a line, so that one `type: ignore`
# is right with the plugin and without it.
SHAPE_MISMATCH: Final = ErrorCode(
    "shape-mismatch", "Shapes do not fit an op", "Shape", sub_code_of=OPERATOR
)
AXIS_RANGE: Final = ErrorCode(
    "axis-range", "An axis or an index is outside the shape", "Shape", sub_code_of=CALL_OVERLOAD
)
DTYPE_MISMATCH: Final = ErrorCode(
    "dtype-mismatch", "Dtypes do not fit an op", "Shape", sub_code_of=MISC
)
ARGUMENT_KIND: Final = ErrorCode(
    "argument-kind",
    "An argument is missing or of the wrong kind",
    "Call",
    sub_code_of=CALL_OVERLOAD,
)
OPERAND_KIND: Final = ErrorCode(
    "operand-kind", "An operand is of a wrong kind", "Call", sub_code_of=OPERATOR
)
MODULE_FORWARD: Final = ErrorCode("module-forward", "A module cannot be called", "Module")
MODULE_NO_FORWARD: Final = ErrorCode(
    "module-no-forward", "A module has neither forward() nor any other method", "Module"
)
MODULE_DIMS: Final = ErrorCode("module-dims", "The dims of a module cannot be built", "Module")
MODULE_GRADIENT: Final = ErrorCode("module-gradient", "A gradient reaches no parameter", "Module")


def is_heard(checker: Any) -> bool:
    """Tell whether mypy shows what it finds in this file: not of installed packages, for one."""
    errors = getattr(getattr(checker, "msg", None), "errors", None)
    return getattr(errors, "file", None) not in getattr(errors, "ignored_files", ())


def checker_of(context: Any) -> TypeChecker:
    """Return the type checker that asks a plugin."""
    assert isinstance(context.api, TypeChecker)
    return context.api


def wanted_by(checker: TypeChecker) -> Type | None:
    """Return the type that the place of the expression wants that is being checked."""
    return checker.expr_checker.type_context[-1]


def unit(checker: TypeChecker) -> FuncItem | MypyFile:
    """Return the outermost function that is being checked, or the module."""
    return checker.scope.top_level_function() or checker.tree


def function(checker: TypeChecker) -> FuncItem | None:
    """Return the innermost function that is being checked."""
    return checker.scope.current_function()


def tree_of_classes(analyzer: Any) -> MypyFile:
    """Return the file whose classes are being read."""
    found: MypyFile = analyzer.cur_mod_node
    return found


def type_now(checker: TypeChecker, name: NameExpr) -> Type | None:
    """Return the type that a variable has at this place, narrowed by what it was assigned."""
    found = checker.binder.get(name)
    return name.node.type if found is None and isinstance(name.node, Var) else found


def redeclare(
    checker: TypeChecker, name: NameExpr, declared: Type, elsewhere: Callable[[Type], Type]
) -> None:
    """Make a variable, whose type mypy has inferred, one of a type that takes more values.

    mypy goes once more through a loop whose beginning had another one. `elsewhere` makes another
    type of that which the variable has on other paths to this place.
    """
    variable, binder = name.node, checker.binder
    assert isinstance(variable, Var)
    checker.set_inferred_type(variable, name, declared)
    checker.widened_vars.append(variable.name)
    key = literal_hash(name)
    if key is None or key not in binder.declarations:
        return
    binder.declarations[key] = declared
    for frame in (*binder.frames, *chain.from_iterable(binder.options_on_return)):
        if key in frame.types:
            frame.types[key] = CurrentType(elsewhere(frame.types[key].type), True)


def fail(context: Any, message: str, code: ErrorCode, where: Context | None = None) -> None:
    """Report an error where a hook is asked, or at another place.

    The first time in a run a note says how errors of its code are explained.
    """
    where = where or context.context
    context.api.fail(message, where, code=code)
    if context.api.in_checked_function():
        note_once(context.api, explained_by(code.code), where, code)


def note_once(api: Any, message: str, where: Context, code: ErrorCode | None = None) -> None:
    """Show a note the first time that there is reason to in a run."""
    # It reaches as far as mypy's own: a comment that ignores the error ignores it too.
    lines = range(where.line, (where.end_line or where.line) + 1)
    api.errors.report(
        where.line,
        where.column,
        message,
        code=code,
        severity="note",
        only_once=True,
        origin_span=lines if isinstance(where, Expression) else None,
    )


def report(context: Any, message: str, code: ErrorCode, where: Context | None = None) -> None:
    """Report an error, whatever mypy is trying out at the moment."""
    with unheard(context.api, by_all=True):
        fail(context, message, code, where)


def note(checker: Any, message: str, where: Context) -> None:
    """Show a note, whatever mypy is trying out at the moment."""
    if not hasattr(checker, "msg"):
        # No checker yet: mypy is reading annotations and classes.
        checker.note(message, where, code=None)
        return
    with unheard(checker, by_all=True):
        checker.msg.note(message, where)


@contextmanager
def unheard(checker: Any, *, by_all: bool = False) -> Iterator[None]:
    """Take away who listens to errors last, or all, who filter them out or draw conclusions.

    So does mypy to each method that an operator may be. Operators and overloads are checked by
    trying each signature, and an error makes mypy go on to the next.
    """
    watchers = getattr(checker.msg.errors, "_watchers", [])
    kept = watchers[:]
    del watchers[0 if by_all else -1 :]
    try:
        yield
    finally:
        watchers[:] = kept


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
    """Return `hook` with its exceptions turned into one note, and the default answer."""

    def safe(context: ContextT) -> ResultT:
        try:
            return hook(context)
        except Exception as error:
            if os.environ.get(RAISE):
                raise
            # Some hooks are made by `partial`, of a function that has the name.
            _note(context, getattr(hook, "func", hook).__name__, error)
            return default(context)

    return safe


_noted: set[str] = set()


def _note(context: Any, name: str, error: Exception) -> None:
    """Tell of an internal error, once per hook and run, where the user can see it."""
    # The context of a class has it under another name.
    where = getattr(context, "context", None) or getattr(context, "cls", None)
    if name in _noted or where is None or not is_heard(context.api):
        return
    _noted.add(name)
    note(context.api, _NOTE.format(name=name, error=error), where)
