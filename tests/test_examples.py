"""The examples do what they say."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.typing.runs import once_a_session

ROOT = Path(__file__).parents[1]


# Imports take most of the time of a short run. What it prints ends with how its picture begins,
# if it draws one.
SEVERAL = """
import json, runpy, sys, tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    for number, arguments in enumerate(json.loads(sys.argv[1])):
        picture = Path(folder, f"{number}.png")
        sys.argv[:] = [*arguments, "--picture", str(picture)]
        runpy.run_path(arguments[0], run_name="__main__")
        print(picture.exists() and picture.read_bytes()[:4])
        print("next")
"""
TWICE = """
import runpy, sys
arguments = sys.argv[1:]
for more in [], ["--compile"]:
    sys.argv[:] = [*arguments, *more]
    runpy.run_path(sys.argv[0], run_name="__main__")
    print("next")
"""
# The runs that read the images of scikit-learn, which takes longer than to train on them: those
# that show what they reach, and those that are compared, under every kernel of a BLAS in CI.
# All 20 epochs of the convolutional one reach 98.5 % and more, which takes too long for a test.
ON_IMAGES = {
    "digits": ["examples/digits.py"],
    "convolutional digits": ["examples/cnn_digits.py", "--epochs=3"],
    "saliency": ["examples/saliency.py"],
    "fine-tuning": ["examples/fine_tuning.py"],
}
COMPARED = {
    "digits, eager": ["examples/digits.py", "--epochs=2"],
    "digits, compiled": ["examples/digits.py", "--epochs=2", "--compile"],
    "convolutional digits, eager": ["examples/cnn_digits.py", "--epochs=1"],
    "convolutional digits, compiled": ["examples/cnn_digits.py", "--epochs=1", "--compile"],
}
PNG = repr(b"\x89PNG")
NUMBERS = re.compile(r"(?:loss|accuracy) [\d.>\- ]+")


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skip a test where a package is missing; importing it here would take a second."""
    missing = [one for one in packages if importlib.util.find_spec(one) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


def run(*arguments: str) -> str:
    """Run an example as a user does and return what it prints."""
    finished = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def printed(name: str, runs: dict[str, list[str]]) -> str:
    """Return what one of the runs prints, all of which are made in one process."""
    several = json.dumps([*runs.values()])
    which = "compared" if runs is COMPARED else "images"
    said = once_a_session(which, lambda: run("-c", SEVERAL, several)).split("next\n")
    return dict(zip(runs, said, strict=False))[name]


@needs("sklearn", "matplotlib", "tqdm")
@pytest.mark.parametrize(
    ("name", "least"), [("digits", 97.0), ("convolutional digits", 96.5)], ids=["mlp", "cnn"]
)
def test_an_example_on_images_learns_and_draws_its_learning_curve(name: str, least: float) -> None:
    output = printed(name, ON_IMAGES)

    reached = float(output.rsplit("held-out accuracy ", 1)[1].split("%")[0])
    assert reached >= least
    assert output.splitlines()[-1] == PNG


@needs("sklearn", "matplotlib", "tqdm")
@pytest.mark.parametrize("name", ["digits", "convolutional digits"])
def test_a_compiled_example_on_images_learns_the_same(name: str) -> None:
    eager, compiled = [printed(f"{name}, {how}", COMPARED) for how in ("eager", "compiled")]

    assert NUMBERS.findall(eager)
    assert NUMBERS.findall(compiled) == NUMBERS.findall(eager)


def numbers_after(words: str, output: str) -> list[float]:
    """Return the numbers that stand at `#` wherever these words stand."""
    return [float(found) for found in re.findall(words.replace("#", r"([\d.]+)"), output)]


def test_the_graph_net_needs_its_edges() -> None:
    output = run("examples/graph_net.py")

    without, reached = numbers_after(r"labels, #% of the other nodes right", output)
    assert without < 60 < 80 < reached


def test_the_pole_stands_in_the_end() -> None:
    output = run("examples/pole.py", "--rounds", "40")

    (first,) = numbers_after(r"round   0: the poles stand for #", output)
    (last,) = numbers_after("in the end: # of 200", output)
    assert first < 40 < 190 < last


def test_the_gan_reaches_every_corner() -> None:
    output = run("examples/gan.py", "--steps", "1000")

    (near,) = numbers_after("#% of the points near a corner", output)
    (corners,) = numbers_after("corner, # of 8", output)
    assert near > 50
    assert corners == 8


@needs("sklearn", "matplotlib", "tqdm")
def test_a_classifier_misses_the_pixels_that_its_gradient_names() -> None:
    output = printed("saliency", ON_IMAGES)

    (least,) = numbers_after("count least #%", output)
    (most,) = numbers_after("count most #%", output)
    assert most < 80 < 95 < least
    assert output.splitlines()[-1] == PNG


@needs("sklearn", "matplotlib", "tqdm")
def test_a_body_that_knows_digits_needs_fewer_answers() -> None:
    output = printed("fine-tuning", ON_IMAGES)

    reached, fresh = numbers_after("fine-tuned: #%", output), numbers_after("nothing: #%", output)
    assert "taken: 6 of 8" in output
    assert fresh[0] < 90 < 92 < reached[0]


@needs("tqdm")
def test_the_state_space_example_remembers_what_an_mlp_cannot() -> None:
    output = run("examples/ssm.py", "--length", "18", "--steps", "300", "--hidden", "32")

    state_space, as_small, larger = [
        float(line.split("accuracy ")[1].split("%")[0])
        for line in output.splitlines()
        if "accuracy" in line
    ]
    assert state_space >= 60.0
    assert max(as_small, larger) <= 40.0
    losses = output.splitlines()[0].split("loss ")[1].split(",")[0]
    first, last = [float(loss) for loss in losses.split(" -> ")]
    assert last < first / 2.0


def test_the_contexts_example_reaches_what_mathematics_demands_and_does_not_grow() -> None:
    # Few steps, so that the models are still on their way and a wrong gradient would show.
    output = run("examples/contexts.py", "--steps", "7", "--forgetful-steps", "1000")

    assert output.count("after 7 steps") == 7
    assert "used after the context: mean: the tape was closed when context" in output
    assert "900 steps later there are" in output


@needs("matplotlib", "tqdm")
def test_the_character_transformer_learns_draws_writes_and_resumes(tmp_path: Path) -> None:
    checkpoint, picture = tmp_path / "gpt.npz", tmp_path / "curve.png"
    sizes = ["--width=16", "--layers=1", "--heads=2", "--context=16", "--batch=8"]
    small = ["--steps=40", "--sample=60", *sizes]

    def run_small(*arguments: str) -> str:
        program = "examples/char_transformer.py"
        return run(program, *small, "--checkpoint", str(checkpoint), *arguments)

    output = run_small("--picture", str(picture))
    again = run_small("--resume")

    reached = output.rsplit("held-out loss ", 1)[1].split()[0]
    # Without a clue it is log(96) = 4.56.
    assert float(reached) < 3.7
    assert "resumed after 40 steps" in again
    assert f"held-out loss {reached} nats" in again
    # The same model writes the same text, which begins as it was told.
    text = output.rsplit(" s\n", 1)[1]
    assert text == again.rsplit(" s\n", 1)[1]
    assert text.startswith("The ")
    assert len(text.rstrip("\n")) <= 64
    assert picture.read_bytes().startswith(b"\x89PNG")


@needs("matplotlib", "tqdm")
@pytest.mark.parametrize(
    "arguments",
    [
        ("examples/ssm.py", "--length=18", "--steps=40", "--hidden=8"),
        ("examples/char_transformer.py", "--steps=20", "--width=16", "--layers=1", "--sample=9"),
    ],
)
def test_a_compiled_example_learns_the_same(arguments: tuple[str, ...]) -> None:
    eager, compiled, _ = run("-c", TWICE, *arguments).split("next\n")

    assert NUMBERS.findall(eager)
    assert NUMBERS.findall(compiled) == NUMBERS.findall(eager)


@needs("scipy")
def test_l_bfgs_fits_a_curve_to_five_digits() -> None:
    output = run("examples/lbfgs.py")

    before, after = [float(loss) for loss in output.split("loss ")[1].split(" -> ")]
    assert after < 1e-5 < 1e-1 < before
