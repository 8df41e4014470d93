"""What editors show when the mouse rests on a name: asked of the checkers' language servers.

What docs/checkers.md says of its program, and of each op its own name and docstring.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

import pytest

from tapetensor import Tensor
from tests.typing.own_names import HEAD, METHODS
from tests.typing.pages import program, titled
from tests.typing.runs import ROOT, once_a_session, what_checkers_read, written

Places: TypeAlias = Sequence[tuple[int, int]]
SERVERS: Mapping[str, Sequence[str]] = {
    "pyright": ("-m", "pyright.langserver", "--stdio"),
    "pyrefly": ("-m", "pyrefly", "lsp"),
    "ty": ("-m", "ty", "server"),
}


def shown_by(checker: str, asked: Mapping[Path, Places]) -> list[list[str]]:
    """Return what the checker shows at lines and columns, counted from 0, of each file."""
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"needs {checker}: pip install 'tapetensor[dev]'")
    programs = [(places, file.read_text()) for file, places in asked.items()]
    shown: list[list[str]] = json.loads(
        once_a_session(
            f"{checker}_hovers",
            lambda: json.dumps(_hovers(checker, asked)),
            session=f"{what_checkers_read()} {programs}",
        )
    )
    return shown


def _hovers(checker: str, asked: Mapping[Path, Places]) -> list[list[str]]:
    with subprocess.Popen(
        [sys.executable, *SERVERS[checker]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        start_new_session=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        to, back = server.stdin, server.stdout
        try:
            _greet(to, back)
            return [list(_answers(to, back, file, places)) for file, places in asked.items()]
        finally:
            # That of pyright runs in a process of its own.
            os.killpg(server.pid, signal.SIGKILL)


def _greet(to: IO[bytes], back: IO[bytes]) -> None:
    folders = [{"uri": ROOT.as_uri(), "name": "hover"}]
    capabilities = {
        "textDocument": {"hover": {"contentFormat": ["plaintext"]}},
        "workspace": {"configuration": True, "workspaceFolders": True},
    }
    hello = {"processId": None, "rootUri": ROOT.as_uri(), "capabilities": capabilities}
    _ask(to, back, 1, "initialize", {**hello, "workspaceFolders": folders})
    _send(to, {"method": "initialized", "params": {}})


def _answers(to: IO[bytes], back: IO[bytes], file: Path, places: Places) -> Iterator[str]:
    uri = file.as_uri()
    document = {"uri": uri, "languageId": "python", "version": 1, "text": file.read_text()}
    _send(to, {"method": "textDocument/didOpen", "params": {"textDocument": document}})
    for number, (line, column) in enumerate(places, 2):
        place = {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}}
        answer = _ask(to, back, number, "textDocument/hover", place)
        contents = answer["contents"] if answer else ""
        yield contents["value"] if isinstance(contents, dict) else str(contents)


def _ask(to: IO[bytes], back: IO[bytes], number: int, method: str, params: object) -> Any:
    """Send a request and return its result; answer what the server asks meanwhile."""
    _send(to, {"id": number, "method": method, "params": params})
    while True:
        message = _received(back)
        if "method" not in message:
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
        elif message["method"] == "workspace/configuration":
            settings = [{"pythonPath": sys.executable, "interpreter": [sys.executable]}]
            _send(to, {"id": message["id"], "result": settings * len(message["params"]["items"])})
        elif "id" in message:
            _send(to, {"id": message["id"], "result": None})


def _send(to: IO[bytes], message: Mapping[str, object]) -> None:
    content = json.dumps({"jsonrpc": "2.0", **message}).encode()
    to.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
    to.flush()


def _received(back: IO[bytes]) -> dict[str, Any]:
    length = 0
    while line := back.readline().strip():
        name, _, value = line.partition(b": ")
        if name == b"Content-Length":
            length = int(value)
    assert length, "the server has ended"
    found: dict[str, Any] = json.loads(back.read(length))
    return found


# What surrounds the type in the answer of a server, and where pyrefly says that a name is from.
_AROUND = re.compile(r"^```\w*$|^\((variable|attribute)\) (\w+: )?|\b(tapetensor|numpy)\.(\w+\.)*")


def _type_shown(answer: str) -> str:
    lines = [_AROUND.sub("", line) for line in answer.splitlines()]
    return next(line for line in lines if line)


@pytest.mark.parametrize("checker", SERVERS)
def test_a_name_has_the_type_that_the_page_says_and_an_op_its_own_name(checker: str) -> None:
    page = written("hover", program("checkers"))
    expected = dict(line.split(": ", 1) for line in titled("checkers", checker).splitlines())
    lines = page.read_text().splitlines()
    in_page = [
        next(
            (i, line.index(name)) for i, line in enumerate(lines) if re.match(rf" *{name}\b", line)
        )
        for name in expected
    ]
    calls = written(
        "own_names_hovers", "\n".join([HEAD, *[f"    x.{op}(axis=0)" for op in METHODS], ""])
    )
    first = HEAD.count("\n") + 1
    in_calls = [(first + number, len("    x.")) for number in range(len(METHODS))]

    types, ops = shown_by(checker, {page: in_page, calls: in_calls})

    assert len(expected) >= 5
    assert dict(zip(expected, map(_type_shown, types), strict=True)) == expected
    # Only pyrefly shows both the name and the docstring of an op; that of a set of overloads says
    # what the arguments are.
    shown = dict(zip(METHODS, ops, strict=True))
    names = {op: METHODS[op] if checker == "ty" else op for op in METHODS}
    sentences = {
        op: (inspect.getdoc(getattr(Tensor, op)) or "").partition("\n")[0] for op in METHODS
    }
    if checker != "pyrefly":
        sentences = dict.fromkeys(METHODS, "keepdims: whether reduced axes stay with size 1.")
    assert [op for op in METHODS if names[op] not in shown[op].partition("axis")[0]] == []
    assert [op for op in METHODS if sentences[op] not in shown[op]] == []
