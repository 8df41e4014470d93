"""A graph of ops as one HTML page that needs nothing but a browser, and tables for notebooks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import pairwise
from typing import Any

from tapetensor.pictures.graph import Graph, Op, in_bytes, in_seconds
from tapetensor.pictures.layout import HEIGHT, WIDTH, Edge, Layout, Point, layout

# So many lines of source are shown before and after the one that ran an op.
_AROUND = 3
# So many characters of a name fit into a box.
_FITS = 24
_MARGIN = 40


def to_html(graph: Graph) -> str:
    """Return a page that draws a graph: nothing is loaded from elsewhere, and all of it is ASCII.

    The drawing is there without its script too; the script zooms, searches and shows details.
    """
    placed = layout(graph.ops)
    note = f'<p id="note">{escape(graph.note)}</p>' if graph.note else ""
    page = _PAGE.format(
        title=escape(graph.title),
        summary=escape(graph.summary),
        note=note,
        style=_file("page.css"),
        script=_file("page.js"),
        scene=_scene(graph, placed),
        data=_as_script_data(_details(graph, placed)),
        width=placed.width + 2 * _MARGIN,
        height=placed.height + 2 * _MARGIN,
        margin=_MARGIN,
    )
    return page.encode("ascii", "xmlcharrefreplace").decode()


def notebook_cell(graph: Graph, text: str = "") -> str:
    """Return the page in a frame, below a text, for the output of a notebook's cell."""
    above = f"<pre>{escape(text)}</pre>" if text else ""
    return (
        f"{above}"
        '<iframe style="width: 100%; height: 520px; border: 1px solid #8886; border-radius: 6px" '
        f'title="{escape(graph.title)}" srcdoc="{escape(to_html(graph))}"></iframe>'
    )


@cache
def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text("ascii")


def _scene(graph: Graph, placed: Layout) -> str:
    weights = _weights(graph)
    edges = "".join([_edge(edge) for edge in placed.edges])
    boxes = "".join([_box(op, placed.centers[op.key], weights[op.key]) for op in graph.ops])
    return f'<g id="edges">{edges}</g><g id="boxes">{boxes}</g>'


def _weights(graph: Graph) -> dict[int, float]:
    """Return how much of the time each op takes, of the largest; without times, of the bytes."""
    amounts = {op.key: op.seconds or 0.0 for op in graph.ops}
    if not any(amounts.values()):
        amounts = {op.key: 0.0 if op.is_input else float(op.nbytes or 0) for op in graph.ops}
    largest = max(amounts.values(), default=0.0)
    return {key: amount / largest if largest else 0.0 for key, amount in amounts.items()}


def _edge(edge: Edge) -> str:
    points = list(edge.points)
    (x, y), bottom = points[0], points[-1]
    start, end = (x, y + HEIGHT / 2), (bottom[0], bottom[1] - HEIGHT / 2)
    if edge.is_arc:
        # Out to the side and back, so that it does not run behind every box in between.
        aside = max(x, bottom[0]) + WIDTH / 2 + min(400, 0.15 * (end[1] - start[1]))
        path = f"M{_at(start)}C{_at((aside, start[1] + 40))} {_at((aside, end[1] - 40))} {_at(end)}"
    else:
        way = pairwise([start, *points[1:-1], end])
        path = f"M{_at(start)}" + "".join([_bend(one, other) for one, other in way])
    style = ' class="arc"' if edge.is_arc else ""
    return f'<path{style} data-from="{edge.source}" data-to="{edge.target}" d="{path}"/>'


def _bend(start: Point, end: Point) -> str:
    middle = (start[1] + end[1]) / 2
    return f"C{_at((start[0], middle))} {_at((end[0], middle))} {_at(end)}"


def _at(point: Point) -> str:
    return f"{point[0]:g},{point[1]:g}"


def _box(op: Op, center: Point, weight: float) -> str:
    x, y = center[0] - WIDTH / 2, center[1] - HEIGHT / 2
    kind = "op input" if op.is_input else "op"
    label = escape(f"{op.name} {op.form}".rstrip())
    # Of a dotted name the end says more than the beginning.
    name = _cut(op.name[::-1])[::-1] if op.is_input else _cut(op.name)
    form = _cut(op.form, _FITS + 4)
    bar = f'<rect class="bar" y="{HEIGHT - 4}" width="{weight * WIDTH:.1f}" height="4"/>'
    middle, first_line = f"{WIDTH / 2:g}", 18 if form else 27
    return (
        f'<g class="{kind}" data-op="{op.key}" tabindex="0" role="button" aria-label="{label}" '
        f'transform="translate({x:g} {y:g})"><rect class="body" width="{WIDTH}" height="{HEIGHT}" '
        f'rx="6"/>{bar if weight > 0 else ""}'
        f'<text x="{middle}" y="{first_line}">{escape(name)}</text>'
        f'<text class="form" x="{middle}" y="33">{escape(form)}</text></g>'
    )


def _cut(text: str, fits: int = _FITS) -> str:
    return text if len(text) <= fits else f"{text[: fits - 1]}\u2026"


def _details(graph: Graph, placed: Layout) -> dict[str, Any]:
    """Return what the script needs to know."""
    sources: dict[str, Any] = {}
    for op in graph.ops:
        if op.place is not None and str(op.place) not in sources:
            lines = op.place.lines_around(_AROUND)
            sources[str(op.place)] = {"line": op.place.line, "uri": op.place.uri, "lines": lines}
    ops = {op.key: _facts(graph, op) for op in graph.ops}
    centers = {key: list(center) for key, center in placed.centers.items()}
    return {"ops": ops, "centers": centers, "sources": sources}


def _facts(graph: Graph, op: Op) -> dict[str, Any]:
    facts: list[tuple[str, str]] = []
    if op.shape is not None:
        facts.append(("shape", str(op.shape)))
    if op.dtype is not None:
        facts.append(("dtype", str(op.dtype)))
    if op.nbytes is not None:
        facts.append(("bytes", f"{op.nbytes:,} ({in_bytes(op.nbytes)})"))
    if op.seconds is not None:
        facts.append((graph.time_is, in_seconds(op.seconds)))
    return {
        "name": op.name,
        "facts": [*facts, *op.facts],
        "operands": op.operands,
        "place": None if op.place is None else str(op.place),
    }


def _as_script_data(data: dict[str, Any]) -> str:
    """Return JSON in which nothing can end the element that it stands in."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p id="summary">{summary}</p>
<form id="search" role="search">
<input id="query" type="search" placeholder="search: name, shape, file" aria-label="search ops">
<output id="found"></output>
</form>
<div id="buttons">
<button type="button" id="out" aria-label="zoom out">&minus;</button>
<button type="button" id="in" aria-label="zoom in">+</button>
<button type="button" id="fit">fit</button>
</div>
</header>
<main>
<svg id="graph" viewBox="0 0 {width:g} {height:g}" preserveAspectRatio="xMidYMin meet"
 role="group" aria-label="graph of ops">
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
 orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>
<g id="scene"><g id="drawing" transform="translate({margin} {margin})">{scene}</g></g>
</svg>
<aside id="details" aria-live="polite">{note}<p id="hint">Click an op for its details. Drag to move,
 turn the wheel or press + and &minus; to zoom, 0 to see all, / to search.</p></aside>
</main>
<script type="application/json" id="data">{data}</script>
<script>
{script}</script>
</body>
</html>
"""


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
