"""What breaks the law today: a line goes when its scenario is mended."""

# Names of scenarios are their programs.

from __future__ import annotations

EXPECTED_FAILURES: dict[str, str] = {
    "types: type(x).__name__": "WRONG",
}
