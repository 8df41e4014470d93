"""Docstrings as pages: what a reader of the source understands is marked up for Markdown."""

from __future__ import annotations

import copy
import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)
# "lr: >= 0" would begin a quotation.
_BOUND = re.compile(r"^( +\w+: )(?=[<>])", re.MULTILINE)
# "in lines of their own::" is how reStructuredText begins a block of code.
_BLOCK = re.compile(r"::(?=\n\n +)")
_SHARED = re.compile(r"same_signature\((?:signatures\.)?(?P<name>\w+)\)")
_LABEL = re.compile(r"\n+(?P<label>Shape|Derivative|Tape|Source): ")


class Markup(griffe.Extension):
    """Fence the examples, and begin a paragraph at every label of the house's docstrings."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite a docstring before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = marked_up(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Show a set of overloads that ops share under the name of each of them."""
        tensor = pkg.modules["tensor"]
        sets = tensor.modules["signatures"].functions
        for room in tensor.modules.values():
            for family in room.classes.values():
                for method in family.functions.values():
                    for decorator in method.decorators:
                        if shared := _SHARED.fullmatch(str(decorator.value)):
                            overloads = sets[shared["name"]].overloads or []
                            method.overloads = [_of(method, one) for one in overloads]


def _of(method: griffe.Function, overload: griffe.Function) -> griffe.Function:
    own = copy.copy(overload)
    own.name, own.parent = method.name, method.parent
    return own


def marked_up(docstring: str) -> str:
    """Return a docstring as Markdown."""
    fenced = _DOCTEST.sub(r"\g<indent>```pycon\n\g<0>\n\g<indent>```", docstring)
    plain = _BLOCK.sub(":", _BOUND.sub(r"\g<1>\\", fenced))
    return _LABEL.sub(r"\n\n**\g<label>**: ", plain)
