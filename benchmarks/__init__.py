"""Speed, measured against peers in one run; never part of the tests."""
