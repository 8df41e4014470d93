"""Write the page."""

from __future__ import annotations

from tests.parity.page import PAGE, page

PAGE.write_text(page())
