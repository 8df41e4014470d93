"""The pages that an installation brings: ``python -m tapetensor docs``.

The catalogue of errors is read an entry at a time: ``python -m tapetensor explain NAME``.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib
import inspect
import os
import re
import tempfile
import webbrowser
from collections.abc import Iterator
from difflib import get_close_matches
from html import escape
from importlib import metadata, resources
from pathlib import Path
from typing import Any

from typing_extensions import override

from tapetensor.arguments.spellings import CalledOtherwise
from tapetensor.command.markdown import to_html
from tapetensor.errors import ArgumentValueError, FileFormatError

_PACKAGE = Path(__file__).parents[1]
# In a wheel, and in a checkout.
_FOLDERS = (_PACKAGE / "pages", _PACKAGE.parent / "docs")
_GROUP = re.compile(r"^  - (?P<group>[^:]+):$")
_ENTRY = re.compile(r"^      - (?:\"?(?P<title>[^\"]+?)\"?: )?(?P<page>\S+\.md)$")
# What it shows is drawn when the site is built.
_OF_THE_SITE = ("gallery.md",)
_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; display: grid;
  grid-template-columns: 15rem minmax(0, 52rem); gap: 2rem; }
nav { padding: 1rem; height: 100vh; overflow: auto; position: sticky; top: 0;
  box-sizing: border-box; font-size: .9rem; border-right: 1px solid #8884; }
nav b { display: block; margin-top: .8rem; } nav a { display: block; text-decoration: none; }
main { padding: 1rem 1rem 4rem; } h2 { margin-top: 2.2rem; }
pre { padding: .8rem; overflow: auto; background: #8881; font-size: .86rem; }
code { font-family: ui-monospace, monospace; font-size: .92em; }
table { border-collapse: collapse; display: block; overflow: auto; }
th, td { border: 1px solid #8884; padding: .3rem .6rem; text-align: left; vertical-align: top; }
@media (max-width: 50rem) { body { display: flex; flex-direction: column-reverse; }
  nav { height: auto; position: static; } }
"""


def folder() -> Path:
    """Return where the pages are.

    Raises:
        FileFormatError: if the installation has none.
    """
    for one in _FOLDERS:
        if (one / "mkdocs.yml").is_file():
            return one
    raise FileFormatError(
        f"docs: there are no pages beside {_PACKAGE}; install the wheel, or the project's folder"
    )


def write(target: Path) -> list[Path]:
    """Write all pages as HTML to a folder, and return them, the first page first."""
    pages = _pages()
    written = []
    for _, _, page in pages:
        path = (target / page).with_suffix(".html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_html(page, pages), encoding="utf-8")
        written.append(path)
    return written


def opened(name: str | None) -> str:
    """Write the pages, open one in a browser, and say where they are.

    Args:
        name: the page, as its file is called; None for the first.

    Raises:
        ArgumentValueError: if there is no such page.
    """
    _check_page(name)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    target = Path(base, "tapetensor", f"docs-{metadata.version('tapetensor')}")
    try:
        first = write(target)[0]
    except OSError:
        target = Path(tempfile.mkdtemp(prefix="tapetensor-docs-"))
        first = write(target)[0]
    page = first if name is None else (target / name).with_suffix(".html")
    is_shown = webbrowser.open(page.as_uri())
    return f"the pages are in {target}" + ("" if is_shown else f"; open {page} in a browser")


def serve(name: str | None, port: int) -> str:
    """Serve the pages to browsers on this machine until Ctrl-C.

    Args:
        name: the page to open, as its file is called; None for the first.
        port: where; 0 for one that is free.

    Raises:
        ArgumentValueError: if there is no such page.
        OSError: if something else listens there.
    """
    _check_page(name)
    with tempfile.TemporaryDirectory() as target:
        write(Path(target))
        handler = functools.partial(_Quiet, directory=target)
        with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
            address = f"http://127.0.0.1:{server.server_port}/{name or 'index'}.html"
            print(f"the pages are at {address}; Ctrl-C ends it", flush=True)
            webbrowser.open(address)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
    return "served"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that says nothing of each."""

    @override
    def log_message(self, *_: Any) -> None:
        """Keep it to itself."""


def _check_page(name: str | None) -> None:
    names = [page.removesuffix(".md") for _, _, page in _pages()]
    if name is not None and name not in names:
        raise ArgumentValueError(f"docs: {name} is no page; there are {', '.join(names)}")


def _pages() -> list[tuple[str, str, str]]:
    """Return group, title and file of every page, in their order."""
    found, group = [], ""
    text = (folder() / "mkdocs.yml").read_text(encoding="utf-8")
    for line in text.partition("\nnav:\n")[2].splitlines():
        if named := _GROUP.match(line):
            group = named["group"]
        elif (entry := _ENTRY.match(line)) and entry["page"] not in _OF_THE_SITE:
            found.append((group, entry["title"] or _title_of(entry["page"]), entry["page"]))
    return found


def _title_of(page: str) -> str:
    with (folder() / page).open(encoding="utf-8") as file:
        return file.readline().removeprefix("# ").strip()


def _html(page: str, pages: list[tuple[str, str, str]]) -> str:
    up = "../" * page.count("/")
    known = {one for _, _, one in pages}
    parent = page.rpartition("/")[0]

    def link(address: str) -> str | None:
        """Return the address of a page, of a place in one, or of something in the web."""
        if address.startswith(("#", "http")):
            return address
        to, _, anchor = address.partition("#")
        parts: list[str] = parent.split("/") if parent else []
        for part in to.split("/"):
            parts = parts[:-1] if part == ".." else [*parts, part]
        if "/".join(parts) not in known:
            return None
        return to.removesuffix(".md") + ".html" + (f"#{anchor}" if anchor else "")

    body = to_html((folder() / page).read_text(encoding="utf-8"), link, _reference)
    side = []
    before = ""
    for group, title, one in pages:
        side += [f"<b>{escape(group)}</b>"] * (group != before)
        before = group
        side.append(f'<a href="{up}{one.removesuffix(".md")}.html">{escape(title)}</a>')
    title = next(title for _, title, one in pages if one == page)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} - '
        f'tapetensor</title><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><nav>{''.join(side)}</nav><main>{body}</main>"
        "</body></html>"
    )


def _reference(path: str) -> str:
    """Return what the docstrings say of a name."""
    found = _found(path)
    parts = [_entry(path, path.removeprefix("tapetensor."), found)]
    if inspect.isclass(found):
        parts += [_entry(f"{path}.{name}", name, one) for name, one in _members(found)]
    return "".join(parts)


def _found(path: str) -> Any:
    """Return what a name stands for; None where an extra package is missing."""
    parts = path.split(".")
    # From the back: a function may have the name of the file that it is in.
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        except ImportError:
            return None
        for name in parts[cut:]:
            found = getattr(found, name)
        return found
    return None


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Return the public members that are written in the library, those of the class first."""
    seen = set()
    for one in cls.__mro__:
        if one.__module__.startswith("tapetensor."):
            for name, member in vars(one).items():
                is_shown = callable(member) or isinstance(member, property | classmethod)
                if name.startswith("_") or name in seen or isinstance(member, CalledOtherwise):
                    continue
                seen.add(name)
                if is_shown and inspect.getdoc(member):
                    yield name, member


def _entry(path: str, name: str, found: Any) -> str:
    signature = _signature(found) if callable(found) else ""
    text = inspect.getdoc(found) or "" if found is not None else "needs an extra package"
    return (
        f'<h3 id="{escape(path)}"><code>{escape(name)}</code></h3>'
        f"<pre>{escape(name + signature)}</pre><pre>{escape(text)}</pre>"
    )


class _Text(str):
    """An annotation as it is written, without quotes around it."""

    __slots__ = ()

    @override
    def __repr__(self) -> str:
        return str(self)


def _signature(found: Any) -> str:
    try:
        signature = inspect.signature(found)
    except (ValueError, TypeError):
        return ""
    parameters = [
        one.replace(annotation=_Text(one.annotation)) if isinstance(one.annotation, str) else one
        for one in signature.parameters.values()
        # What only catches the arguments of other libraries is none.
        if one.annotation != "Never"
    ]
    result = signature.return_annotation
    result = _Text(result) if isinstance(result, str) else result
    return str(signature.replace(parameters=parameters, return_annotation=result))


_ERROR = re.compile(r"^### (?P<name>\S+)\n+(?P<text>.+?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)

_LINK = re.compile(r"\[(?P<words>[^\]]+)\]\((?P<page>\w*)(?:\.md)?(?:#[\w-]*)?\)")


def explanation(name: str) -> str:
    """Return the entry of an error, by its class or by its code in the mypy plugin.

    >>> print(explanation("missingdependencyerror"))
    MissingDependencyError
    <BLANKLINE>
    An optional package is not installed. Also an `ImportError`.
    <BLANKLINE>
    *Cure.* The message gives the command: `pip install 'tapetensor[training]'`, say.

    Raises:
        ArgumentValueError: if there is none of that name, in capitals or not; it says which are
            nearest.
    """
    entries = _entries()
    # As a message shows it: [shape-mismatch], tapetensor.errors.ShapeError.
    wanted = name.strip("[]").rpartition(".")[2].lower()
    by_letters = {known.lower(): known for known in entries}
    if wanted in by_letters:
        known = by_letters[wanted]
        return f"{known}\n\n{_LINK.sub(_in_a_terminal, entries[known]).rstrip()}"
    near = get_close_matches(wanted, by_letters, n=1) or get_close_matches(
        wanted, by_letters, n=2, cutoff=0.5
    )
    if near:
        nearest = " or ".join([by_letters[one] for one in near])
        raise ArgumentValueError(f"explain: there is no {name}; did you mean {nearest}?")
    raise ArgumentValueError(f"explain: {name} is none of {', '.join(entries)}")


def _in_a_terminal(link: re.Match[str]) -> str:
    """Return the words of a link, and how the page is read that it leads to."""
    page = link["page"]
    return link["words"] + (f" (python -m tapetensor docs {page})" if page else "")


def contents() -> str:
    """Return the names of all entries, each with its first sentence."""
    return "\n".join([f"{name:28}{_summary(text)}" for name, text in _entries().items()])


def _summary(text: str) -> str:
    paragraph = " ".join(_LINK.sub(r"\g<words>", text).strip().partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".")


def _entries() -> dict[str, str]:
    catalogue = resources.files("tapetensor").joinpath("error_catalogue.md")
    return dict(_ERROR.findall(catalogue.read_text(encoding="utf-8")))
