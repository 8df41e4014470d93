"""Places: which model, which part of it or which parameter an expression means."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from mypy.nodes import Var

# Any one of a list of modules that a module holds: whoever goes through the list means all of them.
ANY_ITEM = "*"
# An item of another list, before it is known which.
SOME_ITEM = "?"


class Place(NamedTuple):
    """An object by where it is found from a variable, or from where it was made.

    Attributes:
        root: the variable, or what tells one making from another.
        path: the names of fields, and items, from there on.
        model: how much of the path leads to the outermost module; None where there is none yet.
        home: how much of it leads to the class of the user's own that holds this.
    """

    root: Hashable
    path: tuple[Hashable, ...] = ()
    model: int | None = None
    home: int = 0

    @property
    def spelled(self) -> str:
        """How it is written, if it is found from a variable."""
        names = [str(one) for one in self.path]
        if isinstance(self.root, Var):
            return ".".join([self.root.name, *names])
        return names[-1] if names else "the model"

    def within(self, step: Hashable) -> Place:
        """Return the place of a part that belongs to the same class of the user's."""
        return self._replace(path=(*self.path, step))

    def of_module(self) -> Place:
        """Return the place as that of a module."""
        return self._replace(model=len(self.path)) if self.model is None else self

    def meets(self, other: Place) -> bool:
        """Tell whether one of two places is the other one, or holds it."""
        return self.root == other.root and all(
            one == two or ANY_ITEM in (one, two)
            for one, two in zip(self.path, other.path, strict=False)
        )

    def shares_model(self, other: Place) -> bool:
        """Tell whether both are parts of one outermost module."""
        return (
            self.root == other.root
            and self.model is not None
            and self.model == other.model
            and self.path[: self.model] == other.path[: self.model]
        )
