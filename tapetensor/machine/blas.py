"""Which OpenBLAS kernel suits the processor, and the setting that asks for it.

Without numpy, because a kernel can be asked for only before numpy loads its BLAS.
"""

from __future__ import annotations

import os
import platform
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

# OpenBLAS reads this once, while it is loaded.
KERNEL_VARIABLE = "OPENBLAS_CORETYPE"
# Set to "auto" it allows tapetensor to set the other one.
SETTING = "TAPETENSOR_BLAS"

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


def apply_setting() -> None:
    """Ask OpenBLAS for the better kernel if ``TAPETENSOR_BLAS=auto`` allows it.

    A kernel that the user has asked for stays. It is too late once numpy is loaded, which warns.
    """
    setting = os.environ.get(SETTING, "")
    kernel = better_kernel(processor()) if setting == "auto" else None
    if setting not in ("", "auto"):
        problem = (
            f'{SETTING}={setting!r} is not understood and ignored; the one value is "auto", '
            f"a kernel of your choice is asked for with {KERNEL_VARIABLE}"
        )
    elif kernel is None or KERNEL_VARIABLE in os.environ:
        return
    elif "numpy" in sys.modules:
        problem = (
            f"{SETTING}=auto comes too late: numpy, and its BLAS, were imported before tapetensor. "
            f"Import tapetensor first, or export {KERNEL_VARIABLE}={kernel}"
        )
    else:
        os.environ[KERNEL_VARIABLE] = kernel
        return
    warnings.warn(problem, RuntimeWarning, stacklevel=3)
