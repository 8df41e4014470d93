"""The speed of matrix products on this machine: ``python -m tapetensor.doctor``."""

from __future__ import annotations

from tapetensor.machine.doctor import main

if __name__ == "__main__":
    main()
