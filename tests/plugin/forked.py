"""mypy and the plugin, imported once: each line on stdin is a run in a process of its own.

To import them takes longer than to check a short program. A run says in JSON what it needs: options
of mypy, an environment, and what it breaks of the rooms below. Its answer is a line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

import mypy.main  # noqa: F401  # what api.run would import
from mypy import api, version  # noqa: F401  # something to break

from tapetensor.mypy_plugin import reporting  # noqa: F401  # the same
from tapetensor.mypy_plugin.modules import calling  # noqa: F401  # the same
from tapetensor.mypy_plugin.shapes import calls, computed  # noqa: F401  # the same


def broken(*arguments: Any) -> None:
    """Stand in for a function of the plugin, and fail in the program that is checked."""
    if getattr(getattr(arguments[0], "tree", None), "fullname", "main") == "main":
        raise ZeroDivisionError("on purpose")


def _run(options: list[str], environment: dict[str, str], breaks: str) -> str:
    os.environ.clear()
    os.environ.update(environment)
    exec(breaks, globals())
    output, complaint, _ = api.run(options)
    assert not complaint, complaint
    return output


def main() -> None:
    """Answer until nobody asks any more."""
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                said = _run(**json.loads(line))
            except BaseException:
                said = traceback.format_exc()
            with open(writing, "w") as answer:
                answer.write(json.dumps(said))
            os._exit(0)
        os.close(writing)
        with open(reading) as answer:
            print(answer.read(), flush=True)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
