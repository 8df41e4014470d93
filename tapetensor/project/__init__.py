"""Beginning a project: files from templates, which are data of the package."""

from __future__ import annotations

from tapetensor.project.new import new_project as new_project
