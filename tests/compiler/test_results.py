"""Objects that a compiled function makes and returns."""

from __future__ import annotations

from typing import Any

import numpy as np

import tapetensor as tt


def test_what_leads_to_itself_comes_out_so() -> None:
    @tt.compile
    def circles(x: Any) -> Any:
        items: list[Any] = [x * 2]
        table: dict[str, Any] = {"items": items}
        items.append(table)
        table["self"] = table
        return items, table

    for _ in range(2):
        items, table = circles(np.ones(2))

        assert items[0].tolist() == [2.0, 2.0]
        assert items[1] is table
        assert table["items"] is items
        assert table["self"] is table
