"""``tapetensor docs``: the pages of an installation, as HTML, with links that lead somewhere."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
import webbrowser
from html import unescape
from importlib.util import find_spec
from pathlib import Path

import pytest

import tapetensor as tt
from tapetensor.__main__ import main
from tapetensor.command import docs
from tapetensor.command.markdown import slug, to_html

NAV = re.findall(r"(\S+\.md)$", (docs.folder() / "mkdocs.yml").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("docs")
    docs.write(target)
    return target


def test_every_page_of_the_site_but_the_gallery_is_written(site: Path) -> None:
    written = {str(path.relative_to(site)) for path in site.rglob("*.html")}

    assert written == {page.removesuffix(".md") + ".html" for page in NAV} - {"gallery.html"}


def test_every_link_leads_to_a_page_and_a_place_in_it(site: Path) -> None:
    for path in site.rglob("*.html"):
        for address in re.findall(r'href="([^"]+)"', path.read_text()):
            page, _, anchor = address.partition("#")
            if not page.startswith("http"):
                target = (path.parent / page).resolve() if page else path
                assert target.is_file(), (path.name, address)
                assert not anchor or f'id="{anchor}"' in target.read_text(), (path.name, address)


def test_no_markup_is_left_in_a_text(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = re.sub(r"<(pre|code|style)\b.*?</\1>", "", path.read_text(), flags=re.DOTALL)
        plain = unescape(re.sub(r"<[^>]+>", "", text))
        assert re.findall(r"\]\(|\*\*\w|^#+ |\|---|```|^:::|--8<--", plain, re.MULTILINE) == []


def test_the_reference_has_signatures_and_docstrings(site: Path) -> None:
    text = unescape((site / "reference" / "tensor.html").read_text())

    assert "softmax(self: FloatingBase[S, T, F], axis: int = -1" in text
    assert "Return exponentials divided by their sum along one axis." in text
    assert "<not here" not in text
    missing = [
        path.name for path in site.rglob("*.html") if "needs an extra package" in path.read_text()
    ]
    assert set(missing) <= (set() if find_spec("sklearn") else {"training.html"})


def test_markdown_becomes_html() -> None:
    text = """# A *title* with `code <x>`

Words over
two lines, **strong** ones, `a | b`, [a link](page.md#there), [none](gone.md).

- one `x`
  goes on
- two

1. first

| a | b |
|---|---|
| `x \\| y` | 2 |

```python
if a < b:
    pass
```

::: name
    options:
"""
    html = to_html(text, {"page.md#there": "page.html#there"}.get, lambda name: f"<hr id={name}>")

    assert html.splitlines() == [
        '<h1 id="a-title-with-code-x">A <em>title</em> with <code>code &lt;x&gt;</code></h1>',
        "<p>Words over two lines, <strong>strong</strong> ones, <code>a | b</code>, "
        '<a href="page.html#there">a link</a>, none.</p>',
        "<ul><li><p>one <code>x</code> goes on</p></li><li><p>two</p></li></ul>",
        "<ol><li><p>first</p></li></ol>",
        "<table><thead><tr><th>a</th><th>b</th></tr></thead><tr><td><code>x | y</code></td>"
        "<td>2</td></tr></table>",
        "<pre><code>if a &lt; b:",
        "    pass</code></pre>",
        "<hr id=name>",
    ]
    assert slug("What `fit` does, and why") == "what-fit-does-and-why"


def test_a_page_is_opened_or_it_is_said_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    def has_browser(address: str) -> bool:
        shown.append(address)
        return len(shown) == 1

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", has_browser)
    assert main(["docs", "training"]) == main(["docs"]) == 0

    first, second = capsys.readouterr().out.splitlines()
    folder = tmp_path / "tapetensor" / f"docs-{tt.__version__}"
    assert first == f"the pages are in {folder}"
    assert second == f"{first}; open {folder / 'index.html'} in a browser"
    assert shown[0] == (folder / "training.html").as_uri()


def test_pages_are_served_until_ctrl_c() -> None:
    command = [sys.executable, "-m", "tapetensor", "docs", "training", "--serve", "--port", "0"]
    surroundings = {**os.environ, "BROWSER": "true"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=surroundings) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[4].rstrip(";")
        with urllib.request.urlopen(address) as page:
            text = page.read().decode()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0

    assert '<h1 id="training">' in text
