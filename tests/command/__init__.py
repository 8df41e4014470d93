"""Tests of the commands behind `python -m tapetensor`."""
