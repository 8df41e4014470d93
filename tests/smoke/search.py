"""The search of the built site, from the disk: ``python search.py BUILD``, run by .ci/run.

Needs Chromium. A script types each word into the search of the first page, and writes down what is
found.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path

# Words of the field, and the page that each leads to.
WORDS = {"softmax": "reference/tensor.html", "augmentation": "data.html", "tape": "tape.html"}
_SCRIPT = """<script>
(async () => {
  const seen = [];
  const wait = (time) => new Promise((done) => setTimeout(done, time));
  const field = () => [...document.querySelectorAll("*")]
    .map((one) => one.shadowRoot?.querySelector("input")).find(Boolean);
  await wait(1000);
  document.querySelector(".md-search__button").click();
  await wait(500);
  field().focus();
  Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field(), WORD);
  field().dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  await wait(3000);
  field().getRootNode().querySelectorAll("li a, ol a").forEach((one) => seen.push(one.href));
  const out = document.createElement("output");
  out.id = "seen";
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
})();
</script>"""


def found(build: Path, word: str, browser: str) -> list[str]:
    """Return the addresses that the search finds for a word."""
    page = (build / "index.html").read_text(encoding="utf-8")
    probe = build / "probe.html"
    script = _SCRIPT.replace("WORD", json.dumps(word))
    probe.write_text(page.replace("</body>", f"{script}</body>"), encoding="utf-8")
    with tempfile.TemporaryDirectory() as profile:
        command = [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *(f"--user-data-dir={profile}", "--virtual-time-budget=30000", "--dump-dom"),
            probe.as_uri(),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    probe.unlink()
    seen = re.search(r'<output id="seen">(.*?)</output>', done.stdout, re.DOTALL)
    assert seen is not None, done.stderr
    addresses: list[str] = json.loads(unescape(seen[1]))
    return addresses


def main(build: Path) -> None:
    """Look for every word."""
    browser = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if browser is None:
        print("no Chromium on this machine, so the search is not tried")
        return
    for word, page in WORDS.items():
        addresses = found(build.resolve(), word, browser)
        assert any(page in one for one in addresses), (word, addresses)
    print(f"the search finds {', '.join(WORDS)} from the disk")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
