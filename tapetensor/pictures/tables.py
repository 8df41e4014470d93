"""A table of text and numbers as HTML, for the output of a notebook's cell."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def table(title: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a table, whose first row says what the columns are, below a title.

    All but the first column is set to the right, and many rows are scrolled through.
    """
    head, *body = [[escape(cell) for cell in row] for row in rows]
    lines = [f"<tr>{''.join([f'<th>{cell}</th>' for cell in head])}</tr>"]
    for first, *others in body:
        cells = "".join([f'<td style="text-align: right">{cell}</td>' for cell in others])
        lines.append(f'<tr><td style="text-align: left">{first}</td>{cells}</tr>')
    return (
        f"<div><code>{escape(title)}</code></div>"
        '<div style="max-height: 320px; overflow: auto; display: inline-block">'
        f"<table>{''.join(lines)}</table></div>"
    )
