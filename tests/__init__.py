"""Tests of tapetensor."""
