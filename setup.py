"""Put the pages of docs/ into a wheel, as files of the package; all else is in pyproject.toml.

An editable install has none: `tapetensor docs` reads those of the checkout then.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DOCS = Path(__file__).parent / "docs"


class WithPages(build_py):
    """The build of the package, and its pages."""

    def run(self) -> None:
        """Copy the package, then the pages."""
        super().run()
        if self.editable_mode:
            return
        for page in sorted([DOCS / "mkdocs.yml", *DOCS.glob("*.md"), *DOCS.glob("reference/*.md")]):
            target = Path(self.build_lib, "tapetensor", "pages", page.relative_to(DOCS))
            self.mkpath(str(target.parent))
            self.copy_file(str(page), str(target))


setup(cmdclass={"build_py": WithPages})
