"""Tests of modules, `build` and the layers."""
