"""Docstrings as pages: what a reader of the source understands is marked up for Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe

_DOCTEST = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)
# "lr: >= 0" would begin a quotation.
_BOUND = re.compile(r"^( +\w+: )(?=[<>])", re.MULTILINE)
# "in lines of their own::" is how reStructuredText begins a block of code.
_BLOCK = re.compile(r"::(?=\n\n +)")
_LABEL = re.compile(r"\n+(?P<label>Shape|Derivative|Tape|Source): ")


class Markup(griffe.Extension):
    """Fence the examples, and begin a paragraph at every label of the house's docstrings."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite a docstring before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = marked_up(obj.docstring.value)


def marked_up(docstring: str) -> str:
    """Return a docstring as Markdown."""
    fenced = _DOCTEST.sub(r"\g<indent>```pycon\n\g<0>\n\g<indent>```", docstring)
    plain = _BLOCK.sub(":", _BOUND.sub(r"\g<1>\\", fenced))
    return _LABEL.sub(r"\n\n**\g<label>**: ", plain)
