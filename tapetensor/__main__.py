"""The command line: ``python -m tapetensor new NAME`` begins a project."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tapetensor.errors import TapeTensorError
from tapetensor.project import new_project


def main(arguments: list[str] | None = None) -> int:
    """Do what the arguments say; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tapetensor", description=__doc__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    new = commands.add_parser(
        "new", help="write a small typed project that passes mypy and pytest as it stands"
    )
    new.add_argument("name", metavar="NAME", help="of the project, its folder and its package")
    asked = parser.parse_args(arguments)
    try:
        folder = new_project(asked.name, Path())
    except (TapeTensorError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{folder}/ is ready; its README.md says how to check, test and train it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
