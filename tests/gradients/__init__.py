"""Tests of the store that a backward pass returns."""
