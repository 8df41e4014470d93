"""Programs that read, or set, an attribute in a way that its own code does not show."""

# As in `around`, what follows the line ``---`` runs between the calls.

from __future__ import annotations


def _of_own(
    result: str = "1.", *, around: str = "", does: str = "pass", change: str = "own.count = 3."
) -> str:
    """Return a program on an object with a count, which is 2, and a rate, which it reads."""
    return f"""
class Own:
    shared = 5.
    def one(self): pass
own = Own(); own.count = 2.; own.rate = 1.
{around}
def f(x, y):
    {does}
    return x * own.rate * ({result})
---
{change}
"""


# These are planned, and give what the function gives.
READ = {
    "the state": _of_own("sum(object.__getstate__(own).values())"),
    "a descriptor that gives a dict": _of_own(
        "fields.__get__(own)['count']", around="fields = Own.__dict__['__dict__']"
    ),
    "a protocol": _of_own(
        "2. if isinstance(own, Runs) else 3.",
        around="""import typing
@typing.runtime_checkable
class Runs(typing.Protocol):
    def count(self): ...""",
        change="own.count = None",
    ),
    "how many names a class has": _of_own("len(vars(Own))"),
    "an attribute that is missing": _of_own(
        "getattr(own, 'rest', 1.) * own.shared",
        change="del own.count; own.shared = 3.\nown.rest = 2.",
    ),
    "a list that is found in another place, too": _of_own(
        "len(again)",
        around="again = own.count = [1., 2.]",
        change="own.count.append(3.)\nagain = own.count = [1.]\nown.count = []\nagain.append(2.)",
    ),
    "two lists, one of which nobody reads": _of_own(
        "more is own.other",
        around="own.count, own.other, more = [1.], [1.], [1.]",
        change="own.count = own.other\nown.other = more\nown.count = more",
    ),
}  # fmt: skip
# These are refused once the attribute is another one.
SET = {
    "to what it is": _of_own(does="own.count = 2."),
    "by a name that is made": _of_own(does="setattr(own, ''.join(['cou', 'nt']), 2.)"),
    "by a name in a text": _of_own(does="setattr(own, 'count', 2.)"),
    "by what sets under another name": _of_own(
        does="put(own, 'count', 2.)", around="put = object.__setattr__"
    ),
    "by a partial function": _of_own(
        does="put(2.)", around="import functools\nput = functools.partial(setattr, own, 'count')"
    ),
    "by a bound method": _of_own(does="put('count', 2.)", around="put = own.__setattr__"),
    "in a frozen object": """
import dataclasses
@dataclasses.dataclass(frozen=True)
class Own:
    rate: float = 1.
    count: object = None
    def reset(self): object.__setattr__(self, 'count', None)
own = Own()
def f(x, y):
    own.reset()
    return x * own.rate
---
object.__setattr__(own, 'count', 5.)
""",
    "by a method of a base class": """
class Own:
    def __setattr__(self, name, value):
        super().__setattr__('_' + name, value)
own = Own(); own.count = 0; vars(own)['rate'] = 1.
def f(x, y):
    own.count = 0
    return x * own.rate
---
vars(own)['_count'] = 1
""",
    "by C": """
class Own:
    __setattr__ = object.__setattr__
own = Own(); own.count = 0; own.rate = 1.
def f(x, y):
    own.count = 0
    return x * own.rate
---
own.count = 1
""",
    "by a property that keeps its value": """
import functools
class Own:
    @functools.cached_property
    def count(self): return 2.
own = Own(); own.rate = 1.; own.count
def f(x, y):
    return x * own.rate * own.count
---
own.rate = 2.
del own.count
""",
    "by code of Python's": """
from html.parser import HTMLParser
class Own(HTMLParser): pass
own = Own(); own.rate = 1.
def f(x, y):
    own.reset()
    return x * own.rate
---
own.lineno = 5
""",
}  # fmt: skip
LOOKED_UP = {
    "an attribute that the class makes up": """
class Own:
    def __getattr__(self, name): return 2.
own = Own(); own.count = 1
def f(x, y):
    return x * own.rate
---
del own.count; own.rate = 3.
""",
    "a lookup of its own": """
class Own:
    def __getattribute__(self, name):
        return object.__getattribute__(self, 'count' if name == 'anything' else name)
own = Own(); own.count = 1
def f(x, y):
    return x * own.anything
---
own.count = 2
""",
    "a lookup by C": """
class Own:
    __getattribute__ = object.__getattribute__
own = Own(); own.count = 1
def f(x, y):
    return x * own.count
---
own.count = 2
""",
    "a base class of a class of classes": """
class Base: pass
class Meta(Base, type): pass
class Own(metaclass=Meta):
    def rate(self): return 3.
base = Base(); base.count = 1; base.rate = 1.
own = Own()
def f(x, y):
    return x * Own.rate(own) * base.rate
---
base.count = 2
""",
    "objects of a class and of its subclass": """
class Base: pass
class Own(Base): pass
base = Base(); own = Own(); own.count = base.count = 1
def f(x, y):
    return x * own.count * base.count
---
own.count = 2
base.count = 3
""",
    "what an object that C shows is as text": """
import types
class Own(types.SimpleNamespace): pass
own = Own(count=1)
def f(x, y):
    return x * len(repr(own)) * (own == Own(count=1))
---
own.count = 22
own.count = 3
""",
    "an error as text": """
import traceback
class Own:
    @property
    def wrong(self): raise ValueError('no')
own = Own(); own.count = 2.; own.rate = 1.
def f(x, y):
    try:
        own.wrong
    except ValueError:
        text = traceback.format_exc()
    return x * own.rate * text.count('File')
---
own.count = 3.
""",
    "an error about what is not there": """
class Own: pass
own = Own(); own.count = 1
def f(x, y):
    try:
        return x * own.rate
    except AttributeError as error:
        return x * len(str(error)) * (error.obj is own)
---
own.count = 2
own.rate = 2.
""",
}
