"""Proximal operators beside NumPy's soft-thresholding of the same array, and beside pyproximal's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from adagrad_diff import penalties as p

from ._timing import Row, optional, race

SIZES = [(1_000_000,), (10_000, 100)]  # one long vector; 100 trajectories
SOFT = "soft-threshold, NumPy"


def problem(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """z, and steps that differ between coordinates by up to a factor of 100.

    Whether glibc returns the memory of a temporary array to the system, which doubles the time of soft-thresholding,
    depends on the largest array that was freed before. One of almost 32 MB settles it: memory is kept.
    """
    np.empty(31 * 2**20, np.uint8)
    rng = np.random.default_rng(0)
    return rng.standard_normal(shape), 10 ** rng.uniform(-1, 1, shape)


def normal(d: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(d)


def soft(z: np.ndarray, step: Any) -> Callable[[], Any]:
    return lambda: np.sign(z) * np.maximum(np.abs(z) - step, 0)


def prox(penalty: p.Penalty, z: np.ndarray, step: Any) -> Callable[[], Any]:
    out = np.empty_like(z)
    return lambda: penalty.prox(z, step, out=out)


def rows(family: Callable[[int], dict[str, p.Penalty]], must: float) -> Iterator[Row]:
    """All members of a family in one race, for each of the sizes."""
    for shape in SIZES:
        z, step = problem(shape)
        calls = {name: prox(penalty, z, step) for name, penalty in family(shape[0]).items()}
        times = race(soft=soft(z, step), **calls)
        for name in calls:
            yield Row(
                f"{name}, {' x '.join(map(str, shape))}",
                times[name],
                SOFT,
                times["soft"],
                must=must,
            )


def separable() -> Iterator[Row]:
    """One pass over z and the steps."""
    yield from rows(
        lambda d: {
            "L1": p.L1(0.5),
            "L1, weighted": p.L1(np.linspace(0, 1, d)),
            "Ridge": p.Ridge(0.5),
            "ElasticNet": p.ElasticNet(0.5, 0.5),
            "Box": p.Box(-0.5, 1.0),
            "NonNegative": p.NonNegative(),
            "HuberPenalty": p.HuberPenalty(0.5, delta=1.0),
            "LInfBall": p.LInfBall(0.5),
        },
        must=1.0,
    )


def thresholds() -> Iterator[Row]:
    """One number has to be found first: a threshold or a multiplier."""
    yield from rows(
        lambda d: {
            "Simplex": p.Simplex(1.0),
            "L1Ball": p.L1Ball(0.01 * d),
            "LInf": p.LInf(0.1 * d),
            "HalfSpace": p.HalfSpace(normal(d), -3 * np.sqrt(d)),
            "Hyperplane": p.Hyperplane(normal(d), -3 * np.sqrt(d)),
            "BoxHyperplane": p.BoxHyperplane(-1.0, 1.0, normal(d), 0.1 * d),
        },
        must=8.0,
    )


def norms() -> Iterator[Row]:
    """A norm has to be found first: of all coordinates, or of each group of 10."""

    def family(d: int) -> dict[str, p.Penalty]:
        groups = np.arange(d) // 10
        mixed = np.random.default_rng(2).permutation(groups)
        return {
            "L2": p.L2(np.sqrt(d)),
            "L2Ball": p.L2Ball(0.5 * np.sqrt(d)),
            "GroupL2, neighbours": p.GroupL2(1.0, groups),
            "GroupL2, random groups": p.GroupL2(1.0, mixed),
            "SparseGroupL2, neighbours": p.SparseGroupL2(0.1, 1.0, groups),
            "SparseGroupL2, random groups": p.SparseGroupL2(0.1, 1.0, mixed),
        }

    yield from rows(family, must=8.0)


def chains() -> Iterator[Row]:
    """Neighbours are pooled."""
    yield from rows(
        lambda d: {
            "TotalVariation1D": p.TotalVariation1D(1.0),
            "FusedLasso": p.FusedLasso(0.1, 1.0),
            "Monotone": p.Monotone(),
        },
        must=15.0,
    )


def matrices() -> Iterator[Row]:
    """What costs more than a few passes: sorting, and linear algebra. There is no limit."""
    z, step = problem((100_000,))
    square, few = z[: 100 * 100], z[:10_000]
    A = normal(20 * few.size).reshape(20, -1)
    cases = {
        "SLOPE, 100000, scalar step": (p.SLOPE(np.linspace(1, 0, z.size)), z, 0.5),
        "Nuclear, matrix 100 x 100, scalar step": (p.Nuclear(5.0, (100, 100)), square, 1.0),
        "PSD, matrix 100 x 100, scalar step": (p.PSD(100), square, 1.0),
        "Affine, 20 equations, 10000": (p.Affine(A, np.ones(20)), few, step[: few.size]),
        "Affine, 20 equations, 10000, scalar step": (p.Affine(A, np.ones(20)), few, 1.0),
    }
    for name, (penalty, point, s) in cases.items():
        times = race(ours=prox(penalty, point, s), soft=soft(point, s))
        yield Row(name, times["ours"], SOFT, times["soft"])


def pyproximal() -> Iterator[Row]:
    """The operators that pyproximal has too. It takes one step for all coordinates, so both get one."""
    peer, d, step = optional("pyproximal"), SIZES[0][0], 0.5
    z, a = problem((d,))[0], normal(d)
    groups = np.arange(d) % (
        d // 10
    )  # pyproximal's groups are the columns of a matrix with 10 rows
    ours = {
        "L1": p.L1(0.5),
        "Box": p.Box(-0.5, 1.0),
        "Simplex": p.Simplex(1.0),
        "L1Ball": p.L1Ball(0.01 * d),
        "L2": p.L2(np.sqrt(d)),
        "L2Ball": p.L2Ball(0.5 * np.sqrt(d)),
        "GroupL2": p.GroupL2(1.0, groups),
        "SparseGroupL2": p.SparseGroupL2(0.1, 0.9, groups),
        "HalfSpace": p.HalfSpace(a, -3 * np.sqrt(d)),
        "TotalVariation1D": p.TotalVariation1D(1.0),
    }
    theirs = {} if peer is None else pyproximal_operators(peer, d, a)
    for name, penalty in ours.items():
        call = prox(penalty, z, step)
        if peer is None:
            yield Row(f"{name}, {d}, scalar step", race(ours=call)["ours"], "pyproximal", None)
            continue
        point = z.reshape(10, -1) if name == "SparseGroupL2" else z
        times = race(ours=call, theirs=partial(theirs[name].prox, point, step))
        yield Row(f"{name}, {d}, scalar step", times["ours"], "pyproximal", times["theirs"])


def pyproximal_operators(peer: Any, d: int, a: np.ndarray) -> dict[str, Any]:
    return {
        "L1": peer.L1(0.5),
        "Box": peer.Box(-0.5, 1.0),
        "Simplex": peer.Simplex(d, 1.0),
        "L1Ball": peer.L1Ball(d, 0.01 * d),
        "L2": peer.Euclidean(np.sqrt(d)),
        "L2Ball": peer.EuclideanBall(0.0, 0.5 * np.sqrt(d)),
        "GroupL2": peer.L21(10, 1.0),
        "SparseGroupL2": peer.L21_plus_L1(1.0, rho=0.1),
        "HalfSpace": peer.HalfSpace(a, -3 * np.sqrt(d)),
        "TotalVariation1D": peer.TV((d,), 1.0),  # iterative: 10 iterations by default
    }


CASES = [separable, thresholds, norms, chains, matrices, pyproximal]
