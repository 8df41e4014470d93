"""What is set before numpy is imported: the kernel of its BLAS, and what becomes of freed memory.

Without numpy, because a kernel of OpenBLAS can be asked for only before numpy loads its BLAS.

A tape holds the arrays of a whole forward pass and frees them together. glibc then gives the memory
back to the system, and the next pass gets it again page by page: two fifths of the time of a step
of a small transformer. Kept, it costs nothing. So tapetensor sets two limits of glibc's allocator,
when it is imported. What is given up: up to `KEPT` bytes of freed memory stay with the process.

``TAPETENSOR_MEMORY=system`` leaves the allocator as it is, and so does any setting of glibc's own
(``MALLOC_TRIM_THRESHOLD_``, ``MALLOC_MMAP_THRESHOLD_``, ..., ``GLIBC_TUNABLES=glibc.malloc...``).
"""

from __future__ import annotations

import os
import platform
import sys
import warnings
from pathlib import Path
from typing import Final, NamedTuple

# OpenBLAS reads this once, while it is loaded.
KERNEL_VARIABLE = "OPENBLAS_CORETYPE"
# Set to "auto" it allows tapetensor to set the other one.
BLAS_SETTING = "TAPETENSOR_BLAS"

_AVX512 = frozenset({"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"})
_NEEDS = {
    "Haswell": frozenset({"avx2", "fma"}),
    "SkylakeX": _AVX512,
    "Cooperlake": _AVX512 | {"avx512_bf16"},
}


class Processor(NamedTuple):
    """The processor, as far as the system tells.

    Attributes:
        name: its model.
        vendor: "AuthenticAMD" or "GenuineIntel", say; empty if unknown.
        flags: what it can do, in Linux's words; empty if unknown.
    """

    name: str
    vendor: str
    flags: frozenset[str]


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> Processor:
    """Return what the system says of the processor."""
    fields: dict[str, str] = {}
    try:
        for line in cpuinfo.read_text().splitlines():
            name, _, value = line.partition(":")
            fields.setdefault(name.strip(), value.strip())
    except OSError:
        # Not Linux: nothing is known of the flags, so no kernel is advised.
        pass
    name = fields.get("model name") or platform.processor() or platform.machine()
    return Processor(name, fields.get("vendor_id", ""), frozenset(fields.get("flags", "").split()))


def runnable_kernels(of: Processor) -> list[str]:
    """Return the kernels whose instructions the processor has."""
    return [kernel for kernel, needs in _NEEDS.items() if needs <= of.flags]


def better_kernel(of: Processor) -> str | None:
    """Return the kernel to ask for where OpenBLAS is known to choose a slower one itself.

    An OpenBLAS that is older than the processor takes a kernel for AVX2 on AMD's processors, also
    where they have AVX-512: two thirds of the speed, or less.
    """
    return "SkylakeX" if of.vendor == "AuthenticAMD" and of.flags >= _AVX512 else None


def apply_blas_setting() -> None:
    """Ask OpenBLAS for the better kernel if ``TAPETENSOR_BLAS=auto`` allows it.

    A kernel that the user has asked for stays. It is too late once numpy is loaded, which warns.
    """
    setting = os.environ.get(BLAS_SETTING, "")
    kernel = better_kernel(processor()) if setting == "auto" else None
    if setting not in ("", "auto"):
        problem = (
            f'{BLAS_SETTING}={setting!r} is not understood and ignored; the one value is "auto", '
            f"a kernel of your choice is asked for with {KERNEL_VARIABLE}"
        )
    elif kernel is None or KERNEL_VARIABLE in os.environ:
        return
    elif "numpy" in sys.modules:
        problem = (
            f"{BLAS_SETTING}=auto comes too late: numpy, and its BLAS, were imported before "
            f"tapetensor. Import tapetensor first, or export {KERNEL_VARIABLE}={kernel}"
        )
    else:
        os.environ[KERNEL_VARIABLE] = kernel
        return
    warnings.warn(problem, RuntimeWarning, stacklevel=3)


MEMORY_SETTING = "TAPETENSOR_MEMORY"
KEPT = 1 << 29

# Of malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
# The largest that glibc accepts: larger arrays are mapped and unmapped one by one.
_MAPPED_FROM = 1 << 25


def keep_freed_memory() -> bool:
    """Set the limits where the allocator is glibc's and nobody has; tell whether it was done."""
    if os.environ.get(MEMORY_SETTING) == "system" or _is_set_by_the_user():
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


# CPython's two platforms of that kind: no thread and no process is started there.
IN_WEBASSEMBLY: Final = sys.platform in ("wasi", "emscripten")
