"""Groups of a plan, and updates of optimizers, as machine code that numba makes."""
