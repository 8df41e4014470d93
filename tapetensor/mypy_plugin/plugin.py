"""The dispatcher: which rooms answer which of mypy's questions.

mypy asks for a hook by full name, at every call and class. A room is a module that offers some
of seven functions of the full name, each of which returns a hook or None:

    function_signature, function_result, method_signature, method_result, attribute, base_class,
    annotation

The hooks of several rooms for one name run one after another, each on what the one before returned.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from mypy.nodes import MypyFile
from mypy.options import Options
from mypy.plugin import (
    AnalyzeTypeContext,
    AttributeContext,
    ClassDefContext,
    FunctionContext,
    FunctionSigContext,
    MethodContext,
    MethodSigContext,
    Plugin,
    ReportConfigContext,
)
from mypy.plugins.default import DefaultPlugin
from mypy.types import AnyType, FunctionLike, Type, TypeOfAny
from typing_extensions import override

from tapetensor.mypy_plugin import arguments, literals, modules, moves, shapes, symbols
from tapetensor.mypy_plugin.guard import guarded, quiet

# The rooms, in the order in which their hooks run.
ROOMS: tuple[ModuleType, ...] = (moves, shapes, literals, modules, arguments)

ContextT = TypeVar("ContextT", bound=Any)


class TapeTensorPlugin(Plugin):
    """The plugin: asks the rooms, in their order.

    mypy takes the first answer to a question, and asks its own plugin last. What that one knows
    (the values of enums, `functools.partial`) is left to it.
    """

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._of_mypy = DefaultPlugin(options)

    @override
    def set_modules(self, modules: dict[str, MypyFile]) -> None:
        """Take note of what mypy has read, so that the rooms can look up names."""
        super().set_modules(modules)
        symbols.set_modules(modules)

    @override
    def report_config_data(self, ctx: ReportConfigContext) -> str:
        """Tell mypy which plugin this is, so that results cached under another one do not count.

        mypy asks right before it writes down what other files are to know of one, too.
        """
        tree = None if ctx.is_check else self._modules and self._modules.get(ctx.id)
        if tree:
            quiet(moves.declare)(tree)
        return _digest()

    @override
    def get_function_signature_hook(
        self, fullname: str
    ) -> Callable[[FunctionSigContext], FunctionLike] | None:
        """Answer for the signature of a function at a call."""
        of_mypy = self._of_mypy.get_function_signature_hook
        return _chained("function_signature", fullname, "default_signature", of_mypy)

    @override
    def get_method_signature_hook(
        self, fullname: str
    ) -> Callable[[MethodSigContext], FunctionLike] | None:
        """Answer for the signature of a method at a call; overloads are asked for one by one."""
        of_mypy = self._of_mypy.get_method_signature_hook
        return _chained("method_signature", fullname, "default_signature", of_mypy)

    @override
    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """Answer for the result of a call of a function."""
        of_mypy = self._of_mypy.get_function_hook
        return _chained("function_result", fullname, "default_return_type", of_mypy)

    @override
    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """Answer for the result of a call of a method."""
        of_mypy = self._of_mypy.get_method_hook
        return _chained("method_result", fullname, "default_return_type", of_mypy)

    @override
    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        """Answer for the type of an attribute that is read."""
        of_mypy = self._of_mypy.get_attribute_hook
        return _chained("attribute", fullname, "default_attr_type", of_mypy)

    @override
    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        """Answer for what a name in an annotation stands for."""
        hooks = _hooks("annotation", fullname)
        unknown = AnyType(TypeOfAny.from_error)
        return guarded(hooks[0], lambda _: unknown) if hooks else None

    @override
    def get_base_class_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """Answer for a class with the base class `fullname`."""
        hooks = _hooks("base_class", fullname)
        if not hooks:
            return None

        def run(context: ClassDefContext) -> None:
            for hook in hooks:
                guarded(hook, lambda _: None)(context)

        return run


@cache
def _digest() -> str:
    """Return a fingerprint of the sources of the plugin."""
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    return sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


def _hooks(question: str, fullname: str) -> list[Callable[[Any], Any]]:
    return [hook for ask in _asked(question) if (hook := ask(fullname)) is not None]


@cache
def _asked(question: str) -> list[Callable[[str], Callable[[Any], Any] | None]]:
    """Return the functions of the rooms that answer a question, which mypy asks for every name."""
    return [getattr(room, question) for room in ROOMS if hasattr(room, question)]


def _chained(
    question: str, fullname: str, answer: str, of_mypy: Callable[[str], object]
) -> Callable[[ContextT], Any] | None:
    """Return one hook that runs those of the rooms; None if there is none, or mypy has its own.

    Args:
        question: the function of the rooms to ask.
        fullname: what mypy asks about.
        answer: the field of the context that holds the answer so far.
        of_mypy: what mypy asks of its own plugin.
    """
    hooks = [] if of_mypy(fullname) is not None else _hooks(question, fullname)
    if not hooks:
        return None

    def run(context: ContextT) -> Any:
        for hook in hooks:
            result = guarded(hook, lambda asked: getattr(asked, answer))(context)
            context = context._replace(**{answer: result})
        return getattr(context, answer)

    return run
