"""Group norms: groups of any order, size and weight, in tiles and threads; and the norm of one group."""

import numpy as np
import pytest

from adagrad_diff.penalties import L1
from adagrad_diff.penalties.group_l2 import GroupL2
from adagrad_diff.penalties.l2 import L2
from adagrad_diff.penalties.l2_ball import L2Ball
from adagrad_diff.penalties.sparse_group_l2 import SparseGroupL2
from looping import looped


def test_groups_of_any_order():
    rng = np.random.default_rng(10)
    groups, z, step = rng.integers(-9, 9, 40) * 3, rng.standard_normal(40), 10.0 ** rng.uniform(-2, 1, 40)
    weights, order = rng.uniform(0.5, 2.0, np.unique(groups).size), np.argsort(groups, kind="stable")
    x = GroupL2(0.5, groups, weights).prox(z, step)
    np.testing.assert_array_equal(x[order], GroupL2(0.5, groups[order], weights).prox(z[order], step[order]))
    for name, weight in zip(np.unique(groups), weights, strict=True):
        mine = groups == name
        np.testing.assert_allclose(x[mine], L2(0.5 * weight).prox(z[mine], step[mine]), rtol=1e-13)
    assert 0 < np.count_nonzero(x == 0) < 40


def test_groups_of_one_and_of_all():
    rng = np.random.default_rng(11)
    z, step = rng.standard_normal((20, 3)), 10.0 ** rng.uniform(-2, 1, (20, 3))
    np.testing.assert_allclose(GroupL2(0.5, np.arange(20)).prox(z, step), L1(0.5).prox(z, step), rtol=1e-15)
    np.testing.assert_allclose(GroupL2(0.5, np.zeros(20, int)).prox(z, step), L2(0.5).prox(z, step), rtol=1e-14)
    np.testing.assert_array_equal(SparseGroupL2(0.5, 0.0, np.zeros(20, int)).prox(z, step), L1(0.5).prox(z, step))
    np.testing.assert_allclose(SparseGroupL2(0.0, 0.5, np.zeros(20, int)).prox(z, step), L2(0.5).prox(z, step), rtol=1e-14)


@looped("B", [None, 1, 3, 130, 300])
@pytest.mark.parametrize("largest", [2, 9, 256, 257])
def test_groups_of_all_sizes_in_tiles_and_threads(largest, B):
    """More groups than a tile, of different sizes, in any order; many trajectories take more than one thread."""
    rng = np.random.default_rng(largest)
    labels = rng.permutation(np.concatenate([np.full(largest, 7), rng.integers(10, 180, 300)]))
    shape = labels.size if B is None else (labels.size, B)
    z, step = rng.standard_normal(shape), 10.0 ** rng.uniform(-3, 1, shape)
    penalty = SparseGroupL2(0.1, 0.7, labels)
    soft = np.sign(z) * np.maximum(np.abs(z) - 0.1 * step, 0.0)
    expected = np.empty_like(z)
    for label in np.unique(labels):
        expected[labels == label] = L2(0.7).prox(soft[labels == label], step[labels == label])
    np.testing.assert_allclose(penalty.prox(z, step), expected, rtol=1e-12, atol=1e-14)
    target = z.copy()
    penalty.prox(target, step, out=target)
    np.testing.assert_allclose(target, expected, rtol=1e-12, atol=1e-14)


def test_a_group_of_weight_zero_is_not_penalised():
    penalty = GroupL2(2.0, [3, 8, 3, 8], weights=[1.0, 0.0])
    z = np.array([0.1, -5.0, 0.1, 1e-12])
    np.testing.assert_array_equal(penalty.prox(z, [1.0, 2.0, 3.0, 4.0]), [0.0, -5.0, 0.0, 1e-12])
    assert penalty.value(z) == pytest.approx(2.0 * np.hypot(0.1, 0.1))
    assert penalty.polar(z) == np.inf
    assert penalty.polar(z * [1, 0, 1, 0]) == pytest.approx(np.hypot(0.1, 0.1) / 2)


def test_the_edge_of_a_group():
    """Just where the whole group becomes zero, with steps that differ within it."""
    z, step = np.array([3.0, 4.0]), np.array([1.0, 2.0])
    lam = np.sqrt(9.0 + 4.0)  # norm(z / step)
    np.testing.assert_array_equal(L2(lam * (1 + 1e-15)).prox(z, step), 0.0)
    x = L2(lam * (1 - 1e-9)).prox(z, step)
    np.testing.assert_allclose(x / np.linalg.norm(x), z / step / lam, rtol=1e-8)
    assert 0 < np.linalg.norm(x) < 1e-7


def test_long_vectors_start_from_a_sample():
    """A sample that says nothing about the rest, in either direction."""
    rng, d = np.random.default_rng(12), 5000
    for quiet in (slice(None, None, 32), slice(1, None, 2)):
        z, step = rng.standard_normal(d), 10.0 ** rng.uniform(-8, 9, d)
        z[quiet] *= 1e-9
        for lam in (1e-3, 1.0, 1e3):
            x, h = L2(lam).prox(z, step), np.linalg.norm(L2(lam).prox(z, step))
            np.testing.assert_allclose(x + step * lam * x / h, z, rtol=1e-12)
            x = L2Ball(lam / 30).prox(z, step)
            assert np.linalg.norm(x) == pytest.approx(min(lam / 30, np.linalg.norm(z)), rel=1e-12)
    assert not L2(1.0).prox(np.where(np.arange(d) % 32, 0.0, 0.9 / np.sqrt(d / 32)), rng.uniform(1.0, 1.1, d)).any()
