"""Tests of batches and one-hot codes."""
