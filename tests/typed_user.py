"""A user's script, for type checkers only: `tests/test_types.py` runs mypy --strict on it.

It touches what users touch: constructors, `minimize` with every kind of loss, results, rules and losses of one's own.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import adagrad_diff
from adagrad_diff import (
    L1,
    AdaGrad,
    AdaGradDiff,
    Box,
    Certificate,
    GroupL2,
    History,
    Huber,
    Interrupted,
    KernelSVMDual,
    LinearModel,
    Logistic,
    Loss,
    Minibatch,
    Multinomial,
    Penalty,
    Quadratic,
    Quantile,
    Rule,
    Squared,
    State,
    Status,
    duality_gap,
    iterate,
    load_state,
    minimize,
    named,
    scipy_method,
    sweep,
)
from adagrad_diff.linalg import Source
from adagrad_diff.rules import block_labels
from adagrad_diff.sklearn import (
    Lasso,
    LinearClassifier,
    LinearRegressor,
    LogisticRegression,
)

Vector = NDArray[np.float64]
A: Vector = np.eye(3)
b: Vector = np.ones(3)

losses: list[Loss] = [
    Huber(A, b, delta=0.5),
    KernelSVMDual(A, b, lam=1.0),
    Logistic(A, b, intercept=True, l2=0.1, sample_weight=[1.0, 1.0, 2.0]),
    Minibatch(Logistic(A, b), 1, seed=1, reduce=None),
    Multinomial(A, [0, 1, 2], classes=3),
    Quadratic(A, b),
    Quantile(A, b, tau=0.9),
]
rules: list[Rule] = [
    AdaGrad(0.1),
    AdaGrad(np.geomspace(0.1, 10.0, 3)),
    AdaGradDiff(eta=[0.1, 0.2], eps=1e-6),
    AdaGradDiff(lambda n: 1.0 / n, blocks="all", scale=b),
]
penalties: list[Penalty] = [L1(0.1), Box(0.0, 1.0), GroupL2(1.0, [0, 0, 1])]


def quadratic(x: Vector, target: float) -> tuple[float, Vector]:
    return float(0.5 * ((x - target) ** 2).sum()), x - target


class Bowl:
    def value_and_grad(self, x: Vector) -> tuple[float, Vector]:
        return quadratic(x, 0.0)

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        return quadratic(x, 1.0)


class LogCosh(LinearModel):
    smoothness = 1.0

    @staticmethod
    def scalar(z: float, b: float, theta: float) -> tuple[float, float]:
        return abs(z - b), 1.0


class Ones(Source):
    shape, cuts = (4, 2), (0, 2, 4)

    def block(self, k: int) -> NDArray[Any]:
        return np.ones((2, 2))


@dataclass(frozen=True, eq=False)
class Constant(Rule):
    def init(self, x: NDArray[Any], g: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {}

    def update(
        self, memory: dict[str, NDArray[Any]], n: Any, x: Any, g: Any
    ) -> tuple[dict[str, NDArray[Any]], Any, Any]:
        return memory, x - self.step_size(n) * g, self.step_size(n)


class Ball(Penalty):
    accepts = "scalar"

    def value(self, x: NDArray[Any]) -> Any:
        return 0.0

    def prox(self, z: NDArray[Any], step: Any, out: NDArray[Any] | None = None) -> NDArray[Any]:
        return z


for f in (
    partial(quadratic, target=1.0),
    lambda x: quadratic(x, 2.0),
    Bowl(),
    Bowl().value_and_grad,
    LogCosh(A, b),
):
    result = minimize(f, b, eta=0.1, max_iter=3)
    x: Vector = result.x
    fun: float = result.fun
    ended: bool = result.status == Status.MAX_ITER
    record: History = result.history
    state: State = result.state
    minimize(
        f,
        penalty=L1(0.1),
        rule=rules[0],
        state=state,
        callback=print,
        tol=1e-3,
        stop="gap",
        on_failure="ignore",
    )

value, gradient = losses[0].value_and_grad([1.0, 2.0, 3.0])
constant: float = Squared(A, b).lipschitz()
near: NDArray[Any] = penalties[0].prox(b, 0.5)
size: float = penalties[0].value(b)
steps: int = sum(int(s.n) for s in iterate(Squared(A, b), None, Ball(), Constant(0.1)))
certificate: Certificate = duality_gap(Squared(A, b), b, L1(0.1))
labels: NDArray[Any] | None = block_labels("all", (3,))
part: Rule = rules[1].select(np.array([0]))
again: State = load_state("state.npz")
again.save("state.npz")
version: str = adagrad_diff.__version__
method = scipy_method


def careful() -> None:
    try:
        minimize(losses[0])
    except Interrupted as error:
        print(error.result)


def estimators() -> None:
    lasso: Lasso = Lasso(alpha=0.1, fit_intercept=False).fit(A, b, sample_weight=None)
    predicted: NDArray[Any] = lasso.predict(A)
    for classifier in (LogisticRegression("l1", C=2.0), LinearClassifier(penalty=L1(1.0))):
        scores: NDArray[Any] = classifier.fit(A, b > 0).decision_function(A)
    print(predicted, scores, LinearRegressor(partial(Squared, l2=0.1)))


def sweeps() -> None:
    schedule = named("eta / n", lambda n: 0.1 / n)
    table = sweep(
        named("bowl", Bowl()),
        None,
        lambda eta: AdaGradDiff(schedule),
        [0.1],
        b,
        10,
        checkpoint="directory",
    )
    print(table.objective)
