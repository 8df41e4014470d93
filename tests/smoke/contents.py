"""What is in the distributions: ``python contents.py DIST ROOT``, run by .ci/run after a build."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path, PurePosixPath

# In the sdist beside the package itself.
SDIST = {"LICENSE", "README.md", "CHANGELOG.md", "MANIFEST.in", "pyproject.toml"} | {
    "docs",
    "setup.py",
}
MADE_BY_SETUPTOOLS = {"PKG-INFO", "setup.cfg", "tapetensor.egg-info"}


def package_files(root: Path) -> set[str]:
    """Return the files of the package that a user needs."""
    package = root / "tapetensor"
    kinds = ("*.py", "py.typed", "error_catalogue.md", "*.template", "*.css", "*.js")
    return {str(file.relative_to(root)) for kind in kinds for file in package.rglob(kind)}


def pages(root: Path) -> set[str]:
    """Return the pages that a wheel brings."""
    docs = root / "docs"
    found = [docs / "mkdocs.yml", *docs.glob("*.md"), *docs.glob("reference/*.md")]
    return {f"tapetensor/pages/{page.relative_to(docs)}" for page in found}


def check_wheel(path: Path, expected: set[str]) -> str:
    """Check what the wheel holds, and return its metadata."""
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        (folder,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        metadata = archive.read(f"{folder}/METADATA").decode()
    inside = {name for name in names if not name.startswith(f"{folder}/")}
    assert inside == expected, inside ^ expected
    assert f"{folder}/licenses/LICENSE" in names
    return metadata


def check_sdist(path: Path, expected: set[str]) -> None:
    """Check what the sdist holds."""
    with tarfile.open(path) as archive:
        files = [PurePosixPath(one.name).parts[1:] for one in archive if one.isfile()]
    package = {"/".join(parts) for parts in files if parts[0] == "tapetensor"}
    assert package == expected, package ^ expected
    others = {parts[0] for parts in files if parts[0] != "tapetensor"}
    assert others == SDIST | MADE_BY_SETUPTOOLS, others ^ (SDIST | MADE_BY_SETUPTOOLS)


def main(dist: Path, root: Path) -> None:
    """Check both, and what they say of themselves."""
    expected = package_files(root)
    assert "tapetensor/py.typed" in expected
    assert "tapetensor/command/templates/model.py.template" in expected
    (wheel,) = dist.glob("*.whl")
    (sdist,) = dist.glob("*.tar.gz")
    metadata = message_from_string(check_wheel(wheel, expected | pages(root)))
    check_sdist(sdist, expected)
    required = [one for one in metadata.get_all("Requires-Dist") or [] if "extra ==" not in one]
    assert {one.split(">")[0].strip() for one in required} == {"numpy", "typing-extensions"}
    assert metadata["License-Expression"] == "MIT"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    print(f"{wheel.name} and {sdist.name}: {len(expected)} files each, as they should be")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
