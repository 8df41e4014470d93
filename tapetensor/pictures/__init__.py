"""Pictures of what ran: a graph of ops as an HTML page, in a notebook, and as text.

This room knows neither tapes nor plans: each of them describes itself as a `Graph`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapetensor.pictures.graph import Graph as Graph
from tapetensor.pictures.graph import Op as Op
from tapetensor.pictures.graph import tree as tree
from tapetensor.pictures.places import Place as Place
from tapetensor.pictures.places import calling_place as calling_place
from tapetensor.pictures.places import users_place as users_place

# Pages and tables are imported when one is drawn: with what they need of the standard library they
# would be a tenth of the import time.


def to_html(graph: Graph) -> str:
    """Return a page that draws a graph; nothing in it is loaded from elsewhere."""
    from tapetensor.pictures import page

    return page.to_html(graph)


def notebook_cell(graph: Graph, text: str = "") -> str:
    """Return the page in a frame, below a text, for the output of a notebook's cell."""
    from tapetensor.pictures import page

    return page.notebook_cell(graph, text)


def table(title: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML, whose first row says what the columns are."""
    from tapetensor.pictures import page

    return page.table(title, rows)
