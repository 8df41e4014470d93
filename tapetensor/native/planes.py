"""Channels of images, or planes, in frames of padding: what is common to all loops over them.

In a frame, what all windows read at one of their elements is one run of memory: rows that lie a
stride apart are neighbours. It has more in it at the ends of rows, and where windows of one row
stand apart, which is passed over in the end. So loops are long, and images stay as they come.
"""

from __future__ import annotations

from typing import NamedTuple

from tapetensor.kernels.numerics.windows import Sizes, Window
from tapetensor.native.lanes import IMPORTED


def _copy(name: str, vector: str, step: int) -> str:
    """Return the source of a function that copies elements which lie a step apart.

    What is less than a vector is copied with some of what was before it.
    """
    lines = [f"def {name}(source, at, target, to, count):", "    lanes = lane_count(source)"]
    test = "if"
    for part, kind in ((1, vector), (2, f"{vector}_half"), (4, f"{vector}_quarter")):
        size = "lanes" if part == 1 else f"lanes // {part}"
        lines += [
            f"    {test} {part} * count >= lanes:",
            f"        rest = count - {size}",
            f"        for j in range(0, rest, {size}):",
            f"            {kind}(source, at + {step} * j, target, to + j)",
            f"        {kind}(source, at + {step} * rest, target, to + rest)",
        ]
        test = "elif"
    lines += [
        "    else:",
        "        for j in range(count):",
        f"            target[to + j] = source[at + {step} * j]",
    ]
    # LLVM does not make it a part of a loop by itself, and a call costs more than a copy.
    return "\n".join([*lines, "", "", f"{name} = compiled({name}, forceinline=True)", "", ""])


# Functions for the source of a loop: between a plane and a frame. Windows that lie in a run are a
# plane in a frame without strides and padding.
FRAMES = f"""\
{IMPORTED}def place(row, column, shape, stride):
    part = row % stride[0] * stride[1] + column % stride[1]
    return (part * shape[0] + row // stride[0]) * shape[1] + column // stride[1]


{_copy("copy", "copied", 1)}
{_copy("copy_every_other", "picked", 2)}
place = compiled(place)


def enter(plane, frame, shape, stride, padding):
    height, width = plane.shape
    flat = plane.reshape(-1)
    for above in range(min(stride[0], height)):
        for start in range(min(stride[1], width)):
            to = place(above + padding[0], start + padding[1], shape, stride)
            count = (width - start - 1) // stride[1] + 1
            for row in range(above, height, stride[0]):
                at = row * width + start
                if stride[1] == 1:
                    copy(flat, at, frame, to, count)
                elif stride[1] == 2:
                    copy_every_other(flat, at, frame, to, count)
                else:
                    for j in range(count):
                        frame[to + j] = flat[at + j * stride[1]]
                to += shape[1]


def leave(frame, plane, shape, stride, padding):
    height, width = plane.shape
    flat = plane.reshape(-1)
    for above in range(min(stride[0], height)):
        for start in range(min(stride[1], width)):
            at = place(above + padding[0], start + padding[1], shape, stride)
            count = (width - start - 1) // stride[1] + 1
            for row in range(above, height, stride[0]):
                to = row * width + start
                if stride[1] == 1:
                    copy(frame, at, flat, to, count)
                elif stride[1] == 2:
                    for j in range(count):
                        flat[to + j * 2] = frame[at + j]
                else:
                    for j in range(count):
                        flat[to + j * stride[1]] = frame[at + j]
                at += shape[1]


enter, leave = compiled(enter), compiled(leave)


"""


class Frame(NamedTuple):
    """The frame of a plane.

    Its parts, one behind the other, are the elements that lie a stride apart in both directions.

    Attributes:
        shape: that of each part.
        run: how long the run of what all windows read is.
    """

    shape: tuple[int, int]
    run: int

    @property
    def size(self) -> int:
        """How many elements a part has."""
        return self.shape[0] * self.shape[1]

    def place(self, row: int, column: int, stride: Sizes) -> int:
        """Return where an element of the padded plane lies."""
        part = row % stride[0] * stride[1] + column % stride[1]
        return part * self.size + row // stride[0] * self.shape[1] + column // stride[1]


def frame_of(sizes: Sizes, window: Window) -> Frame:
    """Return the frame of planes, which windows of two axes read.

    The padding at the end of a row is that at the beginning of the next. Behind the last row of a
    part is the next part, which begins with further columns: so there is a row of nothing between.
    """
    down, right = window.counts(sizes)
    tall = -(-(sizes[0] + 2 * window.padding[0]) // window.stride[0])
    # Windows may stand in padding alone, and then a row of them is longer.
    across = max(-(-(sizes[1] + window.padding[1]) // window.stride[1]), right)
    if window.stride[1] > 1 and across * window.stride[1] < sizes[1] + 2 * window.padding[1]:
        tall += 1
    return Frame((tall, across), (down - 1) * across + right)
