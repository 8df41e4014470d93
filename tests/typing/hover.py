"""What editors show when the mouse rests on a name: asked of the checkers' language servers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tests.typing.runs import once_a_session, what_checkers_read

SERVERS: Mapping[str, Sequence[str]] = {
    "pyright": ("-m", "pyright.langserver", "--stdio"),
    "pyrefly": ("-m", "pyrefly", "lsp"),
    "ty": ("-m", "ty", "server"),
}


def hovers(checker: str, file: Path, places: Sequence[tuple[int, int]], root: Path) -> list[str]:
    """Return what the checker shows at lines and columns, counted from 0, of a file."""
    shown: list[str] = json.loads(
        once_a_session(
            f"{checker}_{file.stem}",
            lambda: json.dumps(_hovers(checker, file, places, root)),
            session=f"{what_checkers_read()} {places} {file.read_text()}",
        )
    )
    return shown


def _hovers(checker: str, file: Path, places: Sequence[tuple[int, int]], root: Path) -> list[str]:
    with subprocess.Popen(
        [sys.executable, *SERVERS[checker]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=root,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            return list(_asked(server.stdin, server.stdout, file, places, root))
        finally:
            server.kill()


def _asked(
    to: IO[bytes], back: IO[bytes], file: Path, places: Sequence[tuple[int, int]], root: Path
) -> Iterator[str]:
    uri = file.as_uri()
    folders = [{"uri": root.as_uri(), "name": "hover"}]
    capabilities = {
        "textDocument": {"hover": {"contentFormat": ["plaintext"]}},
        "workspace": {"configuration": True, "workspaceFolders": True},
    }
    hello = {"processId": None, "rootUri": root.as_uri(), "capabilities": capabilities}
    _ask(to, back, 1, "initialize", {**hello, "workspaceFolders": folders})
    _send(to, {"method": "initialized", "params": {}})
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
