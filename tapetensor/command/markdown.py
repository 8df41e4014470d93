"""The Markdown of the pages as HTML: headings, code, tables, lists, paragraphs, links.

No more than the pages use, so that a wheel brings them as text and needs no other package.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape

_FENCE = re.compile(r"^( *)```(\w*)")
_HEADING = re.compile(r"^(#{1,4}) (.+)$")
_ITEM = re.compile(r"^(?:[-*]|\d+\.) ")
_DIRECTIVE = re.compile(r"^::: (\S+)$")
# A line that ends a paragraph: an item, a heading, a fence, a row of a table, a directive.
_BREAK = re.compile(r"^(?:[-*] |\d+\. |#{1,4} |```|\||::: )")
_CODE = re.compile(r"(`+)(.+?)\1")
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")
_STRONG = re.compile(r"\*\*(.+?)\*\*")
_EMPHASIS = re.compile(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])")
_CELL = re.compile(r"(?<!\\)\|")


def to_html(text: str, link: Callable[[str], str | None], directive: Callable[[str], str]) -> str:
    """Return a page as HTML.

    Args:
        text: the page, as Markdown.
        link: gives the address that a link has in the end; None for one that leads nowhere.
        directive: gives the HTML in the place of ``::: name``.
    """
    return "\n".join(_blocks(text.splitlines(), link, directive))


def slug(title: str) -> str:
    """Return the anchor of a heading, as those who link to it write it.

    >>> slug("What `fit` does, and why")
    'what-fit-does-and-why'
    """
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def _blocks(
    lines: list[str], link: Callable[[str], str | None], directive: Callable[[str], str]
) -> Iterator[str]:
    place = 0
    while place < len(lines):
        line = lines[place]
        first = place
        if not line.strip() or line.startswith("<"):
            # An empty line, or HTML of the built site: frames with pictures, comments.
            place += 1
        elif fence := _FENCE.match(line):
            place = _end(lines, place + 1, lambda one: one.strip() != "```")
            code = "\n".join(one.removeprefix(fence[1]) for one in lines[first + 1 : place])
            place += 1
            # What the gallery prints is in the built site alone.
            if "--8<--" not in code:
                yield f"<pre><code>{escape(code)}</code></pre>"
        elif heading := _HEADING.match(line):
            place += 1
            level = len(heading[1])
            name, words = slug(heading[2]), _inline(heading[2], link)
            yield f'<h{level} id="{name}">{words}</h{level}>'
        elif named := _DIRECTIVE.match(line):
            place = _end(lines, place + 1, lambda one: one.startswith("    "))
            yield directive(named[1])
        elif line.startswith("|"):
            place = _end(lines, place, lambda one: one.startswith("|"))
            yield _table(lines[first:place], link)
        elif item := _ITEM.match(line):
            place = _end(lines, place, lambda one: _goes_on(one, _ITEM))
            tag = "ol" if item[0][0].isdigit() else "ul"
            items = _items(lines[first:place])
            body = "".join(f"<li>{''.join(_blocks(one, link, directive))}</li>" for one in items)
            yield f"<{tag}>{body}</{tag}>"
        else:
            place = _end(lines, place + 1, lambda one: one.strip() and not _BREAK.match(one))
            yield f"<p>{_inline(' '.join(map(str.strip, lines[first:place])), link)}</p>"


def _end(lines: list[str], start: int, holds: Callable[[str], object]) -> int:
    """Return the first place from `start` where something no longer holds."""
    place = start
    while place < len(lines) and holds(lines[place]):
        place += 1
    return place


def _goes_on(line: str, item: re.Pattern[str]) -> bool:
    """Tell whether a list goes on in a line: with an item, or with more of one."""
    return bool(item.match(line)) or line.startswith("  ")


def _items(lines: list[str]) -> list[list[str]]:
    """Return the lines of each item, without what makes it one."""
    items: list[list[str]] = []
    width = 0
    for line in lines:
        if item := _ITEM.match(line):
            width = len(item[0])
            items.append([line[width:]])
        else:
            items[-1].append(line[min(width, len(line) - len(line.lstrip())) :])
    return items


def _table(lines: list[str], link: Callable[[str], str | None]) -> str:
    rows = [
        [
            _inline(cell.strip().replace("\\|", "|"), link)
            for cell in _CELL.split(line.strip())[1:-1]
        ]
        for line in lines
    ]
    head, body = rows[0], rows[2:]
    parts = ["<table>"]
    if any(head):
        parts.append(f"<thead><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr></thead>")
    parts += [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in body]
    return "".join([*parts, "</table>"])


def _inline(text: str, link: Callable[[str], str | None]) -> str:
    """Return the text of a paragraph as HTML; code is set aside, for nothing in it is markup."""
    codes: list[str] = []

    def aside(found: re.Match[str]) -> str:
        codes.append(f"<code>{escape(found[2].strip(), quote=False)}</code>")
        return f"\0{len(codes) - 1}\0"

    def linked(found: re.Match[str]) -> str:
        address = link(found[2])
        return found[1] if address is None else f'<a href="{address}">{found[1]}</a>'

    text = escape(_CODE.sub(aside, text), quote=False)
    text = _LINK.sub(linked, _IMAGE.sub(r"<em>\1</em>", text))
    text = _EMPHASIS.sub(r"<em>\1</em>", _STRONG.sub(r"<strong>\1</strong>", text))
    return re.sub(r"\0(\d+)\0", lambda found: codes[int(found[1])], text)
