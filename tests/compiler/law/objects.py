"""Objects that a function reads something of, and what the caller changes in them between calls."""

# Programs are shorter to read where their lines are not broken.
# ruff: noqa: E501

from __future__ import annotations

_MOCK = "from unittest import mock\n"
_LOG = "import logging\nS = logging.getLogger('law_scenario')\nS.setLevel(2)"

# What makes it, an expression that reads it, and the change.
OBJECTS = {
    "what a wrapper wraps": (
        "import functools\ndef w(h):\n    @functools.wraps(h)\n    def inner(): return inner.__wrapped__()\n    return inner\n@w\ndef g(): return 1.",
        "g()",
        "g.__wrapped__ = lambda: 5.",
    ),
    "an attribute that a function lacks": ("def g(): return getattr(g, 'a', 1.)", "g()", "g.a = 3."),
    "the class of an object": (
        "class A:\n    def m(self): return 2.\nclass B(A):\n    def m(self): return 3.\ns = A()",
        "s.m()",
        "s.__class__ = B",
    ),
    "the bases of a class": (
        "class P:\n    a = 2.\nclass Q:\n    a = 3.\nclass A(P): pass\ns = A()",
        "s.a",
        "A.__bases__ = (Q,)",
    ),
    "a module that makes its attributes": (
        "import types\nm = types.ModuleType('law_made')\n"
        "exec('T = {\"a\": 2.}\\ndef __getattr__(name):\\n    return T[name]', m.__dict__)",
        "m.a",
        "m.T['a'] = 3.",
    ),
    "what such a module gets": (
        "import types\nm = types.ModuleType('law_made')\nexec('def __getattr__(name):\\n    return 2.', m.__dict__)",
        "m.a",
        "m.a = 3.",
    ),
    "an attribute that a module loses": (
        "import types\nm = types.ModuleType('law_lost')\nm.a = 2.",
        "getattr(m, 'a', 5.)",
        "del m.a\nm.a = 7.",
    ),
    "an attribute by a name that a module lacks": (
        "import types\nm = types.ModuleType('law_lacks')\nN = 'a'\ndef g(): return getattr(m, N, 1.)",
        "g()",
        "m.a = 7.\nN = 'b'",
    ),
    "a context": (
        "import contextvars\nv = contextvars.ContextVar('v', default=2.)\nc = contextvars.copy_context()",
        "c.run(v.get)",
        "c.run(v.set, 3.)",
    ),
    "a member of an enumeration": (
        "import enum\nclass E(enum.Enum):\n    A = 1\nE.A.a = 2.",
        "E.A.a",
        "E.A.a = 3.",
    ),
    "a method of an enumeration": (
        "import enum\nclass E(enum.Enum):\n    A = 2.\n    def m(self): return self.value",
        "E.A.m()",
        "E.m = lambda self: 9.",
    ),
    "what a weak reference gives": (
        "import weakref\nclass A: a = 2.\no = A()\nr = weakref.ref(o)",
        "(5. if r() is None else r().a)",
        "A.a = 3.\ndel o",
    ),
    "what a mock gives": (_MOCK + "s = mock.Mock(return_value=2.)", "s()", "s.return_value = 3."),
    "the precision of decimals": (
        "import decimal\nD = decimal.Decimal(1)",
        "float(D / 3)",
        "import decimal; decimal.getcontext().prec = 5\nimport decimal; decimal.getcontext().prec = 28",
    ),
    "the level of a logger": (_LOG, "S.level", "S.setLevel(3)\nS.setLevel(2)"),
    "a number that a cache gives": (
        "import functools\nK = 2.\n@functools.lru_cache\ndef g(n): return n * K\ng(3)",
        "g(3)",
        "K = 5.; g.cache_clear(); g(3)\nK = 6.; g.cache_clear()",
    ),
    "an object whose method keeps its results": (
        "import functools\nclass A:\n    k = 2.\n    @functools.cache\n    def g(self, n): return self.k * n\na = A()",
        "a.g(3)",
        "A.k = 5.\nA.g.cache_clear()",
    ),
    "a list in a tuple that a cache gives": (
        "import functools\n@functools.lru_cache\ndef g(n): return n, [2.]\ng(3)",
        "g(3)[1][0]",
        "g(3)[1][0] = 3.",
    ),
    "what a pattern matches by position": (
        "class P:\n    __match_args__ = ('a',)\n    a, b = 1, 2\ns = P()\ndef g():\n    match s:\n        case P(1): return 1.\n        case _: return 3.",
        "g()",
        "P.__match_args__ = ('b',)",
    ),
    "an object of a class of numpy's": ("S = np.poly1d([1., 2.])", "S(2.)", "S[0] = 5."),
    "a list that a thread changes": (
        "import threading\nS = [1.]\ndef g():\n    t = threading.Thread(target=lambda: S.append(2.))\n    t.start()\n    t.join()\n    return 2.",
        "g()",
        "pass",
    ),
    "how often a cache was hit": (
        "import functools\n@functools.lru_cache\ndef h(n): return 1.\ndef g():\n    h(1)\n    return float(h.cache_info().hits)",
        "g()",
        "h(1)",
    ),
    "a file": (
        "import io\nS = io.TextIOWrapper(io.BytesIO(b'23456789'))",
        "float(S.read(1))",
        "pass",
    ),
}  # fmt: skip
