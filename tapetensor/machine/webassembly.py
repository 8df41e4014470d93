"""WebAssembly: what its hosts, a browser or a server's sandbox, do not let a program do."""

from __future__ import annotations

import sys
from typing import Final

# CPython's two platforms of that kind: no thread and no process is started there.
IN_WEBASSEMBLY: Final = sys.platform in ("wasi", "emscripten")
