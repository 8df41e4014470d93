"""Channels of images, or planes, in frames of padding: what is common to all loops over them.

In a frame, what all windows read at one of their elements is one run of memory: rows that lie a
stride apart are neighbours. It has more in it at the ends of rows, and where windows of one row
stand apart, which is passed over in the end. So loops are long, and images stay as they come.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tapetensor.arrays.array import Array
from tapetensor.kernels.numerics import threads
from tapetensor.kernels.numerics.windows import Sizes, Window
from tapetensor.native.loading import SMALLEST_FOR_THREADS, run_shares

# Functions for the source of a loop: between a plane and a frame, and between windows and a run.
# Neighbours have a loop of their own, which LLVM turns into vector instructions.
FRAMES = """
def place(row, column, tall, across, stride):
    return (row % stride[0] * tall + row // stride[0]) * across + column


place = compiled(place)


def enter(plane, frame, tall, across, stride, padding):
    height, width = plane.shape
    for row in range(height):
        at = place(row + padding[0], padding[1], tall, across, stride)
        line, target = plane[row], frame[at : at + width]
        for j in range(width):
            target[j] = line[j]


def leave(frame, plane, tall, across, stride, padding):
    height, width = plane.shape
    for row in range(height):
        at = place(row + padding[0], padding[1], tall, across, stride)
        line, source = plane[row], frame[at : at + width]
        for j in range(width):
            line[j] = source[j]


def spread(values, run, across, stride):
    down, right = values.shape
    for i in range(down):
        line, target = values[i], run[i * across :]
        if stride[1] == 1:
            for j in range(right):
                target[j] = line[j]
        else:
            for j in range(right):
                target[j * stride[1]] = line[j]


def pick(run, values, across, stride):
    down, right = values.shape
    for i in range(down):
        line, source = values[i], run[i * across :]
        if stride[1] == 1:
            for j in range(right):
                line[j] = source[j]
        else:
            for j in range(right):
                line[j] = source[j * stride[1]]


enter, leave, spread, pick = compiled(enter), compiled(leave), compiled(spread), compiled(pick)


"""


class Frame(NamedTuple):
    """The frame of a plane.

    Attributes:
        tall: how many rows of it lie a stride apart in the plane, one behind the other.
        across: how long each is.
        run: how long the run of what all windows read is.
    """

    tall: int
    across: int
    run: int


def frame_of(sizes: Sizes, window: Window) -> Frame:
    """Return the frame of planes, which windows of two axes read."""
    down, right = window.counts(sizes)
    tall = -(-(sizes[0] + 2 * window.padding[0]) // window.stride[0])
    across = sizes[1] + 2 * window.padding[1]
    return Frame(tall, across, (down - 1) * across + (right - 1) * window.stride[1] + 1)


def run_over(source: str, size: int, planes: Array, *args: Any) -> None:
    """Run ``loop(first, last, planes, ...)`` over planes, on threads if they are large.

    Args:
        source: the source of the loop.
        size: how many elements all that are read have.
        planes: an array of as many planes.
        args: its further arguments: arrays in C order, integers, pairs of them.
    """
    workers = threads.count() if size >= SMALLEST_FOR_THREADS else 1
    run_shares(source, threads.shares(len(planes), workers), planes, *args)
