"""Programs on what a function finds around itself, and on what it returns."""

# In each, what follows the line ``---`` runs between the calls.

from __future__ import annotations

# These are planned, and give what the function gives.
PLANNED = {
    "objects of all kinds that come out": """
import collections, dataclasses, datetime, decimal, types
class Loss(dict):
    __getattr__ = dict.__getitem__
class Output(collections.OrderedDict):
    def __init__(self, loss): super().__init__(loss=loss)
class Many(list):
    def __init__(self, items): super().__init__(items); self.count = len(items)
class Default(collections.defaultdict): pass
@dataclasses.dataclass(slots=True, frozen=True)
class Slots:
    a: object
class Unit:
    def __set_name__(self, owner, name): self.name = name
    def __get__(self, one, cls=None): return one.__dict__[self.name]
    def __set__(self, one, value): one.__dict__[self.name] = value * 2
class Measured:
    w = Unit()
    def __init__(self, w): self.w = w
def f(x, y):
    default = Default(list)
    default['a'].append(x * 2)
    default.note = 'n'
    return [
        Loss(loss=x.sum()), Output(y), Many([x, y]), default, default.default_factory, Slots(x),
        Measured(x).w, Measured(x), collections.deque([x, y * 2], maxlen=2).maxlen,
        collections.Counter('aab'), ..., NotImplemented, np.poly1d([1, 2]), range(3), np.sin,
        decimal.Decimal(1), datetime.date(2020, 1, 1), types.SimpleNamespace(a=x),
    ]
""",
    "defaults of named tuples": """
import collections
from typing import NamedTuple
class Point(NamedTuple):
    a: object
    b: float = 3.
    c: object = np.ones(4)
Other = collections.namedtuple('Other', 'a b', defaults=[2.])
def f(x, y):
    return Point(x).b, x * Point(y).b, Point(x).c + x, Other(x).b, Other(x)
---
Point.__new__.__defaults__ = 5., np.ones(4)
Point.__new__.__defaults__ = 5., np.zeros(4)
Other.__new__.__defaults__ = 5.,
""",
    "type as a value": """
kinds = {type: 1}
def f(x, y):
    class Meta(type): pass
    is_class = [type(one) is type for one in (int, Meta, x, 2)]
    counted = kinds[type(int)], type(int) in (type, Meta), type(type(x)) is type, type == type(int)
    return is_class, counted, type.__module__, type(x).__name__, type
""",
    "tuples of one's own": """
from typing import NamedTuple
class Pair(NamedTuple):
    a: object
    b: int = 1
class Made(Pair):
    def __new__(cls, a): return super().__new__(cls, a * 2)
def f(x, y):
    made = Made(x)
    made.note = 'kept'
    return made, made.note, Pair(y)
""",
    "recurrent layers and names of layers": """
class Net(nn.Module):
    l0: nn.Linear
    l1: nn.StackedGRU
    act: str
    def forward(self, x):
        return getattr(self, f'l{0}')(x).tanh()
rng = np.random.default_rng(0)
net = Net(l0=nn.Linear(4, 3, rng=rng), l1=nn.StackedGRU(4, 5, 2, rng=rng), act='tanh')
part = nn.Selection(net, without=['l1'])
optimizer = optim.Adam(part)
def f(x, y):
    x = tt.from_numpy(x)
    loss = (net(x.trace()) * 2.).sum()
    value = loss.detach()
    optimizer.step(loss.backward(wrt=part))
    return value, net.l1(tt.from_numpy(y[None]))
""",
    "edges that are given back": """
edges = np.linspace(-3., 3., 4)
def f(x, y):
    own = np.linspace(-2., 2., 3)
    counts, same = np.histogram(x, bins=own)
    same *= 2
    return counts, own, same, same is own, np.histogram(y, edges)[1] is edges
""",
    "an iterator that stands around": """
import itertools
class S:
    a = 2.
s = S()
s.it = itertools.count()
def f(x, y):
    return x * s.a
---
next(s.it)

""",
    "a clock that stands around": """
import time
class S:
    a = 2.
s = S()
s.now = time.time
def f(x, y):
    return x * s.a
""",
    "a clock in what does not run": """
import time
now, S = time.time, False
def f(x, y):
    return x * time.time() * now() if S else x + y
""",
    "a wrapper that scales": """
import functools
def twice(g):
    @functools.wraps(g)
    def inner(*a):
        return 2 * g(*a)
    return inner
@twice
def f(x, y):
    return x + y
""",
    "a cached helper of shapes": """
import functools
@functools.lru_cache
def n(shape):
    return shape[0] * shape[1]
def f(x, y):
    return x.sum() / n(x.shape)
""",
    "another model": """
rng = np.random.default_rng(0)
model = nn.Linear(4, 3, rng=rng)
optimizer = optim.Sgd(model, lr=0.1)
def f(x, y):
    optimizer.step(model(tt.from_numpy(x).trace()).square().mean().backward(wrt=model))
    return model.weight
---
model = nn.Linear(4, 3, rng=rng); optimizer = optim.Sgd(model, lr=0.1)

""",
}
# These give what the function gives, or are refused.
LAWFUL = {
    "a member of an enumeration that is made inside": """
import enum
def f(x, y):
    return enum.Enum('Made', {'A': x, 'B': 2}).A
""",
    "numbers that are put in": """
import array
numbers = array.array('i', [1, 2])
def f(x, y):
    numbers.append(3)
    return x * len(numbers)
""",
    "an array that numpy asks for itself": """
def f(x, y):
    a, b = np.zeros(3), np.ones_like(x)
    c, d = np.require(a), np.asarray_chkfinite(b)
    a[0], d[0] = x[0, 0], 2.
    return a, b, c, d
""",
    "a number that does not fit": """
def f(x, y):
    z = (x > 0).astype(np.uint8)
    z.fill(-1)
    return x
""",
    "rows that are shuffled": """
def f(x, y):
    z = x.copy()
    np.random.default_rng(0).shuffle(z)
    return z
""",
    "an optimizer that is made inside": """
import copy
model = nn.Linear(4, 2, rng=np.random.default_rng(0))
def f(x, y):
    mine = copy.deepcopy(model)
    optimizer = optim.Adam(mine)
    for _ in range(2):
        optimizer.step(mine(tt.from_numpy(x).trace()).square().sum().backward(wrt=mine))
    return mine.weight
""",
    "an optimizer of the model's that is made inside": """
model = nn.Linear(4, 2, rng=np.random.default_rng(0))
def f(x, y):
    optimizer = optim.Sgd(model, lr=0.1, momentum=0.9)
    optimizer.step(model(tt.from_numpy(x).trace()).square().sum().backward(wrt=model))
    return model.weight
""",
    "type as an attribute of a class": """
class Of:
    kind = type
def f(x, y):
    return x if Of.kind(x) is np.ndarray else y
""",
    "seeds that have children": """
seeds = np.random.SeedSequence(1)
def f(x, y):
    return x + np.random.default_rng(seeds.spawn(1)[0]).normal()
""",
    "gradients that add up": """
model = nn.Linear(4, 2, rng=np.random.default_rng(0))
sums = tt.GradientAccumulator()
def f(x, y):
    grads = model(tt.from_numpy(x).trace()).sum().backward(wrt=model)
    sums.accumulate('weight', grads[model.weight])
    return sums.get('weight')
""",
    "a lock that is taken": """
import threading
lock = threading.Lock()
class Held: pass
held = Held()
held.lock = lock
def f(x, y):
    with held.lock:
        return x + y
""",
    "warnings that are errors": """
import warnings
def f(x, y):
    with warnings.catch_warnings():
        warnings.simplefilter('error', RuntimeWarning)
        try:
            return np.log(x)
        except RuntimeWarning:
            return np.zeros_like(x)
""",
    "warnings that are counted": """
import warnings
def f(x, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        y = np.log(x)
    return len(caught), y
""",
    "a class that is registered later": """
import abc
class Layer(abc.ABC): pass
class Mine: pass
one = Mine()
def f(x, y):
    return x if isinstance(one, Layer) else y
---
Layer.register(Mine)
""",
    "a number as an array": """
def f(x, y):
    return np.asarray(x.mean().item()) + 1, np.sum([x.mean().item(), 0.])
""",
    "draws that are refused": """
import random
np.random.seed(0), random.seed(0)
def f(x, y):
    return x * np.random.rand() * random.random()
---
drawn = np.random.get_state()[2], random.getstate()[1][:3]
""",
    "names that are made": """
class Config:
    width_0 = 2.
    width_1 = 3.
W_a = 2.
def f(x, y):
    for place in range(2):
        x = x * getattr(Config, f'width_{place}') * globals()['W_' + 'a']
    return x + sum(one for name, one in vars(Config).items() if name.startswith('width'))
---
Config.width_1 = 5.
W_a = 4.
Config.width_2 = 7.
""",
    "a file that is written to": """
import tempfile
file = tempfile.TemporaryFile('w')
def f(x, y):
    file.write('told')
    return x, file.tell()
""",
    "errors that tell of tensors": """
class Diverged(Exception): pass
def f(x, y):
    loss = tt.from_numpy(x).sum()
    raise Diverged('loss', loss)
""",
    "decompositions as they come": """
def f(x, y):
    return np.linalg.eigh(x @ x.T), np.linalg.qr(x), np.linalg.slogdet(x @ x.T)
""",
    "an iterator by way of an object that names it": """
import itertools, operator
class Held: pass
held, get = Held(), operator.attrgetter('numbers')
held.numbers = itertools.count(1)
def f(x, y):
    return x * next(get(held))
""",
    "numbers beside scalars": """
def f(x, y):
    n = x.sum().item()
    return n - x[0, 0], n < x.mean(), 2. - x[0, 0], n * np.float64(2.), n / y.max(), n + 1.
""",
    "lookups by another name": """
import functools, types
class Config:
    lr_a = 2.
settings = types.ModuleType('settings')
settings.lr_a = 2.
look, path = getattr, ['lr', 'a']
def default(where, get=getattr):
    return get(where, '_'.join(path))
def f(x, y):
    held = functools.reduce(getattr, ['_'.join(path)], Config)
    return x * look(Config, '_'.join(path)) * look(settings, '_'.join(path)), default(Config), held
---
Config.lr_a = 5.
settings.lr_a = 3.
""",
    "an array whose view cannot be written to": """
whole = np.ones(4, np.float32)
part = whole[1:]
part.flags.writeable = False
def f(x, y):
    z = whole.sum() + x[:, 1:] * part
    whole[2] = 5.
    return z
""",
    "names that come to a module": """
import types
settings = types.ModuleType('settings')
settings.lr_a = 2.
def f(x, y):
    return x * sum(one for name, one in vars(settings).items() if name.startswith('lr'))
---
settings.lr_b = 3.
""",
}
