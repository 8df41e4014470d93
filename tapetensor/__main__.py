"""The command line: ``tapetensor COMMAND``, or ``python -m tapetensor COMMAND``."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import metadata
from pathlib import Path

from tapetensor.command.docs import contents, explanation, opened, serve
from tapetensor.command.new import new_project
from tapetensor.errors import TapeTensorError
from tapetensor.machine.doctor import examination
from tapetensor.native import cache


def main(arguments: list[str] | None = None) -> int:
    """Do what the arguments say; return the exit status."""
    is_script = Path(sys.argv[0]).stem == "tapetensor"
    name = "tapetensor" if is_script else "python -m tapetensor"
    parser = argparse.ArgumentParser(
        prog=name, description="Typed automatic differentiation on numpy."
    )
    parser.add_argument(
        "--version", action="version", version=f"tapetensor {metadata.version('tapetensor')}"
    )
    parser.set_defaults(run=lambda asked: parser.format_help().rstrip())
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    new = commands.add_parser(
        "new", help="write a small typed project that passes mypy and pytest at once"
    )
    new.add_argument("name", metavar="NAME", help="the name of the project and its package")
    new.set_defaults(run=lambda asked: _new(asked.name))
    explain = commands.add_parser("explain", help="print the cause and the cure of an error")
    explain.add_argument(
        "name", metavar="NAME", nargs="?", help="such as ShapeError, or axis-range, a code of mypy"
    )
    explain.set_defaults(run=lambda asked: explanation(asked.name) if asked.name else contents())
    docs = commands.add_parser("docs", help="open the pages that this installation brings")
    docs.add_argument("page", metavar="PAGE", nargs="?", help="a page, such as training")
    docs.add_argument("--serve", action="store_true", help="serve the pages until Ctrl-C")
    docs.add_argument("--port", type=int, default=8000, help="the port, by default 8000")
    docs.set_defaults(
        run=lambda asked: serve(asked.page, asked.port) if asked.serve else opened(asked.page)
    )
    doctor = commands.add_parser(
        "doctor", help="measure the speed of matrix products on this machine"
    )
    doctor.add_argument(
        "--clear-native", action="store_true", help="only empty the cache of machine code"
    )
    doctor.set_defaults(run=lambda asked: _clear() if asked.clear_native else examination())
    asked = parser.parse_args(arguments)
    try:
        print(asked.run(asked), flush=True)
    except BrokenPipeError:
        # Who reads has enough, as `head` does; nothing is left for Python to flush at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (TapeTensorError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _new(name: str) -> str:
    folder = new_project(name, Path())
    return f"{folder}/ is ready; its README.md says how to check, test and train it"


def _clear() -> str:
    return f"{cache.clear()} files of native code are removed from {cache.folder()}"


if __name__ == "__main__":
    sys.exit(main())
