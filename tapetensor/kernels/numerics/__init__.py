"""What kernels are made of and is no op itself: sums, extremes, windows, steps of optimizers."""
