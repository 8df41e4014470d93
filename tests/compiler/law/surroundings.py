"""Random programs that read something around them, by random ways, and one thing that changes.

A program is a value in a holder in a holder; the caller changes one of the three before each call.
"""

# Programs are shorter to read where their lines are not broken.
# ruff: noqa: E501

from __future__ import annotations

import random

# Values that are alike, and an expression with one of them.
VALUES: dict[str, tuple[list[str], str]] = {
    "a number": (["2.", "3.", "2", "True", "0.", "-0.", "np.float64(2)"], "x * {}"),
    "a text": (["'a'", "'b'", "''"], "x * len({})"),
    "an array": (["np.ones(4, np.float32)", "np.arange(4.)"], "x + {}"),
    "a tensor": (
        ["tt.from_numpy(np.ones(4, np.float32))", "tt.from_numpy(np.zeros(4, np.float32))"],
        "x * ({}).numpy()",
    ),
    "a generator": (["np.random.default_rng(1)", "np.random.default_rng(2)"], "x * ({}).random()"),
    "a decimal": (["decimal.Decimal('1.0')", "decimal.Decimal('1.00')"], "x * len(str({}))"),
    "a range": (["range(3)", "range(4)"], "x * sum({})"),
    "bytes": (["bytearray(b'ab')", "bytearray(b'abc')", "b'ab'"], "x * ({})[0] * len({})"),
    "a function": (["np.sin", "np.tanh"], "({})(x)"),
    "a lambda": (["(lambda a, k=2.: a * k)", "(lambda a, k=3.: a * k)"], "({})(x)"),
    "a model": (
        [
            "nn.Linear(4, 3, rng=np.random.default_rng(1))",
            "nn.Linear(4, 3, rng=np.random.default_rng(2))",
        ],
        "({}).forward(tt.from_numpy(x)).numpy()",
    ),
    "an iterator": (["itertools.count(1)", "itertools.count(2)"], "x * next({})"),
    "an iterator beside": (
        ["itertools.count(1)", "itertools.count(2)"],
        "x * (2 if {} is None else 3)",
    ),
}
# What makes a holder of `v`, an expression that reads it, and what may change in the holder `o`.
HOLDERS: dict[str, tuple[str, str, list[str]]] = {
    "a list": ("return [v]", "({})[0]", ["{o}[0] = {v}", "{o}.insert(0, {v})"]),
    "a dict": ("return {'a': v}", "({})['a']", ["{o}['a'] = {v}", "{o}['b'] = 1"]),
    "a deque": ("return collections.deque([v])", "({})[0]", ["{o}.appendleft({v})"]),
    "a chain map": ("return collections.ChainMap({}, {'a': v})", "({})['a']", ["{o}['a'] = {v}"]),
    "an array of objects": ("o = np.empty(1, object)\n    o[0] = v\n    return o", "({})[0]", ["{o}[0] = {v}"]),
    "an object": ("return K(v)", "({}).a", ["{o}.a = {v}", "{o}.__class__ = K2"]),
    "an attribute by name": ("return K(v)", "getattr({}, NAME)", ["{o}.b = {v}; globals().update(NAME='b')"]),
    "an attribute that is not there": ("return K(v)", "named({})", ["K.b = {v}", "{o}.b = {v}"]),
    "slots": ("o = Slots()\n    o.a = v\n    return o", "({}).a", ["{o}.a = {v}"]),
    "a data class": ("return Data(v)", "({}).a", ["{o}.a = {v}"]),
    "a class": ("class C:\n        a = v\n    return C", "({}).a", ["{o}.a = {v}"]),
    "a base": ("class B:\n        a = v\n    class C(B): pass\n    return C()", "({}).a", ["type({o}).__base__.a = {v}", "type({o}).a = {v}", "{o}.a = {v}"]),
    "a metaclass": ("class M(type):\n        a = v\n    class C(metaclass=M): pass\n    return C", "({}).a", ["type({o}).a = {v}", "{o}.a = {v}"]),
    "a property": ("o = Read()\n    o.held = v\n    return o", "({}).a", ["{o}.held = {v}", "Read.a = property(lambda self: self.held)"]),
    "a getattr": ("o = Any()\n    o.held = [v]\n    return o", "({}).what", ["{o}.held[0] = {v}", "{o}.what = {v}"]),
    "a constructor": ("class C:\n        k = v\n        def __init__(self): self.a = self.k\n    return C", "({})().a", ["{o}.k = {v}"]),
    "a closure": ("def g(): return v\n    return g", "({})()", ["{o}.__closure__[0].cell_contents = {v}"]),
    "a default": ("def g(*, a=v): return a\n    return g", "({})()", ["{o}.__kwdefaults__['a'] = {v}"]),
    "a function's attribute": ("def g(): pass\n    g.a = v\n    return g", "({}).a", ["{o}.a = {v}"]),
    "a partial method": ("class C:\n        p = functools.partialmethod(lambda self, a: a, v)\n    return C()", "({}).p()", []),
    "a method": ("return K(v).get", "({})()", ["{o}.__self__.a = {v}", "K.get = lambda self: self.a"]),
    "a context variable": ("return contextvars.ContextVar('w', default=v)", "({}).get()", ["{o}.set({v})"]),
    "a module": ("m = types.ModuleType('around')\n    m.a = v\n    return m", "({}).a", ["{o}.a = {v}"]),
    "this module": ("globals()['kept'] = v\n    return K(v)", "(({}), sys.modules[__name__].kept)[1]", ["kept = {v}"]),
    "a cached property": ("o = Once()\n    o.held = v\n    return o", "({}).a", ["{o}.held = {v}", "{o}.__dict__.pop('a', 0)"]),
    "a neighbour of an iterator": ("o = K(v)\n    o.it = itertools.count()\n    return o", "({}).a", ["{o}.a = {v}", "next({o}.it)"]),
    "a neighbour of a clock": ("o = K(v)\n    o.now = time.time\n    return o", "({}).a", ["{o}.a = {v}"]),
}  # fmt: skip
_PREAMBLE = """
import collections, contextvars, dataclasses, decimal, functools, itertools, sys, time, types
NAME = 'a'
class K:
    def __init__(self, a): self.a = a
    def get(self): return self.a
class K2(K): pass
class Slots:
    __slots__ = ('a',)
@dataclasses.dataclass
class Data:
    a: object
class Read:
    @property
    def a(self): return self.held
class Any:
    def __getattr__(self, name):
        if name.startswith('__'): raise AttributeError(name)
        return self.held[0]
class Once:
    @functools.cached_property
    def a(self): return self.held
def named(o): return o.b if hasattr(o, 'b') else o.a
"""


def surroundings(seed: int) -> str:
    """Return the text of a scenario."""
    rng = random.Random(seed)
    values, use = rng.choice([*VALUES.values()])
    holders = [rng.choice([*HOLDERS.values()]) for _ in range(rng.randint(1, 2))]
    lines, read = [_PREAMBLE, f"v0 = {values[0]}"], f"v{len(holders)}"
    for number, (body, _, _) in enumerate(holders, 1):
        lines += [f"def h{number}(v):\n    {body}", f"v{number} = h{number}(v{number - 1})"]
    for _, expression, _ in reversed(holders):
        read = expression.replace("{}", read)
    lines.append(f"def f(x, y):\n    return {use.replace('{}', read)}\n---")
    for _ in range(rng.randint(1, 3)):
        level, value = rng.randint(0, len(holders)), rng.choice(values)
        for number in range(1, level or len(holders) + 1):
            value = f"h{number}({value})"
        changes = holders[level - 1][2] if level else [f"v{len(holders)} = {{v}}"]
        change = rng.choice([*changes, "pass"])
        lines.append(change.replace("{o}", f"v{level}").replace("{v}", value))
    return "\n".join(lines)
