"""Run the examples of the gallery; write what they print and draw beside its page.

    python -m docs.site.gallery

Before the site is built: docs/gallery.md and docs/pictures.md show what this writes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

# As small as the examples are, threads wait for each other longer than they work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import nbformat
import numpy as np
from matplotlib.figure import Figure
from nbclient import NotebookClient
from nbconvert import HTMLExporter

import tapetensor as tt
from benchmarks.problems import WORKLOADS
from examples import gan
from tapetensor import losses
from tapetensor.compiler import plans

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "gallery"
# This one is kept with the figures that it draws, for the README shows it.
SPEED = ROOT / "docs" / "images" / "speed.png"
# The examples, each with what it is run with: small where it would take minutes.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "digits": ("--picture", "{}.png"),
    "cnn_digits": ("--epochs", "4", "--picture", "{}.png"),
    "char_transformer": ("--steps", "150", "--sample", "200", "--picture", "{}.png"),
    "ssm": ("--length", "34", "--steps", "500"),
    "gan": (),
    "graph_net": (),
    "saliency": ("--picture", "{}.png"),
    "fine_tuning": (),
    "lbfgs": (),
    "pole": (),
}


def run(name: str, options: tuple[str, ...]) -> None:
    """Run an example; write what it prints."""
    start = time.perf_counter()
    arguments = [one.format(FOLDER / name) for one in options]
    finished = subprocess.run(
        [sys.executable, ROOT / "examples" / f"{name}.py", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    # Where the pictures were written is of this machine only.
    (FOLDER / f"{name}.txt").write_text(finished.stdout.replace(f"{FOLDER}/", ""))
    print(f"{name}: {time.perf_counter() - start:.1f} s")


def draw_speed() -> None:
    """Draw the figures of docs/comparisons.json: times of others over those of tapetensor."""
    run = json.loads((ROOT / "docs" / "comparisons.json").read_text())[0]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots()
    others = {"torch": "PyTorch, eager", "torch-compile": "torch.compile", "jax": "jax.jit"}
    workloads = list(run["results"])
    for place, (other, label) in enumerate(others.items()):
        ratios = [
            row[other]["median_ms"] / row["tapetensor-compiled"]["median_ms"]
            if other in (row := run["results"][name])
            else 1.0
            for name in workloads
        ]
        left = np.arange(len(workloads)) + 0.27 * (place - 1)
        axes.bar(left, np.subtract(ratios, 1.0), width=0.25, bottom=1.0, label=label)
    axes.axhline(1.0, color="gray", linewidth=1)
    axes.set_yscale("log", base=2)
    names = [WORKLOADS[name].title.partition(",")[0] for name in workloads]
    labels = [
        textwrap.fill(f"{key}: {name}", 11) for key, name in zip(workloads, names, strict=True)
    ]
    axes.set_xticks(range(len(workloads)), labels, fontsize="small")
    axes.set(
        ylabel="time of the other\nover tapetensor's, compiled",
        title=run["about"].partition(", Python")[0],
    )
    axes.title.set_fontsize("small")
    axes.legend()
    figure.savefig(SPEED, dpi=120)


def draw_points() -> None:
    """Draw what the generator makes after more and more steps."""
    figure = Figure(figsize=(9, 3), layout="constrained")
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    for axes, steps in zip(panels, (100, 500, 2000), strict=True):
        rng = np.random.default_rng(0)
        generator = gan.train(steps, rng)
        noise: tt.Tensor2D[int, int] = tt.normal((1000, 8), rng=rng)
        axes.scatter(*generator.forward(noise).numpy().T, s=2)
        axes.set(title=f"{steps} steps", aspect="equal")
    figure.savefig(FOLDER / "gan.png")


def draw_rounds() -> None:
    """Draw how long the poles stand."""
    text = (FOLDER / "pole.txt").read_text()
    rounds, steps = np.array(re.findall(r"round +(\d+): .* for (\d+) steps", text), float).T
    figure = Figure(figsize=(5, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot(rounds, steps, marker="o")
    axes.set(xlabel="round", ylabel="steps until a pole falls", ylim=(0, 210))
    axes.grid(alpha=0.3)
    figure.savefig(FOLDER / "pole.png")


def draw_tape() -> None:
    """Write the page of a tape: of the generator and the discriminator one after the other."""
    rng = np.random.default_rng(0)
    generator, discriminator = (
        tt.build(gan.Generator, rng=rng),
        tt.build(gan.Discriminator, rng=rng),
    )
    noise: tt.Tensor2D[int, int] = tt.normal((256, 8), rng=rng)
    with tt.source_lines():
        judged = discriminator.forward(generator.forward(noise.trace()))
        loss = losses.binary_cross_entropy_with_logits(judged, tt.ones((256,)))
    names = {
        **{f"generator.{name}": one for name, one in generator.parameters().items()},
        **{f"discriminator.{name}": one for name, one in discriminator.parameters().items()},
    }
    (FOLDER / "tape.html").write_text(loss.to_html(names=names))


def draw_plan() -> None:
    """Write the page of a plan, with times."""
    model = tt.build(gan.Discriminator, rng=np.random.default_rng(0))
    score = tt.compile(lambda x: model.forward(x).sigmoid().mean())
    points = gan.real_points(256, np.random.default_rng(0))
    score(points)
    (plan,) = plans(score)
    plan.profile(points, repeats=20)
    (FOLDER / "plan.html").write_text(plan.to_html())


def run_notebook() -> None:
    """Write docs/notebook.md as a notebook, and as the page that it is when its cells have run."""
    text = (ROOT / "docs" / "notebook.md").read_text()
    # The pages that it leads to lie one folder up from here, and what is here beside it.
    text = re.sub(r"\]\((\w+)\.md", r"](../\1.html", text.replace("](gallery/", "]("))
    parts = re.split(r"^```python\n(.*?)\n```$", text, flags=re.MULTILINE | re.DOTALL)
    cells = [
        nbformat.v4.new_code_cell(part) if is_code else nbformat.v4.new_markdown_cell(part.strip())
        for number, part in enumerate(parts)
        if (is_code := number % 2) or part.strip()
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbformat.write(notebook, FOLDER / "notebook.ipynb")
    NotebookClient(notebook, coalesce_streams=True).execute()
    # The page loads nothing from elsewhere.
    nothing = {f"{name}_url": "" for name in ("require_js", "jquery", "mathjax", "mermaid_js")}
    page, _ = HTMLExporter(**nothing).from_notebook_node(notebook)
    (FOLDER / "notebook.html").write_text(page)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for example, its_options in EXAMPLES.items():
        run(example, its_options)
    draw_speed()
    draw_points()
    draw_rounds()
    draw_tape()
    draw_plan()
    run_notebook()
