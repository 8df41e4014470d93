"""`Embedding(..., sparse=True)`: its gradient is held as rows, and is that of any other table."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import Gradients, nn, optim
from tapetensor.errors import ArgumentTypeError, NumericalInstabilityError, TraceError
from tapetensor.tape.row_sparse import RowSparse

ROWS, WIDTH = 30, 3


def pair(**options: Any) -> tuple[Any, Any]:
    """Return a sparse table, and one of the same values that is not."""
    return table_of(sparse=True, **options), table_of(sparse=False, **options)


def table_of(**options: Any) -> Any:
    return nn.Embedding(ROWS, WIDTH, np.float64, rng=np.random.default_rng(0), **options)


def ids(*values: Any) -> Any:
    return tt.from_numpy(np.array(values, np.int64))


def loss_of(table: Any, read: Any) -> Any:
    return table.forward(read.trace()).square().sum()


def held(grads: Gradients, table: Any) -> Any:
    return grads.arrays[table.weight.id]


def check_same(sparse: Any, dense: Any, of: Any, *, is_sparse: bool = True) -> None:
    """Check that a loss of a table has one gradient, and in which form it is held."""
    mine, theirs = of(sparse).backward(wrt=sparse), of(dense).backward(wrt=dense)
    assert isinstance(held(mine, sparse), RowSparse) == is_sparse
    found, wanted = mine[sparse.weight].numpy(), theirs[dense.weight].numpy()
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    np.testing.assert_allclose(mine.global_norm(), theirs.global_norm(), rtol=1e-14)


@pytest.mark.parametrize(
    "read", [ids(4), tt.from_numpy(np.array(5)), ids(*[7] * 500, 0, 29), ids([[1], [2]]), ids()]
)
def test_the_gradient_is_that_of_a_table_that_is_not_sparse(read: Any) -> None:
    check_same(*pair(), lambda table: loss_of(table, read))


def test_a_row_of_padding_gets_no_gradient() -> None:
    sparse, dense = pair(padding_idx=2)
    check_same(sparse, dense, lambda table: loss_of(table, ids(2, 2, 5)))


def test_gradients_of_several_reads_are_added() -> None:
    def loss(table: Any) -> Any:
        total = loss_of(table, ids(1, 2))
        for step in range(20):
            total = total + loss_of(table, ids(step, 2)) * float(step)
        return total

    check_same(*pair(), loss)


def test_two_tables_that_are_read_at_the_same_ids_have_gradients_of_their_own() -> None:
    (one, other), read = (pair()[0], pair()[0]), ids(1, 1, 8)
    both = (one.forward(read.trace()) * other.forward(read.trace())).sum()
    grads = both.backward()
    wanted = np.zeros((ROWS, WIDTH))
    wanted[1], wanted[8] = 2 * other.weight.numpy()[1], other.weight.numpy()[8]
    np.testing.assert_array_equal(grads[one.weight].numpy(), wanted)
    np.testing.assert_array_equal(grads[other.weight].numpy(), wanted)


@pytest.mark.parametrize("is_read_first", [True, False])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_table_that_is_tied_to_a_dense_use_has_the_whole_gradient(
    is_read_first: bool, times: int
) -> None:
    def loss(table: Any) -> Any:
        read = [table.forward(ids(1, 4, 1).trace()) for _ in range(times)]
        whole = [(rows @ table.weight.transpose()).square().sum() for rows in read]
        parts = [loss_of(table, ids(3, 4)) for _ in range(times)]
        first, *others = parts + whole if is_read_first else whole + parts
        return sum(others, first)

    check_same(*pair(), loss, is_sparse=False)


def test_a_table_that_was_computed_hands_on_the_whole_gradient() -> None:
    sparse, dense = pair()
    factor: Any = tt.from_numpy(np.full((ROWS, WIDTH), 2.0))

    def gradient(table: Any) -> Any:
        x = factor.trace()
        weights = {"weight": x * table.weight}
        found = nn.functional_call(table, weights, ids(3, 3, 9).trace()).square().sum()
        return found.backward()[factor].numpy()

    np.testing.assert_array_equal(gradient(sparse), gradient(dense))


def test_a_table_that_is_given_as_a_traced_leaf_keeps_rows() -> None:
    sparse, _ = pair()
    weight, read = sparse.weight.detach(), ids(3, 3, 9).trace()
    found = nn.functional_call(sparse, {"weight": weight.trace()}, read).square().sum()
    grads = found.backward()
    assert isinstance(grads.arrays[weight.id], RowSparse)


def test_what_is_written_to_after_the_pass_does_not_change_the_gradient() -> None:
    sparse, _ = pair()
    positions, cotangent = np.array([1, 2]), np.ones((2, WIDTH))
    rows = sparse.forward(tt.from_numpy(positions).trace())
    grads = rows.backward(tt.from_numpy(cotangent), wrt=sparse)
    positions[:], cotangent[:] = 5, 7.0
    gradient = grads[sparse.weight].numpy()
    assert gradient[:, 0].nonzero()[0].tolist() == [1, 2]
    assert gradient.sum() == 2 * WIDTH


def test_stores_add_and_carry_rows() -> None:
    sparse, dense = pair()

    def carried(table: Any) -> Gradients:
        grads = Gradients()
        grads.retain_leafs([table.weight])
        for read in (ids(1, 2), ids(2, 3), ids(2)):
            grads = table.forward(read.trace(grads)).square().sum().backward(wrt=table)
        other = loss_of(table, ids(9, 1)).backward(wrt=table)
        grads.merge(other)
        return grads

    mine, theirs = carried(sparse), carried(dense)
    assert isinstance(held(mine, sparse), RowSparse)
    np.testing.assert_array_equal(mine[sparse.weight].numpy(), theirs[dense.weight].numpy())

    mine.insert(sparse.weight, np.ones((ROWS, WIDTH)))
    theirs.insert(dense.weight, np.ones((ROWS, WIDTH)))
    np.testing.assert_array_equal(mine[sparse.weight].numpy(), theirs[dense.weight].numpy())


def test_a_store_of_rows_is_clipped_copied_and_set_to_zero() -> None:
    sparse, dense = pair()
    mine = loss_of(sparse, ids(1, 2, 2)).backward(wrt=sparse)
    theirs = loss_of(dense, ids(1, 2, 2)).backward(wrt=dense)
    before = copy.copy(mine)
    for grads in (mine, theirs):
        grads.clip_by_global_norm(0.5)
        grads.clip_by_value(0.1)
    np.testing.assert_allclose(mine[sparse.weight].numpy(), theirs[dense.weight].numpy())
    assert before[sparse.weight].numpy().max() > 0.5
    mine.zero()
    assert isinstance(held(mine, sparse), RowSparse)
    assert not mine[sparse.weight].numpy().any()
    assert mine.global_norm() == 0.0
    removed = before.remove(sparse.weight)
    assert removed is not None
    assert removed.shape == (ROWS, WIDTH)
    assert len(before) == 0


def test_a_gradient_that_is_not_finite_is_found() -> None:
    sparse, _ = pair()
    infinite: Any = tt.from_numpy(np.array([[np.inf] * WIDTH]))
    loss = (sparse.forward(ids(4).trace()) * infinite).sum()
    with pytest.raises(NumericalInstabilityError, match="not finite"):
        loss.backward(wrt=sparse, check_finite=True)
    grads = (sparse.forward(ids(4).trace()) * infinite).sum().backward(wrt=sparse)
    with pytest.raises(NumericalInstabilityError, match="the norm of the gradients is inf"):
        grads.clip_by_global_norm(1.0)
    with pytest.raises(NumericalInstabilityError, match="gradient of weight is not finite"):
        optim.SparseAdam(sparse, check_finite=True).step(grads)


def test_a_checkpoint_keeps_rows_of_what_it_closes_over() -> None:
    check_same(
        *pair(),
        lambda table: tt.checkpoint(lambda x: table.forward(x).square().sum(), ids(3, 3).trace()),
    )


def test_a_checkpoint_hands_on_the_whole_gradient_of_an_input() -> None:
    sparse, dense = pair()

    def gradient(table: Any) -> Any:
        weight = (table.weight.trace() * 2.0).square()

        def run(w: Any) -> Any:
            return (
                nn.functional_call(table, {"weight": w}, ids(3, 3, 9).retaped(w.tape_type))
                .square()
                .sum()
            )

        return tt.checkpoint(run, weight).backward()[table.weight].numpy()

    np.testing.assert_array_equal(gradient(sparse), gradient(dense))


def test_derivatives_of_higher_order_are_those_of_any_table() -> None:
    sparse, dense = pair()

    def second(table: Any, at: Any) -> Any:
        def norm(scale: Any) -> Any:
            def inner(w: Any, s: Any) -> Any:
                read = ids(3, 3, 9).retaped(w.tape_type)
                rows = nn.functional_call(table, {"weight": w}, read)
                return (rows * s).square().sum()

            return tt.grad(inner, table.weight.trace(), scale)[0].square().sum()

        return tt.grad(norm, at).numpy()

    at: Any = tt.from_numpy(np.array(0.5))
    found = second(sparse, at)
    assert found
    np.testing.assert_array_equal(found, second(dense, at))


def test_a_gradient_of_a_gradient_flows_to_a_table_that_is_closed_over() -> None:
    def loss(table: Any) -> Any:
        def inner(x: Any) -> Any:
            rows = table.forward(ids(3, 3, 9).retaped(x.tape_type))
            return (rows.square() * x).square().sum()

        return tt.grad(inner, tt.ones((WIDTH,), np.float64).trace()).sum()

    check_same(*pair(), loss, is_sparse=False)


def test_what_is_compiled_computes_the_whole_gradient() -> None:
    sparse, dense = pair()

    def gradients(table: Any, read: Any) -> Any:
        return loss_of(table, read).backward(wrt=table)

    compiled, forward = tt.compile(gradients), tt.compile(loss_of)
    for read in (ids(1, 2, 2), ids(5, 5, 6)):
        wanted = gradients(dense, read)[dense.weight].numpy()
        for grads in (compiled(sparse, read), forward(sparse, read).backward(wrt=sparse)):
            np.testing.assert_allclose(grads[sparse.weight].numpy(), wanted, rtol=1e-14)
    with pytest.raises(TraceError, match="gradients of rows come in"):
        tt.compile(lambda grads: grads[sparse.weight])(gradients(sparse, ids(1)))


def test_the_option_is_a_flag_which_annotations_take() -> None:
    with pytest.raises(ArgumentTypeError, match="Embedding: sparse must be"):
        nn.Embedding(3, 2, rng=np.random.default_rng(0), sparse=1)  # type: ignore[call-overload]  # no flag

    class Words(nn.Module):
        table: nn.Embedding[Any, Any] = nn.options(
            num_embeddings=5, embedding_features=2, sparse=True
        )

    assert tt.build(Words, rng=np.random.default_rng(0)).table.sparse


def test_rows_say_what_they_are_and_refuse_functions_of_numpys() -> None:
    sparse, _ = pair()
    grads = loss_of(sparse, ids(1, 2)).backward(wrt=sparse)
    rows = held(grads, sparse)
    assert repr(rows) == "RowSparse(2 rows of shape (30, 3), dtype=float64)"
    with pytest.raises(TypeError):
        np.square(rows)
