"""Tests of the command that begins a project."""
