"""Objects that are renewed before they are used again, by their methods or by others; each runs."""

from __future__ import annotations

from typing_extensions import override

import tapetensor as tt
from tests.plugin.moves.cases import Elsewhere, Plain, Traced


class Average:
    def __init__(self, value: Traced) -> None:
        self.value = value

    def renew(self, value: Traced) -> None:
        self.value = value

    def begin(self, x: Plain) -> None:
        self.renew(x.trace())

    def enter(self, table: list[Average]) -> None:
        table.append(self)


def renewed_by_its_own_methods(x: Plain) -> None:
    average = Average(x.trace())
    average.value.exp()
    average.renew(x.trace())
    average.value.exp()
    average.begin(x)
    average.value.exp()


def renewed_by_those_who_know_of_it(x: Plain) -> None:
    table: list[Average] = []

    def renew() -> None:
        table[-1].value = x.trace()

    average = Average(x.trace())
    average.enter(table)
    average.value.exp()
    renew()
    average.value.exp()
    other = Average(x.trace())
    table.append(other)
    other.value.exp()
    renew()
    other.value.exp()


class Renewing:
    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        self.loss: Traced | None = None

    def kept(self, x: Plain) -> Traced:
        loss = x.trace()
        self.loss = loss
        return loss

    def flush(self) -> None:
        if self.loss is not None:
            self.loss.sum().backward()
            self.loss = None

    def use(self) -> None:
        self.traced.exp()
        self.after()

    def after(self) -> None:
        pass


class RenewingAfterwards(Renewing):
    @override
    def after(self) -> None:
        self.traced = tt.ones((3,)).trace()


def renewed_by_what_overrides_a_method(x: Plain) -> None:
    renewing = RenewingAfterwards(x.trace())
    renewing.use()
    renewing.use()


def kept_anew_in_each_pass(x: Plain) -> None:
    renewing = Renewing(x.trace())
    for _ in range(2):
        renewing.kept(x).exp()
    renewing.kept(x)
    renewing.flush()
    renewing.flush()


def by_methods_of_another_file(x: Plain) -> None:
    other = Elsewhere(x.trace())
    other.look()
    other.look()
    other.renew()
    other.renew()
    other.take()
