"""Pictures of what ran: a graph of ops as an HTML page, in a notebook, and as text.

This room knows neither tapes nor plans: each of them describes itself as a `Graph`.
"""

from __future__ import annotations

from tapetensor.pictures.graph import Graph as Graph
from tapetensor.pictures.graph import Op as Op
from tapetensor.pictures.page import notebook_cell as notebook_cell
from tapetensor.pictures.page import to_html as to_html
from tapetensor.pictures.places import Place as Place
from tapetensor.pictures.places import users_place as users_place
from tapetensor.pictures.tree import tree as tree
