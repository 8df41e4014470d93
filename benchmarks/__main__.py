"""Run all benchmarks: ``python -m benchmarks``."""

from __future__ import annotations

from benchmarks import chain, checkpoint_memory, import_time, mlp_step

for benchmark in (chain, checkpoint_memory, import_time, mlp_step):
    benchmark.main()
    print()
