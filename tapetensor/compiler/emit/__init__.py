"""Emitting: the flat Python that a plan replays, which calls numpy with `out=`."""
