"""Arrays that must not be written to, memory-mapped ones among them: neither copied nor a reason to compile anew."""

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import L1, LAD, kernels, minimize
from adagrad_diff.losses import Squared


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def mapped(array, folder):
    np.save(folder / "A.npy", array)
    return np.load(folder / "A.npy", mmap_mode="r")


@pytest.mark.parametrize("make", [lambda A, _: frozen(A), mapped], ids=["read-only", "memory-mapped"])
def test_no_copy_and_no_second_compilation(make, tmp_path):
    A = np.random.default_rng(0).standard_normal((50, 4))
    b, given = A[:, 0], make(A, tmp_path)
    dispatchers = [kernels.dense_pass(LAD.scalar), kernels.dense_pass_few(LAD.scalar), kernels.residuals(LAD.scalar)]
    dispatchers += [kernels.add_dense_dot, kernels.add_dense_tdot]

    def run(M):
        options = {"penalty": L1(0.01), "max_iter": 20, "on_failure": "ignore"}
        several = [minimize(LAD(M, b), eta=np.logspace(-2, 1, number), **options).x for number in (2, 12)]
        return [*several, *(minimize(LAD(M, b), eta=eta, stop="gap", tol=1e-9, **options).x for eta in (0.1, "auto"))]

    wanted, compiled = run(A), [len(dispatcher.signatures) for dispatcher in dispatchers]
    found = run(given)
    assert [len(dispatcher.signatures) for dispatcher in dispatchers] == compiled
    assert all(np.array_equal(one, other) for one, other in zip(found, wanted, strict=True))
    loss = LAD(given, b)
    assert np.shares_memory(loss.A.array, given)
    assert not loss.A.array.flags.writeable
    assert not given.flags.writeable


def test_sparse_arrays_too():
    A = sparse.csr_array(np.random.default_rng(0).standard_normal((50, 4)))
    x = np.ones(4)
    wanted, compiled = Squared(A, np.zeros(50)).value_and_grad(x), len(kernels.add_rows_dot.signatures)
    for part in (A.data, A.indices, A.indptr):
        part.flags.writeable = False
    found = Squared(A, np.zeros(50)).value_and_grad(x)
    assert len(kernels.add_rows_dot.signatures) == compiled
    assert found[0] == wanted[0]
    assert np.array_equal(found[1], wanted[1])


def odd(array):
    """The same numbers, one byte further on."""
    memory = np.empty(array.nbytes + 1, np.uint8)[1:]
    found = np.ndarray(array.shape, array.dtype, memory.data)
    found[...] = array
    assert not found.flags.aligned
    return found


@pytest.mark.parametrize("trajectories", [1, 3, 12])
def test_numbers_at_odd_places(trajectories):
    """As they may be after they came over a network: the same bits, by the same kernels."""
    A, b = np.random.default_rng(0).standard_normal((50, 6)), np.zeros(50)
    x, rows = np.ones((6, trajectories)) * np.arange(1.0, trajectories + 1), sparse.csr_array(A)
    strange = sparse.csr_array(A)
    strange.data, strange.indices, strange.indptr = map(odd, (rows.data, rows.indices, rows.indptr))
    for given, usual in ((odd(A), A), (strange, rows)):
        (f, g), (f2, g2) = (LAD(M, b).value_and_grad(x) for M in (given, usual))
        assert np.array_equal(f, f2)
        assert np.array_equal(g, g2)
