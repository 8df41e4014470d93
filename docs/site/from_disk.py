"""Have the search of the site work from the disk, too: ``python -m docs.site.from_disk``.

After the site is built. A page from the disk may read no file but by a script: the index is made
one, which the site's own script asks for there. docs/site/from_disk.js runs the search itself.
"""

from __future__ import annotations

from pathlib import Path

BUILD = Path(__file__).parents[1] / "build"

if __name__ == "__main__":
    index = (BUILD / "search.json").read_text(encoding="utf-8")
    (BUILD / "search.js").write_text(f"var __index = {index}", encoding="utf-8")
