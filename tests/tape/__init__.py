"""Tests of tapes: who owns one, how they merge, how one is replayed."""
