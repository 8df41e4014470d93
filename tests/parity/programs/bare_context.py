"""hodu's guide makes a context without entering it: ``let _ctx = GradientContext::new();``."""

from __future__ import annotations

import pytest

import tapetensor as tt

x = tt.ones((2,))


def as_in_the_guide() -> None:
    _ctx = tt.GradientContext()  # P: GradientContext: this one is never entered
    x.trace().square().sum().backward()
    tt.clear_tape()


with pytest.raises(tt.TapeClosedError, match="was made and never entered"):
    as_in_the_guide()
# It has died with the frame that the error held.
tt.clear_tape()


def dropped_at_once() -> None:
    tt.GradientContext()  # P: GradientContext: this one is never entered
    x.trace().exp()


dropped_at_once()

# One that is entered later, or by others, is fine.
later = tt.GradientContext()
stale = x.trace()
with later:
    tt.clear_tape()
    inside = x.trace()
stale.exp()
with pytest.raises(tt.TapeClosedError):
    inside.exp()
