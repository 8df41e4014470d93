"""Settings of numpy's BLAS and of the allocator, and what the machine reaches with them."""
