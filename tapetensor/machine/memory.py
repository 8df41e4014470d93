"""Keeping freed memory in the process, where the next step of a training loop finds it again.

A tape holds the arrays of a whole forward pass and frees them together. glibc then gives the memory
back to the system, and the next pass gets it again page by page: two fifths of the time of a step
of a small transformer. Kept, it costs nothing. So tapetensor sets two limits of glibc's allocator,
when it is imported. What is given up: up to `KEPT` bytes of freed memory stay with the process.

``TAPETENSOR_MEMORY=system`` leaves the allocator as it is, and so does any setting of glibc's own
(``MALLOC_TRIM_THRESHOLD_``, ``MALLOC_MMAP_THRESHOLD_``, ..., ``GLIBC_TUNABLES=glibc.malloc...``).
"""

from __future__ import annotations

import os
import sys

SETTING = "TAPETENSOR_MEMORY"
KEPT = 1 << 29

# Of malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
# The largest that glibc accepts: larger arrays are mapped and unmapped one by one.
_MAPPED_FROM = 1 << 25


def keep_freed_memory() -> bool:
    """Set the limits where the allocator is glibc's and nobody has; tell whether it was done."""
    if os.environ.get(SETTING) == "system" or _is_set_by_the_user():
        return False
    if not sys.platform.startswith("linux") or not _is_glibc():
        return False
    # Not at the top: elsewhere nothing of it is needed. numpy imports it in any case.
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # Setting one limit stops glibc from moving the other, so both are set. It answers 1 for yes.
    kept: int = mallopt(_M_TRIM_THRESHOLD, KEPT)
    mapped: int = mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM)
    return kept == mapped == 1


def _is_set_by_the_user() -> bool:
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    return "glibc.malloc." in tunables or any(one.startswith("MALLOC_") for one in os.environ)


def _is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (ValueError, OSError):
        return False
