"""Tests by random programs, by laws and by bad input."""
