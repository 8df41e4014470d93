"""What the matrix products of this machine reach: ``python -m tapetensor.doctor``."""

from __future__ import annotations

from tapetensor.machine.doctor import main

if __name__ == "__main__":
    main()
