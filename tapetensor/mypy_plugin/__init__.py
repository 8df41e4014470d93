"""The mypy plugin: ``plugins = tapetensor.mypy_plugin`` in ``mypy.ini``.

Optional and additive: without it nothing breaks, with it mypy also knows what plain typing cannot
say. This is the only part of the library that imports mypy, and nothing imports it.
"""

from __future__ import annotations

from tapetensor.mypy_plugin.plugin import TapeTensorPlugin


def plugin(version: str) -> type[TapeTensorPlugin]:
    """Return the plugin class: the entry point that mypy calls."""
    return TapeTensorPlugin
