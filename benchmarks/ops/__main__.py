"""Single ops and layers beside PyTorch's: ``python -m benchmarks.ops``.

A step is the op on fresh leaves, a weighted sum of its result, and the gradients of the leaves and
of a layer's parameters, in float32. Neither library computes one for the weights of the sum.
Each library has a process of its own and they take turns; a figure is the smallest of the rounds'
medians. Before anything is timed both must agree on the sum and on the gradients.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from benchmarks.ops.cases import Layer, Measured, everything
from benchmarks.worker import time_steps

ROUNDS = 3
SECONDS = 0.1
# The threads of a BLAS go on spinning for a while after its last call.
PAUSE = 0.05

# What it computes is the value and the gradient of the first operand.
Step: TypeAlias = Callable[[], tuple[float, Any]]


def _pattern(shape: tuple[int, ...]) -> Any:
    """Return values that both libraries make alike."""
    return np.sin(np.arange(math.prod(shape), dtype=np.float32)).reshape(shape)


def _operands(one: Measured) -> list[Any]:
    if isinstance(one, Layer):
        return [_pattern(one.shape)]
    arrays = [_pattern(shape) for shape in one.shapes]
    return arrays if one.least is None else [np.abs(array) + one.least for array in arrays]


def our_step(one: Measured) -> Step:
    """Return a step of tapetensor."""
    import tapetensor as tt

    run: Any = one.ours
    parameters: list[Any] = []
    if isinstance(one, Layer):
        layer = one.ours(rng=np.random.default_rng(0))
        for name, parameter in layer.parameters().items():
            setattr(layer, name, tt.from_numpy(0.1 * _pattern(parameter.shape), parameter.shape))
        run = layer.forward
        parameters = list(layer.parameters().values())
    leaves: list[Any] = [tt.from_numpy(array, array.shape) for array in _operands(one)]
    weights: dict[Any, Any] = {}

    def step() -> tuple[float, Any]:
        found = run(*[leaf.trace() for leaf in leaves])
        found = found[0] if isinstance(found, tuple) else found
        shape = found.shape
        if shape not in weights:
            weights[shape] = tt.from_numpy(_pattern(shape), shape)
        total = (found * weights[shape]).sum()
        value = total.item()
        gradients = total.backward(wrt=[*leaves, *parameters])
        return value, gradients[leaves[0]].numpy()

    return step


def their_step(one: Measured) -> Step:
    """Return a step of PyTorch."""
    import torch

    run: Any = one.theirs() if isinstance(one, Layer) else one.theirs
    parameters = list(run.parameters()) if isinstance(one, Layer) else []
    for parameter in parameters:
        parameter.data.copy_(torch.from_numpy(0.1 * _pattern(tuple(parameter.shape))))
    operands = [torch.from_numpy(array) for array in _operands(one)]
    weights: dict[Any, Any] = {}

    def step() -> tuple[float, Any]:
        for parameter in parameters:
            parameter.grad = None
        leaves = [operand.detach().requires_grad_() for operand in operands]
        found = run(*leaves)
        found = found[0] if isinstance(found, tuple) else found
        shape = tuple(found.shape)
        if shape not in weights:
            weights[shape] = torch.from_numpy(_pattern(shape))
        total = (found * weights[shape]).sum()
        total.backward()
        return total.item(), leaves[0].grad.numpy()

    return step


STEPS = {"tapetensor": our_step, "torch": their_step}


def serve(library: str) -> None:
    """Answer the name of an op with what a step computes, and then with times of steps."""
    steps: dict[str, Step] = {}
    by_name = everything()
    for line in sys.stdin:
        name = json.loads(line)
        if name not in steps:
            steps[name] = STEPS[library](by_name[name])
            value, gradient = steps[name]()
            slope = np.vdot(gradient, _pattern(gradient.shape))
            print(json.dumps([value, float(slope)]), flush=True)
            continue
        samples = time_steps(steps[name], SECONDS)
        print(json.dumps(statistics.median(samples) * 1e6), flush=True)


def main() -> None:
    """Measure, and print a table with the slowest of ours first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", choices=tuple(STEPS), help="be the process of a library")
    parser.add_argument("--only", default="", help="a part of the names")
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    names = [name for name in everything() if arguments.only in name]
    processes = {
        library: subprocess.Popen(
            [sys.executable, "-m", "benchmarks.ops", "--serve", library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for library in STEPS
    }
    rows = []
    for name in names:
        ours, theirs = _measured(processes, name)
        rows.append((name, ours, theirs))
    for process in processes.values():
        process.communicate()
    print(f"| {'one op, forward and backward':<36} | tapetensor us | PyTorch us | ratio |")
    print("|---|---:|---:|---:|")
    for name, ours, theirs in sorted(rows, key=lambda row: row[2] / row[1]):
        print(f"| {name:<36} | {ours:13.1f} | {theirs:10.1f} | {ours / theirs:5.2f} |")


def _measured(processes: dict[str, subprocess.Popen[str]], name: str) -> list[float]:
    """Return the microseconds of a step in each library."""
    one, other = (_asked(process, name) for process in processes.values())
    if not np.allclose(one, other, rtol=1e-3, atol=1e-3):
        raise SystemExit(f"{name}: tapetensor computes {one}, PyTorch {other}")
    best = dict.fromkeys(processes, float("inf"))
    for _ in range(ROUNDS):
        for library, process in processes.items():
            best[library] = min(best[library], _asked(process, name))
            time.sleep(PAUSE)
    return list(best.values())


def _asked(process: subprocess.Popen[str], name: str) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(name) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        raise SystemExit(f"{name}: a process ended; what it printed is above")
    return json.loads(answer)


if __name__ == "__main__":
    main()
