"""Training steps, and other right programs that must not be refused."""

# Programs are shorter to read where their lines are not broken.
# ruff: noqa: E501

from __future__ import annotations

_STEP = """
rng = np.random.default_rng(0)
labels = tt.from_numpy(np.array([0, 1, 2]))
def step(model, optimizer, x):
    loss = losses.cross_entropy(model.forward(tt.from_numpy(x).trace()), labels)
    value, tape = loss.split_tape()
    optimizer.step(value.put_tape(tape).backward(wrt=model))
    return value
"""
_LINEAR = "model = nn.Linear(4, 3, rng=rng)\n"
_SGD = "optimizer = optim.Sgd(model, lr=0.1)\n"
_PLAIN = "def f(x, y):\n    return step(model, optimizer, x)"
_NET = """
from typing import Literal as L
class Net(nn.Module):
    hidden: nn.Linear[L[4], L[5]]
    norm: nn.BatchNorm1d[L[5]]
    drop: nn.Dropout
    out: nn.Linear[L[5], L[3]]
    def forward(self, x):
        return self.out.forward(self.drop.forward(self.norm.forward(self.hidden.forward(x)).relu()))
model = Net(hidden=nn.Linear(4, 5, rng=rng), norm=nn.BatchNorm1d(5),
            drop=nn.Dropout(0.25, rng=rng), out=nn.Linear(5, 3, rng=rng))
"""

TRAINING = {
    "a loss as an array": _STEP
    + _LINEAR
    + _SGD
    + "def f(x, y):\n    return step(model, optimizer, x).numpy()",
    "a linear model": _STEP + _LINEAR + _SGD + _PLAIN,
    "momentum": _STEP + _LINEAR + "optimizer = optim.Sgd(model, lr=.1, momentum=.9)\n" + _PLAIN,
    "adam": _STEP + _LINEAR + "optimizer = optim.Adam(model, lr=0.1)\n" + _PLAIN,
    "norms and dropout": _STEP + _NET + _SGD + _PLAIN,
    "another learning rate": _STEP + _LINEAR + _SGD + _PLAIN + "\n---\noptimizer.lr = 0.5\n\n",
    "another model": _STEP
    + _LINEAR
    + _SGD
    + _PLAIN
    + "\n---\nmodel = nn.Linear(4, 3, rng=rng); optimizer = optim.Sgd(model, lr=0.1)\n\n",
    "a model in a data class": _STEP
    + _LINEAR
    + _SGD
    + "from dataclasses import dataclass\nfrom typing import Any\n@dataclass\nclass C:\n"
    "    m: object\n    o: object\nS = C(model, optimizer)\n"
    "def f(x, y):\n    return step(S.m, S.o, x)",
    "a method": _STEP
    + _LINEAR
    + _SGD
    + "class Trainer:\n    def step(self, x, y):\n        return step(model, optimizer, x)\n"
    "t = Trainer()\ndef f(x, y):\n    return t.step(x, y)",
    "two optimizers": _STEP
    + _LINEAR
    + _SGD
    + "other = nn.Linear(4, 3, rng=rng)\nsecond = optim.Adam(other, lr=0.1)\n"
    "def f(x, y):\n    return step(model, optimizer, x), step(other, second, y)",
    "two steps in one call": _STEP
    + _LINEAR
    + _SGD
    + "def f(x, y):\n    step(model, optimizer, x)\n    return step(model, optimizer, y)",
}

RIGHT = {
    "an iterator that stands around": "import itertools\nclass S:\n    a = 2.\ns = S()\n"
    "s.it = itertools.count()\ndef f(x, y):\n    return x * s.a\n---\nnext(s.it)\n",
    "a clock that stands around": "import time\nclass S:\n    a = 2.\ns = S()\n"
    "s.now = time.time\ndef f(x, y):\n    return x * s.a",
    "a clock in what does not run": "import time\nnow, S = time.time, False\n"
    "def f(x, y):\n    return x * time.time() * now() if S else x + y",
    "a wrapper that scales": "import functools\ndef twice(g):\n    @functools.wraps(g)\n"
    "    def inner(*a):\n        return 2 * g(*a)\n    return inner\n"
    "@twice\ndef f(x, y):\n    return x + y",
    "a cached helper of shapes": "import functools\n@functools.lru_cache\ndef n(shape):\n"
    "    return shape[0] * shape[1]\ndef f(x, y):\n    return x.sum() / n(x.shape)",
    "a frozen configuration": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass C:\n"
    "    lr: float = .1\nc = C()\ndef f(x, y):\n    return x - c.lr * y",
    "a helper class": "class H:\n    def __init__(self): self.k = 2.\n    def __call__(self, x):\n"
    "        return x * self.k\nh = H()\ndef f(x, y):\n    return h(x) + y",
    "an enumeration": "import enum\nclass E(enum.Enum):\n    A = 1\nmode = E.A\n"
    "def f(x, y):\n    return x + y if mode is E.A else x",
    "a loop": "def f(x, y):\n    for _ in range(3):\n        x = x * y\n    return x",
    "a dictionary of results": "def f(x, y):\n    return {'a': x + y, 'b': (x * y).sum()}",
    "a closure": "def make(k):\n    def f(x, y):\n        return x * k + y\n    return f\n"
    "f = make(2.)\ndef g(): pass\n# def f(x, y)",
    "a partial": "from functools import partial\ndef g(k, x, y):\n    return x * k + y\n"
    "f = partial(g, 2.)\n# def f(x, y)",
    "a lambda": "f = lambda x, y: x * 2 + y\n# def f(x, y)",
}
