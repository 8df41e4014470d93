"""The page in a browser: it draws, zooms, moves, searches, and a click shows the op.

A script after the page's own does what a person would, and writes down what is seen. It runs where
Chromium is installed; set ``TAPETENSOR_CHROMIUM`` to use another binary of that kind.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any
from typing import Literal as L

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import nn
from tapetensor.pictures import Graph, Op, to_html
from tests.pictures.test_page import HOSTILE, graph

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = os.environ.get("TAPETENSOR_CHROMIUM") or next(
    filter(None, map(shutil.which, _NAMES)), ""
)

pytestmark = pytest.mark.skipif(
    not CHROMIUM, reason="no Chromium on this machine (apt-get install chromium)"
)

# What the scripts of the tests are written with.
_TOOLS = """
const seen = {};
const box = (key) => document.querySelector(`[data-op="${key}"]`);
const frame = (element) => {
  const { left, top, width, height } = element.getBoundingClientRect();
  return { left, top, width, height, x: left + width / 2, y: top + height / 2 };
};
const at = (point) => document.elementFromPoint(point.x, point.y);
const opAt = (point) => at(point)?.closest(".op")?.dataset.op ?? null;
const send = (type, point, more = {}, kind = PointerEvent) => at(point).dispatchEvent(
  new kind(type, { clientX: point.x, clientY: point.y, bubbles: true, cancelable: true, ...more }));
const text = (id) => document.getElementById(id).innerText;
const drawn = () => new Promise((done) => setTimeout(done, 50));
"""
_ARRANGEMENT = """
{
  const graph = frame(document.getElementById("graph"));
  const details = frame(document.getElementById("details"));
  seen.isUnder = details.top >= graph.top + graph.height;
  seen.isBeside = details.left >= graph.left + graph.width;
  seen.overflow = document.documentElement.scrollWidth > innerWidth;
  seen.paper = getComputedStyle(document.body).backgroundColor;
}
"""
# Without a screen no frame is ever due: what waits for one is called soon. Where things are is
# found by laying the page out, which does not wait.
_NO_SCREEN = "<script>window.requestAnimationFrame = (call) => setTimeout(call, 1);</script>"


def seen_by(page: str, script: str, folder: Path, *options: str) -> Any:
    """Open a page, run a script after its own, and return what it put into ``seen``."""
    driver = f"""<script>
    document.currentScript.remove();
    (async () => {{
      {_TOOLS}
      try {{ {script} }} catch (error) {{ seen.error = String(error); }}
      const out = document.createElement("output");
      out.id = "seen";
      out.textContent = JSON.stringify(seen);
      document.body.append(out);
    }})();
    </script>"""
    path = folder / "page.html"
    path.write_text(page.replace("<body>", f"<body>{_NO_SCREEN}") + driver, "ascii")
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000", "--dump-dom",
        "--window-size=1200,800", *options, path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'<output id="seen">(.*?)</output>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr
    seen = json.loads(unescape(found[1]))
    assert "error" not in seen, seen
    return seen


def test_it_draws_zooms_moves_and_a_click_shows_the_op(tmp_path: Path) -> None:
    seen = seen_by(
        to_html(graph()),
        _ARRANGEMENT
        + """
        await drawn();
        const before = frame(box(7));
        seen.drawn = [opAt(frame(box(3))), opAt(before)];
        seen.isBelow = before.y > frame(box(3)).y;

        send("wheel", before, { deltaY: -300 }, WheelEvent);
        await drawn();
        const zoomed = frame(box(7));
        seen.grown = zoomed.width / before.width;
        seen.staysUnderThePointer = Math.hypot(zoomed.x - before.x, zoomed.y - before.y);
        document.getElementById("out").click();
        await drawn();
        seen.shrunk = frame(box(7)).width / zoomed.width;

        const from = frame(box(7));
        const empty = { x: 20, y: 600 };
        send("pointerdown", empty, { pointerId: 1 });
        send("pointermove", { x: 60, y: 570 }, { pointerId: 1 });
        send("pointerup", { x: 60, y: 570 }, { pointerId: 1 });
        send("click", { x: 60, y: 570 });
        await drawn();
        seen.moved = [frame(box(7)).left - from.left, frame(box(7)).top - from.top].map(Math.round);
        seen.chosenByDragging = document.querySelectorAll(".chosen").length;

        const point = frame(box(7));
        send("pointerdown", point, { pointerId: 1 });
        send("pointerup", point, { pointerId: 1 });
        send("click", point);
        seen.details = text("details");
        seen.chosen = [...document.querySelectorAll(".chosen")].map((one) => one.dataset.op);
        seen.near = document.querySelectorAll("path.near").length;
        seen.here = document.querySelector("pre .here").textContent;
        seen.link = document.querySelector(".source a").href;
        document.querySelector(".others button").click();
        seen.next = document.querySelector("#details h2").textContent;
        """,
        tmp_path,
    )

    assert (seen["isBeside"], seen["isUnder"], seen["overflow"]) == (True, False, False)
    assert seen["paper"] == "rgb(255, 255, 255)"
    assert seen["drawn"] == ["3", "7"]
    assert seen["isBelow"]
    assert seen["grown"] == pytest.approx(np.exp(0.45), rel=1e-3)
    assert seen["staysUnderThePointer"] < 1
    assert seen["shrunk"] == pytest.approx(1 / 1.3, rel=1e-3)
    assert seen["moved"] == [40, -30]
    assert seen["chosenByDragging"] == 0
    assert seen["chosen"] == ["7"]
    for part in ("#7 exp", "(2, 3)", "float32", "24 (24 B)", "1.5 us", "test_page.py:1"):
        assert part in seen["details"]
    assert seen["near"] == 1
    assert "The page of a graph" in seen["here"]
    assert seen["link"].startswith("file:///")
    assert seen["next"] == "#3 x"


def test_it_searches_a_transformer_and_is_used_by_keyboard(tmp_path: Path) -> None:
    model = tt.build(nn.Transformer[L[8], L[2], L[16], L[2], L[2]], rng=np.random.default_rng(0))
    x: tt.Tensor3D[Any, Any, L[8]] = tt.ones((2, 3, 8))
    loss = model.forward(x.trace(), x).square().mean()

    seen = seen_by(
        loss.to_html(names=model.parameters()),
        """
        await drawn();
        const press = (key, target = document.body) => target.dispatchEvent(
          new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
        press("/");
        seen.focused = document.activeElement.id;
        const query = document.getElementById("query");
        const search = (wanted) => {
          query.value = wanted;
          query.dispatchEvent(new Event("input"));
          return text("found");
        };
        seen.found = search("CROSS_attn.w_q.weight");
        document.getElementById("search").requestSubmit();
        await drawn();
        seen.first = text("found");
        seen.details = text("details");
        const chosen = frame(document.querySelector(".chosen"));
        const graph = frame(document.getElementById("graph"));
        seen.offCenter = Math.hypot(chosen.x - graph.x, chosen.y - graph.y);
        seen.missed = document.querySelectorAll(".missed").length;
        seen.none = search("no such op");
        search("");
        seen.missedAfter = document.querySelectorAll(".missed").length;
        const op = document.querySelector(".op:not(.input)");
        press("Enter", op);
        seen.byKey = document.querySelector("#details h2").textContent;
        press("0");
        await drawn();
        const scene = frame(document.getElementById("boxes"));
        seen.fits = scene.height <= graph.height && scene.width <= graph.width;
        seen.lettersAfar = frame(document.querySelector(".op text")).width;
        """,
        tmp_path,
    )

    assert seen["focused"] == "query"
    assert seen["found"] == "2 found"
    assert seen["first"] == "1 of 2"
    assert "cross_attn.w_q.weight" in seen["details"]
    assert seen["offCenter"] < 2
    assert seen["missed"] > 150
    assert seen["none"] == "0 found"
    assert seen["missedAfter"] == 0
    assert re.fullmatch(r"#\d+ \w+", seen["byKey"])
    assert seen["fits"]
    assert seen["lettersAfar"] == 0


def test_a_hostile_name_is_shown_and_does_nothing(tmp_path: Path) -> None:
    ops = [Op(1, HOSTILE, is_input=True), Op(2, HOSTILE, (1,), facts=((HOSTILE, HOSTILE),))]

    seen = seen_by(
        to_html(Graph(HOSTILE, ops, note=HOSTILE)),
        """
        await drawn();
        send("click", frame(box(2)));
        seen.title = document.querySelector("#details h2").textContent;
        seen.fact = document.querySelector("#details dd").textContent;
        seen.images = document.images.length;
        seen.hacked = typeof hacked;
        """,
        tmp_path,
    )

    assert seen["title"] == f"#2 {HOSTILE}"
    assert seen["fact"] == HOSTILE
    assert (seen["images"], seen["hacked"]) == (0, "undefined")
