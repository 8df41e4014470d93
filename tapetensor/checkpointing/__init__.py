"""Gradient checkpointing: less memory for one more forward pass."""

from __future__ import annotations

from tapetensor.checkpointing.checkpoint import checkpoint as checkpoint
