"""Identities: one process-wide counter for tensors, which also stamps the time of an op."""

from __future__ import annotations

from itertools import count

# `count().__next__` is atomic under the GIL, so ids are unique across threads.
next_id = count(1).__next__
