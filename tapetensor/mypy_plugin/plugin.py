"""The dispatcher: which rooms answer which of mypy's questions.

mypy asks for a hook by full name, at every call and class. A room is a module that offers some
of six functions of the full name, each of which returns a hook or None:

    function_signature, function_result, method_signature, method_result, attribute, base_class

The hooks of several rooms for one name run one after another, each on what the one before returned.
What a name in an annotation stands for is asked of `shapes` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from mypy.nodes import MypyFile
from mypy.options import Options
from mypy.plugin import AnalyzeTypeContext, ClassDefContext, Plugin, ReportConfigContext
from mypy.plugins.default import DefaultPlugin
from mypy.types import AnyType, Type, TypeOfAny
from typing_extensions import override

from tapetensor.mypy_plugin import arguments, literals, modules, names, shapes, truth
from tapetensor.mypy_plugin.modules import declaring, training
from tapetensor.mypy_plugin.names import ELSEWHERE
from tapetensor.mypy_plugin.reporting import guarded

# The rooms, in the order in which their hooks run.
ROOMS: Final = (shapes, literals, modules, training, declaring, arguments, truth)


def _finder(question: str) -> Callable[[str], list[Callable[[Any], Any]]]:
    """Return what finds the hooks that the rooms have for a full name."""
    asked = [getattr(room, question) for room in ROOMS if hasattr(room, question)]

    def found(fullname: str) -> list[Callable[[Any], Any]]:
        return [hook for ask in asked if (hook := ask(fullname)) is not None]

    # Most names are Python's own, of which a class that is read later changes nothing.
    of_others = cache(found)
    return lambda fullname: (of_others if fullname.startswith(ELSEWHERE) else found)(fullname)


def _question(of_mypy: Callable[[Any, str], Any], question: str, answer: str) -> Any:
    """Return a method of the plugin: which hook answers one of mypy's questions at calls.

    It gives one hook that runs those of the rooms; None if there is none, or mypy has its own. Of
    what a method returns mypy is asked first, and the rooms after that (a call of a partial).
    """
    find = _finder(question)

    def get_hook(self: TapeTensorPlugin, fullname: str) -> Callable[[Any], Any] | None:
        own = of_mypy(self.of_mypy, fullname)
        hooks = [] if own is not None and question != "method_result" else find(fullname)

        def run(context: Any) -> Any:
            if own is not None:
                context = context._replace(**{answer: own(context)})
            for hook in hooks:
                result = guarded(hook, lambda asked: getattr(asked, answer))(context)
                if result is not getattr(context, answer):
                    context = context._replace(**{answer: result})
            return getattr(context, answer)

        return run if hooks else None

    return get_hook


_find_bases = _finder("base_class")


class TapeTensorPlugin(Plugin):
    """The plugin: asks the rooms, in their order.

    mypy takes the first answer to a question, and asks its own plugin last. What that one knows
    (the values of enums, `functools.partial`) is left to it.
    """

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.of_mypy = DefaultPlugin(options)

    @override
    def set_modules(self, modules: dict[str, MypyFile]) -> None:
        """Take note of what mypy has read, so that the rooms can look up names."""
        super().set_modules(modules)
        names.set_modules(modules)

    @override
    def report_config_data(self, ctx: ReportConfigContext) -> str:
        """Tell mypy which plugin this is, so that results cached under another one do not count."""
        return _digest()

    get_function_signature_hook = _question(
        DefaultPlugin.get_function_signature_hook, "function_signature", "default_signature"
    )
    get_function_hook = _question(
        DefaultPlugin.get_function_hook, "function_result", "default_return_type"
    )
    # Overloads are asked for one by one.
    get_method_signature_hook = _question(
        DefaultPlugin.get_method_signature_hook, "method_signature", "default_signature"
    )
    get_method_hook = _question(
        DefaultPlugin.get_method_hook, "method_result", "default_return_type"
    )
    get_attribute_hook = _question(
        DefaultPlugin.get_attribute_hook, "attribute", "default_attr_type"
    )

    @override
    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        """Answer for what a name in an annotation stands for."""
        # mypy asks this for every name in every annotation, 120,000 times for a small program.
        hook = None if shapes.is_plain(fullname) else shapes.annotation(fullname)
        if hook is None:
            return None
        unknown = AnyType(TypeOfAny.from_error)
        return guarded(hook, lambda _: unknown)

    @override
    def get_base_class_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """Answer for a class with the base class `fullname`."""
        hooks = _find_bases(fullname)

        def run(context: ClassDefContext) -> None:
            for hook in hooks:
                guarded(hook, lambda _: None)(context)

        return run if hooks else None


# What the answers of the plugin depend on.
SOURCES: Final = ("mypy_plugin/**/*.py", "rules/*.py", "arguments/*.py", "errors.py")


@cache
def _digest() -> str:
    """Return a fingerprint of the sources of the plugin, and of the rules that it asks."""
    library = Path(__file__).parents[1]
    sources = sorted(one for pattern in SOURCES for one in library.glob(pattern))
    return sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
