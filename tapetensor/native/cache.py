"""Generated code in files, because numba keeps the machine code of what stands in a file."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import platform
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from tapetensor.native.scalars import numba

# The variable that names another folder.
FOLDER_VARIABLE = "TAPETENSOR_CACHE_DIR"

_HEADER = '''"""Written by tapetensor: a group of steps of a compiled function."""

import math

import numpy as np

from tapetensor.native.scalars import compiled, scalars

b1, i1, i2, i4, i8 = np.bool_, np.int8, np.int16, np.int32, np.int64
u1, u8, f4, f8 = np.uint8, np.uint64, np.float32, np.float64
globals().update(vars(scalars()))


'''
_FOOTER = """

loop = compiled(loop, cache=True)
"""
# The versions of numba of which is known what compiled code needs of them.
_OLDEST, _NEWEST = (0, 61), (0, 68)
_loaded: dict[str, Any] = {}
# How long compiling took so far in this process, and when a user is told of it.
_compiling: list[float] = []
_WORTH_TELLING = 1.0


def load(source: str, types: tuple[Any, ...]) -> Callable[..., None]:
    """Return the compiled function of a source that defines ``loop``.

    Args:
        source: the source.
        types: numba's types of its arguments, for which it is compiled, or read from the cache.
    """
    text = f"{_HEADER}{source}{_FOOTER}"
    name = "loop_" + hashlib.sha256(f"{_surroundings()}{text}".encode()).hexdigest()[:32]
    known: Any = _loaded.get(name)
    if known is None:
        known = _loaded[name] = _read(name, text)
    if types not in known.overloads:
        started = time.perf_counter()
        try:
            known.compile(types)
        except Exception:
            # What is in the cache may be damaged. Without it, an error is one of the source.
            _remove(name)
            known = _loaded[name] = _read(name, text)
            known.compile(types)
        if types not in known.stats.cache_hits:
            _seal(name)
            _tell(time.perf_counter() - started)
    loop: Callable[..., None] = known
    return loop


def _tell(seconds: float) -> None:
    """Say once what a user waits for."""
    before = sum(_compiling)
    _compiling.append(seconds)
    if before < _WORTH_TELLING <= before + seconds:
        print(
            f"tapetensor: native code is compiled, and kept in {folder()} for the next time",
            file=sys.stderr,
        )


def loaded() -> tuple[str, ...]:
    """Return the names of the entries that this process has in use."""
    return tuple(_loaded)


@cache
def folder() -> Path:
    """Return the folder, which is this user's alone: what lies in it is run."""
    named = os.environ.get(FOLDER_VARIABLE)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    path = Path(named) if named else Path(base) / "tapetensor" / "native"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_private(path) and os.access(path, os.W_OK | os.X_OK):
            return path
    except OSError:
        pass
    # Then it lasts as long as the process.
    return Path(tempfile.mkdtemp(prefix="tapetensor-native-"))


def clear() -> int:
    """Remove all entries; return how many files there were."""
    count = 0
    for one in [*folder().glob("loop_*"), *folder().glob("__pycache__/loop_*")]:
        one.unlink(missing_ok=True)
        count += 1
    _loaded.clear()
    return count


def _is_private(path: Path) -> bool:
    """Tell whether nobody else can write into a folder."""
    if not hasattr(os, "getuid"):
        return True
    known = path.lstat()
    is_ours = stat.S_ISDIR(known.st_mode) and known.st_uid == os.getuid()
    return is_ours and not known.st_mode & 0o022


@cache
def _surroundings() -> str:
    """Return all that machine code depends on beside its source."""
    rooms = [
        Path(__file__).with_name(name) for name in ("polynomials.py", "scalars.py", "lanes.py")
    ]
    try:
        version = metadata.version("tapetensor")
    except metadata.PackageNotFoundError:
        version = "unknown"
    binding = importlib.import_module("llvmlite.binding")
    processor = [platform.machine(), binding.get_host_cpu_name()]
    versions = [sys.version, np.__version__, numba().__version__, version]
    return "\n".join([*processor, *versions, *[room.read_text() for room in rooms]])


def _read(name: str, text: str) -> Any:
    """Write the file of an entry, if it is not there as it should be, and import it."""
    path = folder() / f"{name}.py"
    if not _is_sound(name):
        _remove(name)
    if not path.exists() or path.read_bytes() != text.encode():
        _write(path, text)
    spec = importlib.util.spec_from_file_location(f"tapetensor_native_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # By that name numba finds the globals of cached code.
    sys.modules[module.__name__] = module
    config: Any = importlib.import_module("numba.core.config")
    before = config.CACHE_DIR
    # What numba keeps for others elsewhere is not sealed.
    config.CACHE_DIR = ""
    try:
        spec.loader.exec_module(module)
        loop: Any = module.loop
        if _OLDEST <= numba().version_info.short <= _NEWEST:
            loop._cache = _reader()(loop.py_func)  # noqa: SLF001  # numba has no public name for it
    finally:
        config.CACHE_DIR = before
    return loop


@cache
def _reader() -> Any:
    """Return the class of what reads machine code, and loads no more of numba than that needs.

    Before it looks, numba loads all that it compiles with, and scipy where that is installed, which
    takes longer than all the rest of a first call. What is compiled needs its run time alone.
    """
    caching: Any = importlib.import_module("numba.core.caching")
    helpers: dict[str, int] = importlib.import_module("numba.core.runtime._nrt_python").c_helpers
    binding: Any = importlib.import_module("llvmlite.binding")
    # What else machine code calls is part of it.
    for name, address in helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)

    class Reader(caching.FunctionCache):  # type: ignore[misc]  # numba has no types
        """Reads machine code."""

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            """Return what was compiled for a signature; None if that is not there."""
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)

    return Reader


def _write(path: Path, text: str) -> None:
    """Write a file that other processes see as a whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix="new_")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(temporary).replace(path)


def _machine_code(name: str) -> list[Path]:
    return sorted((folder() / "__pycache__").glob(f"{name}.*.nb[ci]"))


def _sum_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _seal(name: str) -> None:
    """Write down what the machine code of an entry looks like."""
    sums = {one.name: _sum_of(one) for one in _machine_code(name)}
    _write(folder() / f"{name}.json", json.dumps(sums))


def _is_sound(name: str) -> bool:
    """Tell whether the machine code of an entry is what was written, or there is none."""
    # It is looked for by name, for a folder may have thousands of entries.
    try:
        sealed: Any = json.loads((folder() / f"{name}.json").read_text())
        known = [(folder() / "__pycache__" / file, total) for file, total in sealed.items()]
        return bool(known) and all(_sum_of(file) == total for file, total in known)
    except (OSError, ValueError, AttributeError):
        return not _machine_code(name)


def _remove(name: str) -> None:
    for one in [*_machine_code(name), folder() / f"{name}.json", folder() / f"{name}.py"]:
        one.unlink(missing_ok=True)
