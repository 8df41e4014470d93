"""Docstrings as pages: what a reader of the source understands is marked up for Markdown."""

from __future__ import annotations

import copy
import re
from textwrap import indent
from typing import Any

import griffe

_DOCTEST = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)
# "lr: >= 0" would begin a quotation.
_BOUND = re.compile(r"^( +\w+: )(?=[<>])", re.MULTILINE)
# "in lines of their own::" is how reStructuredText begins a block of code.
_BLOCK = re.compile(r"::(?=\n\n +)")
_SHARED = re.compile(r"same_signature\((?:signatures\.)?(?P<name>\w+)\)")
_WIDTH = 100
_LABEL = re.compile(r"\n+(?P<label>Shape|Derivative|Tape|Source): ")


class Markup(griffe.Extension):
    """Fence the examples, and begin a paragraph at every label of the house's docstrings."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite a docstring before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = marked_up(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Show the overloads of each function, those that ops share too, folded below the rest."""
        tensor = pkg.modules["tensor"]
        sets = tensor.modules["signatures"].functions
        for room in tensor.modules.values():
            for family in room.classes.values():
                for method in family.functions.values():
                    for decorator in method.decorators:
                        if shared := _SHARED.fullmatch(str(decorator.value)):
                            overloads = sets[shared["name"]].overloads or []
                            method.overloads = [_of(method, one) for one in overloads]
        _give_fields(pkg.modules["nn"])
        _fold(pkg, set())


def _give_fields(nn: griffe.Module) -> None:
    """Give modules without a constructor of their own that which takes their fields."""
    of_all = nn.modules["module"].classes["Module"].attributes
    for room in nn.modules.values():
        for module in room.classes.values():
            if "__init__" in module.members or not module.docstring:
                continue
            fields = [
                griffe.Parameter(
                    name,
                    annotation=one.annotation,
                    kind=griffe.ParameterKind.keyword_only,
                    default=one.value,
                )
                for name, one in module.attributes.items()
                if one.annotation is not None and name not in of_all
            ]
            constructor = griffe.Function("__init__", parameters=griffe.Parameters(*fields))
            module.set_member("__init__", constructor)


def _of(method: griffe.Function, overload: griffe.Function) -> griffe.Function:
    own = copy.copy(overload)
    own.name, own.parent = method.name, method.parent
    return own


def _fold(module: griffe.Module | griffe.Class, seen: set[str]) -> None:
    for member in module.members.values():
        if member.is_alias or member.path in seen:
            continue
        seen.add(member.path)
        if isinstance(member, griffe.Module | griffe.Class):
            _fold(member, seen)
        elif isinstance(member, griffe.Function):
            # What only catches the arguments of other libraries is none.
            taken = [one for one in member.parameters if str(one.annotation) != "Never"]
            member.parameters = griffe.Parameters(*taken)
        if isinstance(member, griffe.Function) and member.overloads and member.docstring:
            signatures = "\n".join([_signature(one) for one in member.overloads])
            block = indent(f"```python\n{signatures}\n```", "    ")
            count = len(member.overloads)
            member.docstring.value += f'\n\n??? note "{count} overloads"\n\n{block}\n'


def _signature(overload: griffe.Function) -> str:
    line = overload.signature()
    if len(line) <= _WIDTH:
        return line
    given, _, result = line.rpartition(" -> ")
    return f"{given}\n    -> {result}"


def marked_up(docstring: str) -> str:
    """Return a docstring as Markdown."""
    fenced = _DOCTEST.sub(r"\g<indent>```pycon\n\g<0>\n\g<indent>```", docstring)
    plain = _BLOCK.sub(":", _BOUND.sub(r"\g<1>\\", fenced))
    return _LABEL.sub(r"\n\n**\g<label>**: ", plain)
