"""Export: what a function computes, as a file in the format ONNX."""

from __future__ import annotations

from tapetensor.onnx.export import export as export
