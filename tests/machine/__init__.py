"""Tests of the settings of BLAS and of the allocator."""
