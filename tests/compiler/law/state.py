"""Programs on what objects, classes and modules keep beside what a function plainly reads."""

# As in `around`, what follows the line ``---`` runs between the calls.

from __future__ import annotations

# These are planned, and give what the function gives.
SEEN = {
    "members of an enumeration": """
import enum
class Rate(enum.Enum):
    LOW = [1.]
    HIGH = [2.]
def f(x, y):
    return x * sum(one.value[0] for one in Rate) * Rate['LOW'].value[0]
---
Rate.HIGH.value[0] = 5.
""",
    "a date with a zone of the user's": """
import datetime
class Zone(datetime.tzinfo):
    def __init__(self, hours): self.hours = hours
    def utcoffset(self, when): return datetime.timedelta(hours=self.hours)
when = datetime.datetime(2020, 1, 1, tzinfo=Zone(1))
def f(x, y):
    return x * when.utcoffset().seconds
---
when.tzinfo.hours = 2
""",
    "functions by the class of an argument": """
import functools
@functools.singledispatch
def of(value): return 1.
of.register(np.ndarray, lambda value: value * 2)
class Reader:
    @functools.singledispatchmethod
    def of(self, value): return 1.
Reader.of.register(np.ndarray)(lambda self, value: value * 2)
reader = Reader()
def f(x, y):
    return of(x), of('a'), reader.of(x), reader.of(1)
---
of.register(str, lambda value: 5.)
Reader.__dict__['of'].register(int)(lambda self, value: 7.)
""",
    "an attribute of a class in a text that is formatted": """
class Config: rate = 2.; width = 3.
class Held: template = '{.width}'
def f(x, y):
    return x * float('{0.rate}'.format(Config)) * float(Held.template.format(Config))
---
Config.rate = 4.
Config.width = 5.
""",
    "attributes of a cached function": """
import functools
@functools.lru_cache
def one(): return 1.
one.factor = 2.
def f(x, y):
    return x * one.factor
---
one.factor = 3.
""",
    "attributes of a partial function": """
import functools
part = functools.partial(max, 1.)
part.factor = 2.
def f(x, y):
    return x * part.factor
---
part.factor = 3.
""",
    "a class that is registered with a class of Python's": """
import numbers
class Own: pass
own = Own()
def f(x, y):
    return x if isinstance(own, numbers.Number) else y
---
numbers.Number.register(Own)
""",
    "a lookup under another name": """
from operator import attrgetter as ag
class Config:
    lr_a = 2.
name = ['lr', 'a']
def f(x, y):
    return x * ag('_'.join(name))(Config)
---
Config.lr_a = 5.
""",
    "names that are made beside an iterator": """
import itertools, types
class Config:
    lr_a, numbers = 2., itertools.count()
settings = types.ModuleType('settings')
settings.lr_b, settings.numbers = 3., itertools.count()
def f(x, y):
    made = [getattr(where, 'lr_' + name) for where, name in ((Config, 'a'), (settings, 'b'))]
    return x * sum(made) * (2. if hasattr(settings, 'l' + 'ater') else 1.)
---
Config.lr_a = 4.
settings.lr_b = 5.
settings.later = 1.
""",
    "sets of tensors, models and objects": """
weight, model = tt.ones((3, 4)), nn.Linear(4, 4, rng=np.random.default_rng(0))
class Scale:
    def __init__(self): self.by = tt.full((3, 4), 2.)
scale = Scale()
tensors, models, scales = {weight}, frozenset([model]), {(scale, 1)}
def f(x, y):
    z = tt.from_numpy(x)
    for one in tensors: z = z * one if weight in tensors else z + one
    for one in models: z = one(z)
    for one, _ in scales: z = z * one.by
    return z.numpy()
---
weight.array = np.full((3, 4), 3., np.float32)
tensors.clear(), tensors.add(tt.full((3, 4), 5.))
models = frozenset()
scale.by = tt.full((3, 4), 7.)
""",
    "keys that count who asks": """
class Key:
    asked = 0
    def __hash__(self):
        Key.asked += 1
        return 1
    def __repr__(self): return 'a key'
table = {Key(): 2.}
def f(x, y):
    return x * sum(table.values())
""",
    "a generic class with its parameter": """
from typing import Generic, TypeVar
T = TypeVar('T')
class Box(Generic[T]):
    def __init__(self, value): self.value = value
def f(x, y):
    return x * Box[float](2.).value
""",
    "known arrays as text": """
def f(x, y):
    return x * len(str(np.zeros_like(x))) + len(f'{np.arange(3)}')
""",
    "products of rows of nothing": """
def f(x, y):
    return np.vecdot(x[:, :0], y[:, :0]), np.vecdot(x, y)
""",
    "a class that answers for its attributes": """
class Meta(type):
    def __getattr__(cls, name): return cls.table[name]
class Config(metaclass=Meta):
    table = {'w': 2.}
def f(x, y):
    return x * Config.w
""",
    "a class that a function of Python's makes": """
import abc, dataclasses, types
methods = {'of': lambda self: self.rate}
One = dataclasses.make_dataclass('One', [('rate', float, 2.)], namespace=methods)
Other, Third = types.new_class('Other'), abc.ABCMeta('Third', (), {'rate': 2.})
Other.rate = 3.
one = One()
def f(x, y):
    return x * One.rate * Other.rate * Third.rate * one.of()
---
One.rate = 4.
Other.rate = 5.; Third.rate = 6.
One.of = lambda self: 7.
""",
    "a tensor under a name with braces": """
class Own: pass
own = Own()
setattr(own, '{a}', tt.from_numpy(np.ones(4, np.float32)))
def f(x, y):
    setattr(own, '{a}', getattr(own, '{a}') * 2.)
    return tt.from_numpy(x) * getattr(own, '{a}')
""",
    "a generic class with its parameter that is read": """
from typing import Generic, TypeVar
T = TypeVar('T')
class Box(Generic[T]): rate = 2.
of_floats = Box[float]
def f(x, y):
    return x * of_floats.rate
---
Box.rate = 3.
""",
    "what functions and classes say of themselves": """
def one(): 'a'
class Own: pass
def f(x, y):
    return x * len(one.__doc__) * len(one.__name__) * len(Own().__class__.__name__)
---
one.__doc__ = 'abc'
one.__name__ = 'another'
Own.__name__ = 'Another'
""",
}
# These give what the function gives, or are refused, and leave nothing behind.
KEPT = {
    "a variable that is empty at first": """
def made():
    def write(x):
        nonlocal kept
        kept = x * 2
        return x
    def read(): return kept
    if False: kept = 0
    return write, read
write, read = made()
def f(x, y):
    return write(x)
---
described = str(read()) if write.__closure__[0].cell_contents is not None else ''
""",
    "a variable that is filled later": """
def made():
    def read(x):
        try: return x * kept
        except NameError: return x
    def fill(value):
        nonlocal kept
        kept = value
    if False: kept = 0
    return read, fill
read, fill = made()
def f(x, y):
    return read(x)
---
fill(3.)
""",
    "a name with two underscores": """
__n = 0
held = []
def f(x, y):
    global __n
    __n = __n + 1
    return x
---
held.append(__n)
""",
    "a method that a class gets": """
class Called:
    def __call__(self, x): return x
called, held = Called(), []
def f(x, y):
    made = called(x)
    Called.__call__ = lambda self, x: x * 2
    return made
---
held.append(called(1.))
""",
    "the order of a dict": """
import collections
kept, order = collections.OrderedDict(a=1., b=2.), []
def f(x, y):
    kept.move_to_end('a')
    return x * kept['a']
---
order.append(list(kept))
kept.move_to_end('b')
""",
    "keys that change": """
class Key:
    def __init__(self, number): self.number = number
    def __hash__(self): return self.number
    def __repr__(self): return 'a key'
key = Key(1)
table = {key: 2.}
key.number = 2
def f(x, y):
    return x * sum(table.values())
""",
    "the attributes of an object, all at once": """
class Box: pass
box = Box()
box.a = 1.
def f(x, y):
    box.__dict__ = {'a': 2.}
    return x
""",
    "the class of an object": """
class Box: factor = 1.
class Other(Box): factor = 2.
box = Box()
def f(x, y):
    made = x * box.factor
    box.__class__ = Other
    return made
""",
    "the code of a function": """
def one(): return 1.
def two(): return 2.
def f(x, y):
    made = x * one()
    one.__code__ = two.__code__
    return made
""",
    "the state of generators, which is put back": """
import random
shared = np.random.RandomState(0)
own = random.Random(0)
def f(x, y):
    state = own.getstate()
    drawn = own.random()
    own.setstate(state)
    return x * drawn
---
own.random()
""",
    "a slot by what reads it": """
class Own: __slots__ = 'rate',
own, read = Own(), Own.rate
own.rate = 2.
def f(x, y):
    return x * read.__get__(own)
---
own.rate = 3.
""",
    "the classes below a class": """
class Base: factor = 1.
class Below(Base): pass
def f(x, y):
    return x * sum(one.factor for one in Base.__subclasses__())
---
Below.factor = 5.
""",
}
