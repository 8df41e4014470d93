"""The page of a graph: complete in itself, ASCII, and nothing in a name is taken for markup."""

from __future__ import annotations

import json
import re
import sys
import types
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

import tapetensor.pictures
from tapetensor.pictures import Graph, Op, Place, to_html
from tapetensor.pictures.places import is_users_module

HOSTILE = '</script><img src=x onerror="hacked=1"><!-- \' & \u2028 größe'


class Elements(HTMLParser):
    """Collects the elements of a page with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    """Return the elements of a page."""
    parser = Elements()
    parser.feed(page)
    return parser.found


def data_of(page: str) -> dict[str, Any]:
    """Return what the script of a page knows."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    data: dict[str, Any] = json.loads(text)
    return data


def ops_of(page: str) -> dict[str, Any]:
    """Return the ops by name, of which there is one each, with the names of their operands."""
    ops = data_of(page)["ops"]
    return {
        op["name"]: {
            **dict(op["facts"]),
            "operands": [ops[str(key)]["name"] for key in op["operands"]],
            "place": op["place"],
        }
        for op in ops.values()
    }


def graph() -> Graph:
    """Return an op with all that can be known, and its input."""
    here = Place(__file__, 1)
    return Graph(
        "a tape",
        [
            Op(3, "x", shape=(2, 3), dtype=np.dtype(np.float32), is_input=True),
            Op(7, "exp", (3,), (2, 3), np.dtype(np.float32), 1.5e-6, here, (("option", "none"),)),
        ],
        time_is="backward time",
    )


def test_every_op_is_a_box_and_every_operand_an_edge() -> None:
    found = elements(to_html(graph()))

    boxes = {it["data-op"]: it["aria-label"] for tag, it in found if tag == "g" and "data-op" in it}
    edges = [(it["data-from"], it["data-to"]) for tag, it in found if "data-from" in it]
    assert boxes == {"3": "x (2, 3) float32", "7": "exp (2, 3) float32"}
    assert edges == [("3", "7")]


def test_the_details_have_shape_dtype_bytes_time_and_the_source_line() -> None:
    data = data_of(to_html(graph()))

    assert data["ops"]["7"] == {
        "name": "exp",
        "facts": [
            ["shape", "(2, 3)"],
            ["dtype", "float32"],
            ["bytes", "24 (24 B)"],
            ["backward time", "1.5 us"],
            ["option", "none"],
        ],
        "operands": [3],
        "place": f"{__file__}:1",
    }
    source = data["sources"][f"{__file__}:1"]
    assert source["uri"] == Path(__file__).as_uri()
    assert source["lines"][0] == [1, (__doc__ or "").join(['"""'] * 2)]


def test_nothing_is_loaded_from_elsewhere() -> None:
    page = to_html(graph())

    assert re.findall(r"https?:|@import|url\((?!#)", page) == []
    attributes = {name for _, attributes in elements(page) for name in attributes}
    assert attributes.isdisjoint({"src", "href", "srcset", "action"})
    assert "default-src 'none'" in page


def test_names_are_never_markup() -> None:
    ops = [Op(1, HOSTILE, is_input=True), Op(2, HOSTILE, (1,), facts=((HOSTILE, HOSTILE),))]
    page = to_html(Graph(HOSTILE, ops, note=HOSTILE))

    tags = [tag for tag, _ in elements(page)]
    assert "img" not in tags
    assert tags.count("script") == 2
    assert page.count("</script>") == 2
    assert data_of(page)["ops"]["2"]["name"] == HOSTILE


def test_the_page_is_ascii_so_that_it_can_be_written_in_any_encoding() -> None:
    assert to_html(Graph("größe \u2028", [Op(1, "größe")])).isascii()


@pytest.mark.parametrize("name", ["page.css", "page.js"])
def test_style_and_script_are_ascii(name: str) -> None:
    folder = Path(tapetensor.pictures.__file__).parent

    assert (folder / name).read_bytes().isascii()
    assert "</" not in (folder / name).read_text("ascii")


def test_a_package_of_the_users_that_is_called_as_one_of_pythons_is_the_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = types.ModuleType("antigravity")
    package.__path__ = [str(tmp_path / "antigravity")]
    monkeypatch.setitem(sys.modules, "antigravity", package)

    assert is_users_module("antigravity.model")
    assert not is_users_module("json.decoder")
