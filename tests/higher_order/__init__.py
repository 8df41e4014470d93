"""One table of samples for all ops, and the system tests that it drives."""
