"""The base of tensors: data, an id and a tape state, and methods that read them."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import TYPE_CHECKING, Any, Generic, Literal, Never, TypeAlias, overload

import numpy as np
from typing_extensions import TypeAliasType, TypeVar, override

from tapetensor.arrays.array import Array, read_only
from tapetensor.arrays.libraries import library_of, to_numpy
from tapetensor.arrays.stand_ins import CapturedArray, plain
from tapetensor.errors import ArgumentTypeError, DTypeError, UntracedTensorError, refusal
from tapetensor.rules.dims import sized
from tapetensor.rules.indexing import check_single, check_truth
from tapetensor.tape import NoneTape, OwnedTape
from tapetensor.tape.gaps import gradient_of_pass
from tapetensor.tape.history import OWN, History, TensorId, gap_step, next_id, size_of
from tapetensor.typing import D, F, R, S, T

if TYPE_CHECKING:
    from tapetensor.tensor.tensor import Tensor

One: TypeAlias = Literal[1]
_TensorT = TypeVar("_TensorT", bound="TensorBase[Any, Any, Any]")
# The dtype once more, covariant: mypy forgets the bound of a type variable in the type of `self`,
# so what an op asks of the dtype is said as a plain type in this place.
_Kind = TypeVar("_Kind", bound=np.generic, covariant=True, default=D)

# Beyond this many elements a repr is cut, as numpy's own.
_REPR_THRESHOLD = 200
# These read attributes that tensors have, too, and no elements.
_ASK_FOR_SHAPES = (np.shape, np.ndim, np.size)


class TensorBase(Generic[S, T, D, _Kind]):
    """The state of a tensor and the ways to read it."""

    # `_array`, `tape` and `history` are the package's. The array may be shared, so nobody writes to
    # it; the tape is None for a plain value; the history is the step that made it, None for none.
    __slots__ = ("__weakref__", "_array", "_id", "history", "tape")

    # numpy's operators then leave `array + tensor` to the tensor, which explains the mistake.
    __array_ufunc__ = None

    _array: Array
    _id: int
    history: History
    tape: OwnedTape | None

    def __init__(self, _not_callable: Never, /) -> None:
        raise ArgumentTypeError(
            "Tensor is not constructed directly; write tt.from_numpy(values, shape=...), "
            "tt.zeros((5, 3)) or another creation function"
        )

    @property
    def array(self) -> Array:
        """The elements as the library has them, read-only: a backward pass may read them again.

        Set, it takes the place of the elements. `numpy` gives an array that is typed.
        """
        data: Any = self._array
        return data.read_only() if isinstance(data, CapturedArray) else read_only(data)

    @array.setter
    def array(self, array: Array) -> None:
        self._array = array

    @property
    def id(self) -> TensorId:
        """The identity that gradients are filed under.

        The same for a tensor and its traced, split or retaped forms; every op makes a new one.
        """
        return TensorId(self._id)

    @property
    def shape(self) -> S:
        """The sizes of the axes, typed: ``rows, columns = x.shape`` gives typed dims back."""
        shape: S = self._array.shape
        return shape

    @property
    def dtype(self) -> np.dtype[D]:
        """The numpy dtype of the elements."""
        return self._array.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def owns_tape(self) -> bool:
        """Whether the tensor has a tape, by which a `forward` knows whether it trains.

        `nn.is_training` also knows a model that infers.
        """
        return self.tape is not None

    @property
    def tape_type(self) -> type[T]:
        """`OwnedTape` or `NoneTape`: ``y.retaped(x.tape_type)`` is in the state of ``x``."""
        return NoneTape if self.tape is None else OwnedTape  # type: ignore[return-value]  # T says which

    # A tensor with a tape has none of these, nor any other way to its numbers but that of one.
    @overload
    def numpy(self: TensorBase[S, NoneTape, D]) -> np.ndarray[S, np.dtype[D]]: ...
    @overload
    def numpy(self, write_detach_before_it: Never) -> np.ndarray[S, np.dtype[D]]: ...
    def numpy(self) -> np.ndarray[S, np.dtype[D]]:  # type: ignore[misc]  # one cannot be called
        """Return the elements as a read-only numpy array that shares the tensor's memory.

        It stays read-only, for numpy does not let its ``flags.writeable`` be set; ``copy()`` it to
        write. Of a tensor over another library's array (CuPy's), a copy in the memory of the host.

        Raises:
            UntracedTensorError: if the tensor has a tape, for what is computed from the array is a
                constant: write ``x.detach().numpy()``.

        >>> import tapetensor as tt
        >>> tt.arange(3).numpy()
        array([0, 1, 2])
        """
        if self.tape is not None:
            raise _no_numbers("numpy")
        data: Any = plain(self._array)
        if isinstance(data, CapturedArray):
            # Its elements are not known yet; what numpy's functions do to it is captured.
            captured: np.ndarray[S, np.dtype[D]] = data.read_only()
            return captured
        array: np.ndarray[S, np.dtype[D]] = read_only(to_numpy(data))
        return array

    # Checkers take the first for a tensor of a dtype that they do not know.
    @overload
    def item(self: _Single[Any, np.floating[Any]]) -> float: ...
    @overload
    def item(self: _Single[np.bool_, np.bool_]) -> bool: ...
    @overload
    def item(self: _Single[Any, np.integer[Any]]) -> int: ...
    @overload
    def item(self: _Single[Any, np.generic]) -> float: ...
    # Of every other shape: nobody has the argument, whose name is in the checkers' messages.
    @overload
    def item(self, shape_of_one_element: Never) -> float: ...
    def item(self) -> float:  # type: ignore[misc]  # the last overload cannot be called
        """Return the only element as a Python number.

        Raises:
            ShapeError: if there is not exactly one element.
        """
        return self._only_element("item")

    @overload
    def tolist(self: TensorBase[S, NoneTape, D]) -> Any: ...
    @overload
    def tolist(self, write_detach_before_it: Never) -> Any: ...
    def tolist(self) -> Any:  # type: ignore[misc]  # the last overload cannot be called
        """Return the elements as nested lists of Python numbers; of a 0-d tensor, its number.

        Raises:
            UntracedTensorError: if the tensor has a tape, as for `numpy`.

        >>> import tapetensor as tt
        >>> tt.ones((1, 2)).tolist()
        [[1.0, 1.0]]
        """
        if self.tape is not None:
            raise _no_numbers("tolist")
        values: Any = self
        return values.numpy().tolist()

    def _only_element(self, op: str) -> float:
        if self._array.size != 1:
            shape = sized(self._array.shape)
            raise refusal(lambda: check_single(op, shape))
        value: float = plain(self._array).item()
        return value

    def __float__(self) -> float:
        """Return the only element as a float."""
        return float(self._only_element("float"))

    def __int__(self) -> int:
        """Return the only element as an int."""
        return int(self._only_element("int"))

    def __bool__(self) -> bool:
        """Return the truth of the only element; a tensor of several has none."""
        if self._array.size != 1:
            shape = sized(self._array.shape)
            raise refusal(lambda: check_truth("bool", shape))
        return bool(plain(self._array))

    if TYPE_CHECKING:

        def _takes_part(self, shape: S, dtype: D, /) -> None:
            """Stand for shape and dtype in `Mask`; nobody calls it."""

    def __len__(self) -> int:
        """Return the size of the first axis."""
        if not self._array.shape:
            # A TypeError, as of numpy's: by it others tell what they can iterate over.
            raise ArgumentTypeError("len: a 0-d tensor has no length")
        length: int = self._array.shape[0]
        return length

    @override
    def __repr__(self) -> str:
        """Show values, shape, dtype and tape state, and the library if it is not numpy."""
        library = library_of(plain(self._array))
        where = "" if library == "numpy" else f", {library}"
        values = np.array2string(
            to_numpy(plain(self._array)),
            separator=", ",
            prefix="Tensor(",
            threshold=_REPR_THRESHOLD,
        )
        return (
            f"Tensor({values}, shape={self._array.shape}, dtype={self._array.dtype.name}, "
            f"{tape_state(self)}{where})"
        )

    @override
    def __format__(self, spec: str) -> str:
        """Return the only element by a number's format, or without one what `repr` shows.

        >>> import tapetensor as tt
        >>> f"{tt.full((), 2.5):.2f}"
        '2.50'

        Raises:
            ShapeError: if there is a format, and not exactly one element.
        """
        return format(self._only_element("format"), spec) if spec else repr(self)

    @override
    def __hash__(self) -> int:
        """Hash by object, since ``==`` compares element by element."""
        return object.__hash__(self)

    if not TYPE_CHECKING:
        # Hidden from type checkers, to which it would make a tensor one of numpy's array-likes, so
        # that `np.ones(3) + weight`, which no tape can see, would pass.
        def __array__(self, dtype=None, copy=None):
            """Return the elements of a plain tensor, read-only, for plots, metrics and tables."""
            elements = _elements_of("asarray", self)
            return np.array(elements, dtype) if copy else np.asarray(elements, dtype)

        def __array_function__(self, function, types, arguments, named):
            """Give a function of numpy's the elements of plain tensors, in place of their methods.

            Those have other arguments: ``np.mean(x)`` would call ``x.mean(dtype=..., out=...)``.
            """
            if function in _ASK_FOR_SHAPES:
                return function.__wrapped__(*arguments, **named)
            name = function.__name__
            return function(*_elements_of(name, arguments), **_elements_of(name, named))

        def __dlpack__(self, **options: Any):
            """Hand a copy of the elements of a plain tensor to another library.

            A copy, for some write into what is read-only, and a backward pass would read that.
            """
            if options.get("copy") is False:
                raise BufferError("a tensor's memory is its own; write copy=None, which copies it")
            return np.array(self).__dlpack__(**options)

        def __dlpack_device__(self):
            """Return where the elements are, in DLPack's numbers."""
            return np.asarray(self).__dlpack_device__()

    def __copy__(self: TensorBase[S, NoneTape, D]) -> Tensor[S, NoneTape, D]:
        """Return a plain tensor with the same data and a new id; a tape cannot be copied.

        A new id, because an optimizer's step would change one of the two and not the other.
        """
        _check_copyable("copy", self)
        return _copied(self, self._array)

    def __deepcopy__(self: TensorBase[S, NoneTape, D], memo: object) -> Tensor[S, NoneTape, D]:
        """Return a plain tensor with copied data and a new id; a tape cannot be copied."""
        _check_copyable("deepcopy", self)
        return _copied(self, self._array.copy())

    @override
    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the values; the id is this process's own, so the copy gets a new one."""
        _check_copyable("pickle", self)
        return _unpickled, (self.__class__, to_numpy(self._array))

    def wrap_gradient(self, array: Array, origins: tuple[Any, ...] = ()) -> Tensor[S, NoneTape, D]:
        """Return `array` as a plain tensor of this tensor's static shape and dtype.

        Args:
            array: the gradient.
            origins: the backward passes that it is of: to compute with it is no way back to what
                they came from.
        """
        gradient = rewrap(self, array, next_id(), None)
        if origins:
            gradient.history = gap_step(gradient._id, gradient_of_pass, origins, size_of(origins))
        return gradient


# The `self` of ops that are defined on floating dtypes only, and on numbers but not on bools.
FloatingBase = TypeAliasType(
    "FloatingBase", TensorBase[S, T, F, np.floating[Any]], type_params=(S, T, F)
)
NumberBase = TypeAliasType("NumberBase", TensorBase[S, T, R, np.number[Any]], type_params=(S, T, R))

# The `self` of `item`: its last axis may have size 1. A literal that is another number, or a name,
# fits in none of these; written out by rank, because mypy takes ``tuple[*Ds, int]`` for any shape.
_Single = TypeAliasType(
    "_Single",
    TensorBase[tuple[()], Any, D, _Kind]
    | TensorBase[tuple[One], Any, D, _Kind]
    | TensorBase[tuple[int], Any, D, _Kind]
    | TensorBase[tuple[Any, One], Any, D, _Kind]
    | TensorBase[tuple[Any, int], Any, D, _Kind]
    | TensorBase[tuple[Any, Any, One], Any, D, _Kind]
    | TensorBase[tuple[Any, Any, int], Any, D, _Kind]
    | TensorBase[tuple[Any, Any, Any, One], Any, D, _Kind]
    | TensorBase[tuple[Any, Any, Any, int], Any, D, _Kind]
    | TensorBase[tuple[Any, Any, Any, Any, One], Any, D, _Kind]
    | TensorBase[tuple[Any, Any, Any, Any, int], Any, D, _Kind]
    | TensorBase[tuple[Any, Any, Any, Any, Any, One], Any, D, _Kind]
    | TensorBase[tuple[Any, Any, Any, Any, Any, int], Any, D, _Kind],
    type_params=(D, _Kind),
)


def rewrap(
    like: TensorBase[Any, Any, Any], data: Array, unique_id: int, tape: OwnedTape | None
) -> Tensor[Any, Any, Any]:
    """Return a tensor of the class of `like` made of the three parts."""
    tensor: Any = wrap(like.__class__, data, unique_id, tape)
    result: Tensor[Any, Any, Any] = tensor
    return result


def wrap(cls: type[_TensorT], data: Array, unique_id: int, tape: OwnedTape | None) -> _TensorT:
    """Return a tensor made of its three parts, unchecked."""
    tensor = object.__new__(cls)
    tensor._array = data
    tensor._id = unique_id
    tensor.history = None
    tensor.tape = tape
    return tensor


def tape_state(tensor: TensorBase[Any, Any, Any]) -> str:
    """Return the tape state in words."""
    return "NoneTape" if tensor.tape is None else tensor.tape.described(tensor.history)


def check_usable(op: str, tensor: TensorBase[Any, Any, Any]) -> None:
    """Raise TapeClosedError if a context has closed the tape of `tensor`."""
    if tensor.tape is not None:
        tensor.tape.check_usable(op)


def _no_numbers(how: str) -> UntracedTensorError:
    return UntracedTensorError(
        f"{how}: the tensor has a tape, and what is computed from its numbers would be a constant, "
        f"unnoticed; write x.detach().{how}() for them, or use the tensor's own methods"
    )


def _elements_of(function: str, value: Any) -> Any:
    """Return arguments of a function of numpy's with read-only arrays for the plain tensors."""
    if isinstance(value, tuple | list):
        elements = [_elements_of(function, one) for one in value]
        return tuple(elements) if isinstance(value, tuple) else elements
    if isinstance(value, dict):
        return {name: _elements_of(function, one) for name, one in value.items()}
    if not isinstance(value, TensorBase):
        return value
    if value.tape is not None:
        raise UntracedTensorError(
            f"np.{function}: a function of numpy's would lose the tape of the tensor; "
            "use the tensor's own method, or write x.detach() for the plain values"
        )
    return value.numpy()


def _check_copyable(how: str, tensor: TensorBase[Any, Any, Any]) -> None:
    if tensor.tape is not None:
        raise UntracedTensorError(
            f"{how}: a tensor with a tape cannot be copied, for the copy would have another id; "
            "use the tensor itself, as often as you like, or x.detach() for the value"
        )


def _copied(tensor: TensorBase[Any, Any, Any], array: Array) -> Tensor[Any, Any, Any]:
    """Return a copy, which is a leaf of its own, but for one of a value that was computed."""
    copied = rewrap(tensor, array, next_id(), None)
    history = tensor.history
    if history is not None and history is not OWN:
        origins = (tensor._id, history)
        copied.history = gap_step(copied._id, copy, origins, size_of(origins))
    return copied


def _unpickled(cls: type[_TensorT], data: Array) -> _TensorT:
    return wrap(cls, data, next_id(), None)


def check_tensor(op: str, name: str, value: object) -> None:
    """Raise ArgumentTypeError if `value` is not a tensor."""
    if not isinstance(value, TensorBase):
        raise ArgumentTypeError(
            f"{op}: {name} must be a tensor, got {type(value).__name__}; "
            "wrap numpy arrays and lists with tt.from_numpy(...)"
        )


def plain_ids(tensors: Iterable[TensorBase[Any, Any, Any]]) -> list[int]:
    """Return the ids as the numbers that they are, which takes less time than to ask for each."""
    return [one._id for one in tensors]


def check_plain(op: str, name: str, tensor: TensorBase[Any, Any, Any], cure: str) -> None:
    """Raise an error if `tensor` is no tensor, or not a plain value."""
    check_tensor(op, name, tensor)
    if tensor.tape is not None:
        raise UntracedTensorError(
            f"{op}: {name} must be a plain value, got one with {tape_state(tensor)}; {cure}"
        )


def check_same_dtype(op: str, tensors: tuple[TensorBase[Any, Any, Any], ...]) -> None:
    """Raise DTypeError if the dtypes are not all the same."""
    first = tensors[0]._array.dtype
    if any(tensor._array.dtype != first for tensor in tensors):
        names = " and ".join([str(tensor._array.dtype) for tensor in tensors])
        raise DTypeError(
            f"{op}: dtypes differ: {names}; convert one with astype(...), nothing is promoted"
        )


def check_floating(op: str, tensor: TensorBase[Any, Any, Any]) -> None:
    """Raise DTypeError if `tensor` is not of a floating dtype."""
    if tensor._array.dtype.kind != "f":
        raise DTypeError(
            f"{op}: not defined for dtype {tensor._array.dtype}; "
            "convert first with x.astype(np.float32)"
        )


def check_integers(op: str, name: str, tensor: TensorBase[Any, Any, Any], cure: str = "") -> None:
    """Raise an error if `tensor` is no tensor, or not of an integer dtype."""
    check_tensor(op, name, tensor)
    if tensor._array.dtype.kind not in "iu":
        cure = cure or f"convert with {name}.astype(np.int64)"
        raise DTypeError(f"{op}: {name} must be integers, got {tensor._array.dtype}; {cure}")


def check_numeric(op: str, tensor: TensorBase[Any, Any, Any]) -> None:
    """Raise DTypeError if `tensor` is a bool tensor, with which numpy would do logic."""
    if tensor._array.dtype.kind == "b":
        raise DTypeError(
            f"{op}: not defined for dtype bool; convert first with x.astype(np.int64), "
            "or use & | ^ ~ for logic"
        )
