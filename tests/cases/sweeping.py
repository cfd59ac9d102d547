"""Problems for the tests of sweeps, and what a sweep is compared with."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from adagrad_diff import (
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    Box,
    GroupL2,
    Hinge,
    Logistic,
    Multinomial,
    Rule,
    Squared,
    minimize,
    named,
)
from user_losses import Bowl, data

A, REAL, LABELS, CLASSES = data()
HALF = A * (A > 0)
ETAS = [0.3, 0.02]


def operator(array):
    functions = {
        "matvec": lambda v: array @ v,
        "rmatvec": lambda v: array.T @ v,
        "matmat": lambda v: array @ v,
        "rmatmat": lambda v: array.T @ v,
    }
    return named(
        "products with an array", LinearOperator(array.shape, **functions, dtype=array.dtype)
    )


def one_block(eta):
    return AdaGradDiff(eta, blocks="all")


def scaled(eta):
    return AdaGrad(eta, scale=np.linspace(0.5, 2.0, 6))


def schedule(eta):
    return AdaGradDiff(named("eta / sqrt(n)", lambda n: eta / np.sqrt(n)))


@dataclass(frozen=True, eq=False)
class Mine(Rule):
    power: float = 1.5

    def init(self, x, g):
        return {"total": np.zeros_like(g)}

    def update(self, memory, n, x, g):
        total = memory["total"] + np.abs(g) ** self.power
        step = self.step_size(n) / (self.eps + np.sqrt(total))
        return {"total": total}, x - step * g, step


def only_numbers(eta):
    """As somebody would write it who thinks of one eta at a time."""
    return AdaGradDiff(float(eta), eps=1e-3 * float(eta)) if eta < 0.2 else AdaGrad(float(eta))


def starts(loss, count=2, seed=3):
    shape = getattr(loss, "shape", (6,))
    return np.random.default_rng(seed).standard_normal((*shape, count))


def assert_single_runs(result, loss, penalty, rules, x0s, rtol=1e-12):
    """Every trajectory of the sweep is what `minimize` finds alone."""
    n_iter = int(result.iteration[-1])
    for name, make in rules.items():
        for eta in result.eta.values:
            for seed in range(x0s.shape[-1]):
                where = {"rule": name, "eta": eta, "seed": seed}
                one = result.sel(where)
                x0 = np.ascontiguousarray(x0s[..., seed])
                alone = minimize(
                    loss, x0, penalty, make(float(eta)), max_iter=n_iter, on_failure="ignore"
                )
                assert int(one.status) == alone.status, where
                assert int(one.nit) == alone.nit, where
                rows = np.full((2, n_iter), np.nan)
                rows[:, : len(alone.history.objective)] = (
                    alone.history.objective,
                    alone.history.mean_step,
                )
                rows = rows[:, result.iteration.values - 1]
                size = np.abs(alone.history.objective).max(initial=0.0)
                np.testing.assert_allclose(
                    one.objective, rows[0], rtol=rtol, atol=rtol * size, err_msg=f"{where}"
                )
                np.testing.assert_allclose(one.mean_step, rows[1], rtol=rtol, err_msg=f"{where}")
                np.testing.assert_allclose(
                    one.objective_best, alone.fun_best, rtol=rtol, atol=rtol * size
                )
                first = minimize(
                    loss, x0, penalty, make(float(eta)), max_iter=0, on_failure="ignore"
                ).fun
                np.testing.assert_allclose(one.objective_start, first, rtol=rtol)
                if "x" in one:
                    np.testing.assert_allclose(
                        one.x, alone.x, rtol=rtol, atol=rtol * np.abs(alone.x).max()
                    )
                    assert one.x.dtype == alone.x.dtype


def assert_same(one, other, rtol=0.0):
    assert list(one.variables) == list(other.variables)
    for name in one.variables:
        left, right = one[name], other[name]
        assert (left.dims, left.dtype, left.shape) == (right.dims, right.dtype, right.shape)
        if left.dtype.kind == "U" or rtol == 0.0:
            assert left.values.tobytes() == right.values.tobytes(), name
        else:
            size = (
                np.nanmax(np.abs(right.values), initial=0.0)
                if name in ("x", "objective", "objective_best")
                else 0.0
            )
            np.testing.assert_allclose(left, right, rtol=rtol, atol=rtol * size, err_msg=name)
    assert one.attrs == other.attrs


RULES = {
    "Diff": AdaGradDiff,
    "AdaGrad": AdaGrad,
    "one block": one_block,
    "scale": scaled,
    "schedule": schedule,
}
PLAIN = {"Diff": AdaGradDiff, "AdaGrad": AdaGrad, "schedule": schedule}
PROBLEMS = {
    "LAD, L1": lambda: (LAD(A, REAL), L1(0.02), RULES),
    "Hinge, box, intercept": lambda: (Hinge(A, LABELS, intercept=True), Box(-0.2, 0.3), PLAIN),
    "Squared, operator, ridge inside": lambda: (Squared(operator(A), REAL, l2=0.3), None, RULES),
    "Logistic, CSR": lambda: (Logistic(sparse.csr_array(HALF), LABELS), L1(0.02), RULES),
    "Logistic, groups": lambda: (
        Logistic(A, LABELS),
        GroupL2(0.05, [0, 0, 1, 1, 2, 2]),
        {"one block": one_block},
    ),
    "Multinomial": lambda: (Multinomial(A, CLASSES, intercept=True), L1(0.01), PLAIN),
    "a function": lambda: (Bowl(np.linspace(0.5, 3.0, 6)), L1(0.1), RULES),
    "rules of a number": lambda: (
        LAD(A, REAL),
        L1(0.02),
        {"mixed": only_numbers, "fixed": lambda eta: AdaGrad(0.2)},
    ),
    "rules of a user": lambda: (
        LAD(A, REAL),
        None,
        {"Mine": Mine, "by eta": lambda eta: Mine(2 * eta, power=1 + eta)},
    ),
}
