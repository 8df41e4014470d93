"""Shapes as types: `Rank0` to `Rank6`."""

from __future__ import annotations

from typing_extensions import TypeAliasType, TypeVar

_A = TypeVar("_A", bound=int)
_B = TypeVar("_B", bound=int)
_C = TypeVar("_C", bound=int)
_D = TypeVar("_D", bound=int)
_E = TypeVar("_E", bound=int)
_F = TypeVar("_F", bound=int)

Rank0 = TypeAliasType("Rank0", tuple[()])
Rank1 = TypeAliasType("Rank1", tuple[_A], type_params=(_A,))
Rank2 = TypeAliasType("Rank2", tuple[_A, _B], type_params=(_A, _B))
Rank3 = TypeAliasType("Rank3", tuple[_A, _B, _C], type_params=(_A, _B, _C))
Rank4 = TypeAliasType("Rank4", tuple[_A, _B, _C, _D], type_params=(_A, _B, _C, _D))
Rank5 = TypeAliasType("Rank5", tuple[_A, _B, _C, _D, _E], type_params=(_A, _B, _C, _D, _E))
Rank6 = TypeAliasType("Rank6", tuple[_A, _B, _C, _D, _E, _F], type_params=(_A, _B, _C, _D, _E, _F))
