"""The modules and built-in functions that a compiled function may use.

A plan repeats the calculations of a function, and nothing else. So a function may use the names on
this list, each for the reason that stands beside it, and tensors, models, plain values and the
user's own functions, classes and objects, whose code is watched wherever it is installed. Any other
object may be passed on, and is refused when it is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Trusted(NamedTuple):
    """A module that computes and does nothing else, so that nobody watches what it does.

    Its names in `but` are refused all the same, and so are those that are not in `only`.
    """

    but: frozenset[str] = frozenset()
    only: frozenset[str] | None = None


MODULES: dict[str, Trusted] = {
    # Functions of their arguments. A cache of `functools` is compared, and an iterator of
    # `itertools` that was begun outside is refused.
    **dict.fromkeys(
        _names(
            "math cmath itertools bisect heapq string re textwrap "
            "numpy.linalg numpy.fft numpy.emath numpy.polynomial"
        ),
        Trusted(),
    ),
    # Containers and objects, which are walked, and words for types, which do nothing.
    **dict.fromkeys(
        _names(
            "collections copy enum abc collections.abc numbers __future__ numpy.dtypes "
            "numpy.exceptions numpy.typing"
        ),
        Trusted(),
    ),
    "functools": Trusted(but=_names("singledispatchmethod")),
    # Of these two nobody sees which names they look up.
    "operator": Trusted(but=_names("attrgetter methodcaller")),
    "_operator": Trusted(but=_names("attrgetter methodcaller")),
    # What it enters and leaves is watched; these change the process.
    "contextlib": Trusted(but=_names("chdir redirect_stdout redirect_stderr")),
    # This makes a class at every call.
    "dataclasses": Trusted(but=_names("make_dataclass")),
    # These make functions and modules of anything.
    "types": Trusted(
        but=_names("CodeType DynamicClassAttribute FunctionType LambdaType ModuleType new_class")
    ),
    "typing": Trusted(but=_names("get_type_hints")),
    "typing_extensions": Trusted(but=_names("get_type_hints")),
    # It computes, but for its files and its settings, which the next call may find otherwise.
    "numpy": Trusted(
        but=_names(
            "DataSource ctypeslib datetime64 timedelta64 f2py fromfile fromregex genfromtxt "
            "get_include get_printoptions "
            "getbufsize geterr geterrcall info load loadtxt lookfor ma matrix memmap nditer "
            "nested_iters open_memmap printoptions rec recarray save savetxt savez "
            "savez_compressed set_printoptions setbufsize seterr seterrcall show_config "
            "show_runtime test testing vectorize frompyfunc"
        ),
    ),
    "numpy.lib": Trusted(only=_names("NumpyVersion stride_tricks")),
    "numpy.lib.stride_tricks": Trusted(but=_names("as_strided")),
    # Generators that are seeded; the generator of all, behind its functions, is nobody's.
    "numpy.random": Trusted(
        only=_names(
            "BitGenerator Generator MT19937 PCG64 PCG64DXSM Philox SFC64 SeedSequence default_rng"
        ),
    ),
    # What it does with tensors is captured; these read and write files, time, or are the compiler.
    "tapetensor": Trusted(but=_names("compiler io native onnx pictures testing")),
}

# Built-in functions that a plan may leave to the first call: numbers of numbers, containers and
# iterators, strings, and what an object is and has, as far as its code names it. `print` shows a
# plain text once, when it is traced; a tensor has no values then.
BUILTINS: frozenset[str] = _names(
    "abs bool complex divmod float int max min pow round sum "
    "all any dict enumerate filter frozenset iter len list map next range reversed set slice "
    "sorted tuple zip aiter anext ascii bin bytes chr format hex oct ord repr str "
    "callable classmethod getattr hasattr hash isinstance issubclass object property "
    "staticmethod super type setattr delattr print Ellipsis False None NotImplemented True "
    "__debug__ __annotations__ __doc__ __file__ __name__ __package__ __qualname__ __module__"
)

# Attributes with two underscores that code may name: methods that Python calls by itself, and what
# classes and functions are called.
DUNDERS: frozenset[str] = _names(
    "__abs__ __add__ __and__ __array__ __array_function__ __array_priority__ __array_ufunc__ "
    "__bool__ __call__ __class__ __class_getitem__ __complex__ __contains__ __copy__ __deepcopy__ "
    "__delattr__ __delitem__ __divmod__ __doc__ __enter__ __eq__ __exit__ __float__ __floordiv__ "
    "__format__ __ge__ __getattr__ __getitem__ __gt__ __hash__ __iadd__ __iand__ __ifloordiv__ "
    "__ilshift__ __imatmul__ __imod__ __imul__ __index__ __init__ __init_subclass__ __int__ "
    "__invert__ __ior__ __ipow__ __irshift__ __isub__ __iter__ __itruediv__ __ixor__ __le__ "
    "__len__ __length_hint__ __lshift__ __lt__ __match_args__ __matmul__ __missing__ __mod__ "
    "__module__ __mul__ __name__ __ne__ __neg__ __new__ __next__ __or__ __pos__ __post_init__ "
    "__pow__ __qualname__ __radd__ __rand__ __rdivmod__ __repr__ __reversed__ __rfloordiv__ "
    "__rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __round__ __rpow__ __rrshift__ __rshift__ "
    "__rsub__ __rtruediv__ __rxor__ __notes__ __set_name__ __setattr__ __setitem__ __str__ __sub__ "
    "__truediv__ __trunc__ __xor__ __file__ __version__"
)  # fmt: skip

# Code that names one of these sets attributes in a way that the class of an object is not told of.
UNTOLD: frozenset[str] = _names("__setattr__ __delattr__")

# Classes of Python's own whose objects are what they hold: they are walked, as the user's are.
WALKED: frozenset[str] = _names(
    "argparse.Namespace collections.ChainMap collections.Counter collections.OrderedDict "
    "collections.UserDict collections.UserList collections.defaultdict collections.deque "
    "types.SimpleNamespace"
)
# Those whose objects nobody can change, so that one is as good as it was.
FIXED: frozenset[str] = _names(
    "builtins.NotImplementedType builtins.ellipsis builtins.method_descriptor "
    "builtins.classmethod_descriptor operator.itemgetter re.Pattern re.Match types.GenericAlias "
    "types.UnionType types.NotImplementedType types.EllipsisType numpy.ufunc "
    # They tell how many ranks there are, and refuse by themselves to send.
    "tapetensor.distributed.communicator.Communicator tapetensor.distributed.reducer.Reducer"
)

# What to write in the place of what is often met and not listed, by the module or the name.
CURES: dict[str, str] = {
    "time": "a clock tells something else at every call; read it outside, and pass the time",
    "datetime": "make dates outside, and pass them or what is computed of them",
    "random": (
        "it draws something else at every call; draw from an np.random.Generator that is an "
        "argument or an attribute"
    ),
    "numpy.random": (
        "the generator of all of numpy is nobody's; draw from an np.random.Generator that is an "
        "argument or an attribute"
    ),
    "logging": "a replay tells nothing; return what is to be told, and log it outside",
    "warnings": "a replay warns of nothing; return what there is to warn of, and warn outside",
    "threading": "in other threads nobody sees what runs; begin them outside",
    "os": "the next call may find it otherwise; read it outside, and pass what it gives",
    "sys": "the next call may find it otherwise; read it outside, and pass what it gives",
    "contextvars": "its value is another thread's or call's; read it outside, and pass that",
    "decimal": "its context decides how it rounds; compute it outside, and pass a float",
    "open": "a replay reads and writes no file; do so outside, and pass what it holds",
    "input": "a replay asks nobody; ask outside, and pass the answer",
    "id": "an address is another one at every call; compare with `is`",
    "globals": "nobody sees which names it looks up; write them out",
    "locals": "nobody sees which names it looks up; write them out",
    "vars": "nobody sees which names it looks up; write x.name, or getattr(x, name)",
    "dir": "nobody sees which names it looks up; write x.name, or getattr(x, name)",
    "eval": "nobody sees what it runs; write it out",
    "exec": "nobody sees what it runs; write it out",
    "__dict__": "nobody sees which names it looks up; write x.name, or getattr(x, name)",
    "attrgetter": "nobody sees which names it looks up; write lambda x: x.name",
    "methodcaller": "nobody sees which names it looks up; write lambda x: x.name()",
    "vectorize": "write it with functions of numpy that work on whole arrays",
}

CURE = "compute it outside, and pass what it gives"


def trusted_module(name: str, trusts: Iterable[str] = ()) -> Trusted | None:
    """Return the row of a module; None if neither the list has it, nor the user trusts it."""
    if any(name == one or name.startswith(f"{one}.") for one in trusts):
        return Trusted()
    known = MODULES.get(name)
    root = name.partition(".")[0]
    if known is None and root == "tapetensor":
        room = name.split(".")[1]
        return None if room in MODULES[root].but else Trusted()
    return known


def is_refused(row: Trusted, name: str) -> bool:
    """Tell whether a name of a module is refused."""
    return name in row.but or (row.only is not None and name not in row.only)


def cure_for(*words: str) -> str:
    """Return what to do about something, by the first of the words that is known."""
    return next((CURES[one] for one in words if one in CURES), CURE)
