"""Where files are written: names, permissions, and what is no file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tapetensor as tt
from tapetensor import io, nn, optim
from tapetensor.io.disk import write_atomically

posix_only = pytest.mark.skipif(os.name != "posix", reason="permissions and pipes of POSIX")


def layer(seed: int = 0) -> nn.Linear[int, int]:
    return nn.Linear(2, 3, rng=np.random.default_rng(seed))


@posix_only
def test_what_is_written_is_never_readable_by_more_than_the_file_that_it_replaces(
    tmp_path: Path,
) -> None:
    path, seen = tmp_path / "model.npz", []
    io.save(path, layer())
    path.chmod(0o600)

    def write(temporary: Path) -> None:
        temporary.write_bytes(b"secret")
        seen.append(temporary.stat().st_mode & 0o777)

    write_atomically(path, write)

    assert seen == [0o600]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes() == b"secret"


@posix_only
def test_a_new_file_has_the_permissions_that_new_files_have(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    io.save(tmp_path / "model.npz", layer())

    assert (tmp_path / "model.npz").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_name_may_be_as_long_as_names_can_be(tmp_path: Path) -> None:
    path, other = tmp_path / f"{'n' * 251}.npz", layer(1)
    io.save(path, layer())
    io.load(path, other)

    np.testing.assert_array_equal(other.weight.numpy(), layer().weight.numpy())


@posix_only
def test_a_pipe_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    os.mkfifo(path)
    for call in (io.save, io.load):
        with pytest.raises(OSError, match="it is a pipe or a device, and no file"):
            call(path, layer())

    assert path.is_fifo()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_state_of_an_optimizer_that_is_not_finite_is_refused(
    tmp_path: Path, value: float
) -> None:
    path, model = tmp_path / "run.npz", layer()
    optimizer = optim.Adam(model)
    optimizer.step(model.forward(tt.ones((1, 2)).trace()).sum().backward(wrt=model))
    arrays = io.state_dict(optimizer)
    name = next(one for one in arrays if arrays[one].ndim == 2)
    arrays[name] = np.full_like(arrays[name], value)
    before = {one: array.copy() for one, array in io.state_dict(optimizer).items()}
    with pytest.raises(tt.StateMismatchError, match=f"{name} must be finite"):
        io.load_state_dict(optimizer, arrays)

    for one, array in io.state_dict(optimizer).items():
        np.testing.assert_array_equal(array, before[one])
    assert not path.exists()
