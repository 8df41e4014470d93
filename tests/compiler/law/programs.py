"""The programs of the scenarios, by subject: expressions, bodies, or whole modules."""

# Programs are shorter to read where their lines are not broken.
# ruff: noqa: E501

from __future__ import annotations

from tests.compiler.law.objects import OBJECTS

EXPRESSIONS: dict[str, list[str]] = {
    "scalars": [
        "float(x.shape[0])",
        "x.sum(dtype=np.float64)",
        "x.mean()",
        "np.float32(2) * x",
        "x.max() - x.min()",
        "x.argmax()",
        "np.float64(2) * x",
        "x.std()",
        "x * True",
        "x ** 2",
        "(x > 0) ** 2",
        "(x > 0).sum()",
        "x.sum().astype(np.float64)",
        "np.rint(x).astype(int, casting='same_value')",
        "x.sum().astype(int, casting='same_value')",
        "(x.astype(int, casting='same_value'), y)[1]",
        "x[0, 0] + 1",
        "x.sum() * np.int64(2)",
        "np.asarray(x.sum())",
        "x[0, 0, ...]",
        "x[()]",
    ],
    "out_and_where": [
        "np.divide(x, y, out=np.zeros_like(x), where=y > 0)",
        "np.sum(x, axis=0, out=np.zeros(4, np.float32))",
        "np.exp(x, where=x > 0, out=np.ones_like(x))",
        "np.max(x, where=y > 0, initial=-9.0)",
        "np.mean(x, axis=1, out=np.zeros(3, np.float32))",
        "np.clip(x, -1, 1, out=x)",
        "np.cumsum(x, axis=0, out=np.zeros_like(x))",
        "np.where(x > 0, x, 0)",
        "np.where(x > 0, x, y)",
        "np.matmul(x, y.T, out=np.zeros((3, 3), np.float32))",
    ],
    "axes": [
        "np.transpose(x, (0, 3))",
        "np.sum(x, axis=-3)",
        "x.sum(0)",
        "np.sum(x, axis=(0, 0))",
        "np.expand_dims(x, 5)",
        "np.squeeze(x, axis=0)",
        "x.transpose()",
        "np.concatenate([x, y], axis=2)",
        "np.stack([x, y], axis=3)",
        "np.moveaxis(x, 0, 4)",
        "np.swapaxes(x, 0, 2)",
        "np.flip(x, axis=2)",
        "np.take(x, [5], axis=0)",
        "x[5]",
        "np.argmax(x, axis=2)",
        "x.reshape(5, 5)",
        "np.split(x, 5)",
        "np.cumsum(x, axis=3)",
        "x.transpose(1, 0)",
        "x.sum((0, 1))",
        "x.max(1, keepdims=True)",
        "x @ y",
    ],
    "views": [
        "np.atleast_2d(x)",
        "x.T",
        "x[::-1]",
        "x.reshape(-1)",
        "np.squeeze(x)",
        "np.broadcast_to(x[0], (3, 4))",
        "x",
        "np.asarray(x)",
        "np.expand_dims(x, 0)",
        "(x, x)",
        "(x * 2)[0]",
        "[x[0], x[0]]",
        "np.ascontiguousarray(x)",
        "np.expand_dims(x.sum(), ())",
        "np.diag(x[:1], -1), np.diagonal(x, 7)",
        "np.ravel(np.broadcast_to(x, (2, 3, 4))[:0])",
        "np.asfortranarray(x)",
    ],
    "copies": [
        "x * 1.0",
        "x - 0.0",
        "-(-x)",
        "+x",
        "np.array(x)",
        "x.astype(np.float32, copy=False)",
        "x + 0",
        "x / 1",
        "x ** 1",
        "np.positive(x)",
        "x.T.T",
        "x.T.copy()",
        "np.concatenate([(x[:0] * 2).T, x.T], axis=1)",
        "np.array(x, copy=False)",
        "np.array(x.sum(), copy=False)",
        "np.array([x.sum()], copy=False)",
        "np.array([1e20, x.sum().item()], dtype='i4')",
        "np.array([x.sum(), 1j], dtype='f4')",
        "np.array([[np.nan], [x.sum()]], dtype=int)",
        "np.array([np.float64(1e20), np.array(3.7), True, x.sum()], dtype='i4')",
        "np.asarray(x.sum().item(), copy=False)",
        "np.abs(x)",
        "np.where(True, x, y)",
    ],
    "types": [
        "isinstance(x * 2, np.ndarray)",
        "isinstance(x.sum().item(), float)",
        "type(x).__name__",
        "x if type(x) is np.ndarray and type(x[0, 0]) is np.float32 else y",
        "x if type(x.sum().item()) is float and type(2) is int else y",
        "x if isinstance(int, type) and not issubclass(int, type) else y",
        "type('M', (type,), {})('W', (), {'a': x}).a",
        "len(np.bincount((x > 0).ravel().astype(int)))",
        "np.float32(3) * np.arange(3)",
        "np.linalg.norm(x)",
        "x.tolist()",
        "str(x.dtype)",
        "x // 2",
        "x[x > 0]",
        "np.nonzero(x)",
        "np.argsort(x)",
        "int(x[0, 0])",
        "bool(x.any())",
        "np.einsum('ij,kj->ik', x, y)",
        "np.isnan(x)",
        "np.pad(x, 1)",
        "np.tile(x, 2)",
    ],
}

BODIES: dict[str, list[str]] = {
    "scalars": [
        "s = (x * 2)[0]\ns += 1\nreturn s",
        "t = 0.0\nfor r in x:\n    t += r.sum()\nreturn t",
        "t = x.sum()\nnp.put(t, [0], 5)\nreturn t",
    ],
    "views": [
        "z = x * 2\nnp.ravel(z)[0] = 5\nreturn z",
        "np.flip(x)[0] = 5\nreturn x * 2",
        "z = (x * 2).T\nz.ravel()[0] = 5\nreturn z",
        "a, b = np.array_split(x, 2)\na += 1\nreturn b",
        "z = x * 2\nz[1:] += z[:-1]\nreturn z",
        "z = x.copy()\nz[:] = 0\nreturn z, x",
        "z = x * 2\nv = z[0]\nz = z + 1\nv += 1\nreturn z, v",
        "return x[0].ravel(), x",
        "return x.reshape(3, 4), x[...], x",
        "z = x * 2\nd = np.diagonal(np.fliplr(z))\nz[0] = 5\nreturn d, z",
        "z = (x * 9).astype(int)\nz.real = np.nan\nreturn z",
        "z = (x * 9).astype(np.uint8)\nz.real = -1\nreturn z",
        "z = np.broadcast_to(x, (2, 3, 4))[:0].copy()\nreturn np.ravel(z, order='F'), np.rollaxis(z, -1)",
        "z = x * 1\nz.real = 1j\nreturn z",
        "z = x * 1j\nv = z.real\nv[0] = 5\nz.imag += 1\nreturn z, v",
        "z = x * 1j\nreturn z.real.ravel(), z.imag.copy(), z, abs(z.T.real)",
        "z = x * 1j\nv = z.real.ravel()\nv[0] = 5\nreturn z, v",
        "z = x * 2\nv = z[:, np.argmax(y[0])].ravel()\nv[0] = 5\nreturn z, v",
        "z = x.T * 2\nv = z[np.argmax(y[0])].reshape(-1)\nv[0] = 5\nreturn z, v, v.copy()",
        "z = np.broadcast_to(x[0] * 1j, (4, 4))\nreturn np.abs(z.imag)",
    ],
    "errors_and_warnings": [
        "try:\n    return x @ y\nexcept ValueError:\n    return x + y",
        "try:\n    return x.law\nexcept AttributeError as e:\n    return str(e)",
        "try:\n    return len(x.sum())\nexcept TypeError as e:\n    return str(e)",
        "try:\n    return x.sum()[0]\nexcept IndexError as e:\n    return str(e)",
        "try:\n    return x.item()\nexcept ValueError as e:\n    return str(e)",
        "try:\n    return round(x)\nexcept TypeError as e:\n    return str(e)",
        "z = np.block([[x, x]])\nwith np.errstate(all='ignore'):\n    z = z / z\nreturn x",
        "with np.errstate(divide='raise'):\n    return x / np.zeros_like(x)",
        "try:\n    return np.sum(x, axis=2)\nexcept Exception:\n    return x * 3",
        "with np.errstate(all='ignore'):\n    return np.log(x)",
        "with np.errstate(all='ignore'):\n    z = x / 0.0\nreturn 3",
        "if x.sum() > 0:\n    return x\nreturn y",
        "raise ValueError('no')",
        "assert x.shape == (3, 4)\nreturn x * 2",
        "return {}['a']",
    ],
}

# What is read around the function, and what the caller changes between calls.
_READS = {
    "a global": ("S = 2.0", "S", "S = 3.0"),
    "a global array": ("S = np.ones(4, np.float32)", "S", "S[0] = 5"),
    "another global array": ("S = np.ones(4, np.float32)", "S", "S = S * 2"),
    "a namespace": ("import types\nS = types.SimpleNamespace(a=2.0)", "S.a", "S.a = 3.0"),
    "an argparse namespace": ("import argparse\nS = argparse.Namespace(a=2.)", "S.a", "S.a = 3."),
    "a getitem": (
        "class S:\n    b = 2.\n    def __getitem__(self, i): return self.b\ns = S()",
        "s[0]",
        "s.b = 3.",
    ),
    "an operator": (
        "K = 2.\nclass S:\n    def __add__(self, o): return K\ns = S()",
        "(s + 1)",
        "K = 3.",
    ),
    "a context manager": (
        "K = 2.\nclass S:\n    def __enter__(self): return K\n    def __exit__(self, *a): pass\n"
        "def g():\n    with S() as k: return k",
        "g()",
        "K = 3.",
    ),
    "a default": ("def g(a=2.): return a", "g()", "g.__defaults__ = (3.,)"),
    "a user dictionary": (
        "from collections import UserDict\nS = UserDict(a=2.)",
        "S['a']",
        "S['a'] = 3.",
    ),
    "the environment": (
        "import os\nos.environ['LAW_A'] = '2'",
        "float(os.environ['LAW_A'])",
        "os.environ['LAW_A'] = '3'",
    ),
    "an attribute of a list": ("class L(list): pass\nS = L()\nS.a = 2.", "S.a", "S.a = 3."),
    "an attribute of a float": ("class F(float): pass\nS = F(1)\nS.a = 2.", "S.a", "S.a = 3."),
    "a type of a number": ("S = [2]", "np.asarray(S[0]).dtype.itemsize", "S[0] = True"),
    "a random state": ("S = np.random.RandomState(0)", "S.rand()", "S.seed(5)"),
    "a generator": ("S = np.random.default_rng(0)", "S.random()", "S = np.random.default_rng(7)"),
    "python's random": ("import random\nS = random.Random(0)", "S.random()", "S.seed(4)"),
    "a tensor": (
        "S = tt.from_numpy(np.ones(4, np.float32))",
        "S.numpy()",
        "S = tt.from_numpy(np.zeros(4, np.float32))",
    ),
    "a wrapper": (
        "import functools\nK = 2.\ndef w(h):\n    @functools.wraps(h)\n"
        "    def inner(): return h() * K\n    return inner\n@w\ndef g(): return 1.",
        "g()",
        "K = 3.",
    ),
    "a cached function": (
        "import functools\n@functools.lru_cache\ndef g(n): return float(n)",
        "g(4)",
        "g.cache_clear()",
    ),
}

# Ways to a clock, and to what else is another value at every call.
_CLOCKS = {
    "an attribute": ("o = types.SimpleNamespace(c=time.time)", "o.c()"),
    "a closure": ("def make(c):\n    return lambda: c()\ng = make(time.time)", "g()"),
    "a dict": ("d = {'c': time.perf_counter}", "d['c']()"),
    "a partial": ("p = functools.partial(time.time)", "p()"),
    "a partial inside": ("", "functools.partial(time.time)()"),
    "an iterator that calls": ("", "next(iter(time.time, None))"),
    "a default": ("def g(c=time.time): return c()", "g()"),
    "an import inside": ("def g():\n    import time as t\n    return t.time()", "g()"),
    "a name made": ("N = 'ti'", "getattr(time, N + 'me')()"),
    "a date": ("o = types.SimpleNamespace(d=datetime.datetime)", "o.d.now().microsecond"),
    "random": ("o = types.SimpleNamespace(r=random.random)", "o.r()"),
    "bytes": ("o = types.SimpleNamespace(u=os.urandom)", "o.u(8)[0]"),
    "no seed": ("", "random.Random().random()"),
}

MODULES: dict[str, dict[str, str]] = {
    "clocks": {
        what: f"import datetime, functools, os, random, time, types\n{setup}\n"
        f"def f(x, y):\n    return x.astype(float) * {read}\n---\n\n"
        for what, (setup, read) in _CLOCKS.items()
    },
    "surroundings": {
        f"{what} {how}": f"{setup}\ndef f(x, y):\n    {template.format(read)}\n---\n{change}\n"
        for what, (setup, read, change) in {**_READS, **OBJECTS}.items()
        for how, template in {
            "is multiplied": "return x * {}",
            "decides": "return x + 1 if np.sum({}) > 2.5 else x - 1",
            "is kept in a result": "return x * 2, {}",
        }.items()
    },
    "damage": {
        "a queue gets results": "import queue\nS = queue.SimpleQueue()\ndef f(x, y):\n    S.put(x * 2)\n    return S.get()",
        "a cache gets results": "import functools\n@functools.lru_cache\ndef g(k): return np.ones(4) * k\n"
        "def f(x, y):\n    return x * g(2)",
        "a descriptor gives a fresh object": "class D:\n    def __get__(self, o, t): return [2.]\nclass S:\n    a = D()\ns = S()\n"
        "def f(x, y):\n    return x * s.a[0], type(S.__dict__['a']).__name__",
        "an argument is written": "def f(x, y):\n    x += y\n    return x.sum()",
    },
}


def scenarios() -> dict[str, str]:
    """Return all programs by their name."""
    found: dict[str, str] = {}
    for table in (EXPRESSIONS, BODIES):
        for subject, texts in table.items():
            found.update({f"{subject}: {text}".replace("\n", " | "): text for text in texts})
    for subject, modules in MODULES.items():
        found.update({f"{subject}: {name}": text for name, text in modules.items()})
    return found
