"""Parts of kernels that are no ops themselves: sums, extremes, windows, steps of optimizers."""
