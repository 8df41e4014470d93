from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

_T = TypeVar("_T")

class tqdm(Generic[_T]):
    def __init__(
        self,
        iterable: Iterable[_T],
        *,
        desc: str = ...,
        unit: str = ...,
        disable: bool | None = ...,
    ) -> None: ...
    def __iter__(self) -> Iterator[_T]: ...
    def set_postfix_str(self, s: str) -> None: ...
