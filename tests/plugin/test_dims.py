"""The algebra of dims agrees with arithmetic on the sizes that they stand for."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tapetensor.rules.dims import (
    ANY,
    INT,
    ONE,
    Atom,
    Size,
    cannot_be_equal,
    differ,
    product,
    stepped,
    total,
    unified,
    written,
)

ATOMS = [Atom(name, name) for name in "BCHT"]
TWO, HALF = Size.of(2), Size.of(Fraction(1, 2))
B, C, H, T = (Size.named(atom) for atom in ATOMS)

# A machine with much else to do is slow for a moment.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

dims = st.recursive(
    st.one_of(
        st.integers(0, 12).map(Size.of), st.sampled_from(ATOMS).map(Size.named), st.just(ONE)
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: pair[0] * pair[1]),
        st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
    ),
    max_leaves=6,
)
sizes = st.fixed_dictionaries({atom: st.integers(1, 9) for atom in ATOMS})


def value_of(dim: Size, values: dict[Atom, int]) -> Fraction:
    products = [
        factor * math.prod(values[one] for one in above) / math.prod(values[one] for one in below)
        for factor, above, below in dim.products
    ]
    return sum(products, Fraction(0))


@patient
@given(dims, dims, sizes)
def test_sums_and_products_are_those_of_the_sizes(
    lhs: Size, rhs: Size, values: dict[Atom, int]
) -> None:
    left, right = value_of(lhs, values), value_of(rhs, values)

    assert value_of(lhs + rhs, values) == left + right
    assert value_of(lhs * rhs, values) == left * right


@patient
@given(dims, dims, sizes)
def test_a_quotient_is_that_of_the_sizes(lhs: Size, rhs: Size, values: dict[Atom, int]) -> None:
    assume(rhs.literal != 0)
    quotient = lhs / rhs
    assume(quotient is not None)
    assert quotient is not None

    assert value_of(quotient, values) == value_of(lhs, values) / value_of(rhs, values)


@patient
@given(dims, st.integers(-6, 9), st.integers(1, 5), st.integers(0, 4))
def test_steps_are_those_of_the_sizes_where_these_are_multiples_of_the_step(
    size: Size, more: int, step: int, times: int
) -> None:
    found = stepped(size, Size.of(more), Size.of(step))
    values = dict.fromkeys(ATOMS, step * times)
    assume(isinstance(found, Size) and value_of(size, values) % step == 0)
    assert isinstance(found, Size)

    assert value_of(found, values) == (value_of(size, values) + more) // step


@patient
@given(dims, st.integers(0, 9), sizes)
def test_what_is_a_sum_is_never_negative(size: Size, number: int, values: dict[Atom, int]) -> None:
    if (size - Size.of(number)).is_sum:
        assert value_of(size, values) >= number


@patient
@given(dims, dims, sizes)
def test_equal_dims_have_equal_sizes(lhs: Size, rhs: Size, values: dict[Atom, int]) -> None:
    if lhs == rhs:
        assert hash(lhs) == hash(rhs)
        assert value_of(lhs, values) == value_of(rhs, values)


@patient
@given(dims, dims, sizes)
def test_dims_that_cannot_be_equal_never_are(lhs: Size, rhs: Size, values: dict[Atom, int]) -> None:
    if cannot_be_equal(lhs, rhs):
        assert value_of(lhs, values) != value_of(rhs, values)


@patient
@given(dims, dims, dims)
def test_equality_is_by_algebra_and_not_by_spelling(a: Size, b: Size, c: Size) -> None:
    assert a * b == b * a
    assert a + b == b + a
    assert (a * b) * c == a * (b * c)
    assert (a + b) * c == a * c + b * c
    assert a * ONE == a
    assert a + Size.of(0) == a


@patient
@given(st.lists(st.integers(0, 9), max_size=5))
def test_the_product_and_the_sum_of_literals_are_literal(values: list[int]) -> None:
    shape = [Size.of(value) for value in values]
    expected = 1
    for value in values:
        expected *= value

    assert product(shape) == Size.of(expected)
    assert total(shape) == Size.of(sum(values))


def test_a_quotient_multiplied_back_is_what_it_was() -> None:
    width = C / H
    assert width is not None

    assert B * T * H * width == B * T * C
    assert str(width) == "C / H"
    assert (C + C) / C == TWO
    assert (C + H) / (C + C + H + H) == HALF
    assert (C + H) / (C + T) is None


def test_names_differ_and_so_does_what_is_computed_from_them() -> None:
    assert differ(B, C)
    assert differ(B, Size.of(3))
    assert differ(B * Size.of(2), B * Size.of(3))
    assert differ(B * C, H)
    assert differ(B + ONE, C)
    assert not differ(B * C, C * B)
    assert not cannot_be_equal(B * C, H)
    assert not differ(ANY, C)
    assert not differ(INT, Size.of(3))


def test_an_open_dim_gives_way_to_a_known_one() -> None:
    assert unified(ANY, B) is B
    assert unified(B, ANY) is B
    assert unified(INT, ANY) is ANY
    assert product([B, ANY]) is ANY
    assert total([INT, B]) is ANY


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((), "()"),
        ((Size.of(3),), "(3,)"),
        ((Size.of(32), B, ANY, INT), "(32, B, ?, int)"),
        ((B * Size.of(6), H + T), "(6*B, H + T)"),
        ((B - H + ONE, ONE - H, H * HALF), "(B - H + 1, 1 - H, H / 2)"),
        ((Size.of(0),), "(0,)"),
        ((Size.named(Atom(1, "Batch")),), "(Batch,)"),
    ],
)
def test_a_shape_is_written_as_users_write_it(shape: tuple[Size, ...], text: str) -> None:
    assert written(shape) == text


@patient
@given(dims, sizes)
def test_a_dim_is_solved_for_the_one_name_that_makes_it_a_size(
    dim: Size, values: dict[Atom, int]
) -> None:
    for atom in dim.atoms:
        known = dim.substituted({one: Size.of(values[one]) for one in dim.atoms - {atom}})
        assert known is not None
        found = known.solved(atom, Size.of(value_of(dim, values)))

        assert found is None or found.literal == values[atom]


def test_a_dim_without_a_solution_is_not_solved() -> None:
    (b,) = B.atoms

    assert (B * TWO).solved(b, C) == C * HALF
    assert (B * B).solved(b, Size.of(9)) is None
    assert (B + C).solved(b, TWO) == TWO - C
    assert (B + Size.of(3)).solved(b, TWO) is None
    assert (B * (C + ONE)).solved(b, H) is None
    assert (C / B) is not None
    assert B.substituted({b: C + ONE}) == C + ONE
