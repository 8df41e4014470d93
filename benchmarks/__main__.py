"""Run all benchmarks: ``python -m benchmarks``."""

from __future__ import annotations

from benchmarks import chain, import_time, mlp_step

for benchmark in (chain, import_time, mlp_step):
    benchmark.main()
    print()
