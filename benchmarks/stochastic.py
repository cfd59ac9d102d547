"""Minibatches with reduced noise: passes over the data, and time, to a gap; which etas are good; what a step costs.

Logistic loss with L1 at 1 percent of the critical strength, no intercept, from zero. Ours is one recipe for all data, and has
nothing to tune: `minimize(Minibatch(loss, max(32, N // 2000)), penalty=...)`, eta="auto", without the finish. Its passes are
those over the data, which the trajectories of a race share. Beside it its best constant eta of 13, the same two with full
gradients, and peers as strong as they are: the fewest epochs of saga, the loosest tolerance of liblinear, the best of five
schedules of SGDClassifier.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from adagrad_diff import (
    L1,
    AdaGrad,
    AdaGradDiff,
    Logistic,
    Minibatch,
    Ridge,
    at_fraction,
    datasets,
    iterate,
    minimize,
)
from adagrad_diff.experiments.scores import decades

from ._contest import _quiet
from ._timing import Row, optional, race

DATA = Path(os.environ.get("DATA", "../shared/data"))
FILES = {"mushrooms": "mushrooms", "a9a": "a9a", "news20": "news20.bz2"}
SAMPLES = 1_000_000  # of the made set, which has 100 features: 800 MB
GAPS = (1e-3, 1e-6)
ETAS = np.geomspace(1e-4, 1e2, 13)
FINE = np.geomspace(1e-4, 1e2, 19)
STRENGTHS, PASSES = (
    (0.01, 0.1, 0.3),
    30,
)  # of the penalty, in units of the critical one, and where the gaps are looked at
ROUNDS, ITERATIONS, EPOCHS = 40, 64, 64  # as far as anybody goes: rounds are about 1.5 passes
SCHEDULES = (
    {"learning_rate": "optimal"},
    *({"learning_rate": "invscaling", "eta0": e, "power_t": 0.5} for e in (0.1, 1, 10, 100)),
)

Set = tuple[str, Any, np.ndarray, Logistic, Any, float]  # name, A, b, loss, penalty, optimum


def made(samples: int = SAMPLES, features: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """A logistic model with 20 true coefficients."""
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((samples, features)), np.zeros(features)
    w[rng.choice(features, 20, replace=False)] = rng.standard_normal(20)
    return A, np.where(rng.random(samples) < 1 / (1 + np.exp(-A @ w)), 1.0, -1.0)


def data(name: str, samples: int = SAMPLES) -> tuple[Any, np.ndarray] | None:
    """A and labels -1 and 1; None, if the file is not there."""
    if name == "made":
        return made(samples)
    if not (DATA / FILES[name]).exists():
        print(
            f"  ! There is no {DATA / FILES[name]}: {name} is left out. DATA=directory says where it is.",
            file=sys.stderr,
        )
        return None
    found = datasets.load(name, DATA)
    return found.A, np.where(
        found.b <= 10 if name == "news20" else found.b == found.b.max(), 1.0, -1.0
    )


def problem(name: str) -> Set | None:
    """That of the first table, with its optimum."""
    if (given := data(name)) is None:
        return None
    A, b = given
    loss = Logistic(A, b)
    penalty = at_fraction(loss, L1(1.0), 0.01)
    star = minimize(loss, penalty=penalty, tol=1e-10)
    assert star.success, star.message
    return name, A, b, loss, penalty, float(star.fun)


def batch_size(loss: Logistic) -> int:
    return max(32, loss.A.shape[0] // 2000)


def reached(history: Any, star: float, gap: float) -> tuple[int, float, int]:
    """Iterations and passes to a gap, and which trajectory is there first; infinitely many passes, if none is."""
    objective = np.asarray(history.objective).reshape(len(history.iteration), -1)
    there = np.nan_to_num(objective, nan=np.inf) <= star + gap * abs(star)
    if not there.any():
        return int(history.iteration[-1]), np.inf, 0
    first = int(np.argmax(there.any(axis=1)))
    return int(history.iteration[first]), float(history.passes[first]), int(np.argmax(there[first]))


def ours(
    loss: Any, penalty: Any, star: float, count: int
) -> Iterator[tuple[str, float, float, float]]:
    """(how, gap, passes, seconds) of the race and of the best constant eta, for a loss with or without minibatches."""
    options: dict[str, Any] = {"penalty": penalty, "finish": False, "on_failure": "ignore"}
    runs = {
        "auto": minimize(loss, max_iter=count, **options),
        "best eta": minimize(loss, eta=ETAS, max_iter=count, **options),
    }
    for how, run in runs.items():
        for gap in GAPS:
            n, passes, column = reached(run.history, star, gap)
            eta = {} if how == "auto" else {"eta": float(ETAS[column])}
            begin = perf_counter()
            if np.isfinite(passes):
                minimize(loss, max_iter=n, history=0, **eta, **options)
            title = f"eta {eta['eta']:.2g}" if eta and np.isfinite(passes) else how
            yield title, gap, passes, perf_counter() - begin


def sklearn_peers(A: Any, b: np.ndarray, lam: float) -> dict[str, Callable[[float], Any]]:
    """Estimators by what they are tuned with: epochs, or a tolerance."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier

    common: dict[str, Any] = {
        "C": 1 / (lam * A.shape[0]),
        "l1_ratio": 1.0,
        "fit_intercept": False,
        "random_state": 0,
    }

    def sgd(schedule: dict[str, Any]) -> Callable[[float], Any]:
        same: dict[str, Any] = {
            "alpha": lam,
            "penalty": "l1",
            "fit_intercept": False,
            "random_state": 0,
            "tol": None,
        }
        return lambda k: SGDClassifier("log_loss", max_iter=int(k), **same, **schedule).fit(A, b)

    peers: dict[str, Callable[[float], Any]] = {
        "saga": lambda k: LogisticRegression(solver="saga", max_iter=int(k), tol=0.0, **common).fit(
            A, b
        ),
        "liblinear": lambda tol: LogisticRegression(
            solver="liblinear", max_iter=1000, tol=tol, **common
        ).fit(A, b),
    }
    return peers | {f"SGDClassifier, {'/'.join(map(str, s.values()))}": sgd(s) for s in SCHEDULES}


def fewest(
    fit: Callable[[float], Any], good: Callable[[Any], bool], most: int, past: list[float]
) -> tuple[float, float]:
    """The fewest epochs that are good, each time from the beginning, and their seconds; infinite if there are none.

    The past has those of larger gaps, and then also these.
    """
    if np.isinf(past[-1]):
        return np.inf, np.inf
    low, seconds = int(past[-1]), np.inf
    high = max(2 * low, 1)

    def enough(k: int) -> bool:
        nonlocal seconds
        begin = perf_counter()
        model = _quiet(lambda: fit(k))
        took = perf_counter() - begin
        if found := good(model):
            seconds = took
        return found

    while not enough(high):
        low, high = high, 2 * high
        if low >= most:
            past.append(np.inf)
            return np.inf, np.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    past.append(high)
    return high, seconds


def rows_of(given: Set, verdict: list[bool]) -> Iterator[Row]:
    name, A, b, loss, penalty, star = given
    size = batch_size(loss)
    known = [
        (f"minibatches of {size}, {how}", gap, passes, seconds)
        for how, gap, passes, seconds in ours(Minibatch(loss, size), penalty, star, ROUNDS)
    ]
    known += [
        (f"full gradients, {how}", *rest) for how, *rest in ours(loss, penalty, star, ITERATIONS)
    ]
    peers = sklearn_peers(A, b, penalty.factor)
    past: dict[str, list[float]] = {key: [0.0] for key in peers}
    for gap in GAPS:
        mine = [(how, passes, seconds) for how, at, passes, seconds in known if at == gap]
        _, passes, seconds = mine[0]

        def good(model: Any, gap: float = gap) -> bool:
            x = np.ravel(model.coef_)
            return bool(
                loss.oracle(x)(x, np.empty_like(x)) + penalty.value(x) <= star + gap * abs(star)
            )

        title = f"{name}, {gap:.0e}"
        epochs, took = fewest(peers["saga"], good, EPOCHS, past["saga"])
        if gap == GAPS[0]:
            verdict.append(passes <= epochs)
        yield passes_row(f"{title}: passes of minibatches, auto", passes, "saga", epochs)
        if np.isfinite(took):
            yield Row("  seconds", seconds, "saga", took)
        for tolerance in 10.0 ** -np.arange(1, 10):
            begin = perf_counter()
            if good(_quiet(lambda: peers["liblinear"](tolerance))):
                yield Row(
                    "  seconds", seconds, f"liblinear, tol {tolerance:.0e}", perf_counter() - begin
                )
                break
        best = min(
            (*fewest(fit, good, 16, past[key]), key)
            for key, fit in peers.items()
            if key.startswith("SGD")
        )
        yield passes_row(
            "  passes",
            passes,
            best[2] if np.isfinite(best[0]) else "SGDClassifier, 5 schedules",
            best[0],
            16,
        )
        for how, others, seconds_others in mine[1:]:
            yield passes_row("  passes", passes, how, others)
            if np.isfinite(others):
                yield Row("  seconds", seconds, how, seconds_others)


def passes_row(name: str, passes: float, peer: str, theirs: float, most: int = EPOCHS) -> Row:
    return Row(
        name,
        passes,
        peer if np.isfinite(theirs) else f"{peer} (> {most})",
        min(theirs, most),
        unit="",
    )


def to_a_gap(names: tuple[str, ...] = ("mushrooms", "a9a", "news20", "made")) -> Iterator[Row]:
    if not optional("sklearn"):
        return
    verdict: list[bool] = []
    for name in names:
        if given := problem(name):
            yield from rows_of(given, verdict)
    yield Row(
        "sets where saga takes fewer passes to 1e-3",
        verdict.count(False),
        "may be",
        1,
        must=1,
        unit="",
    )


def ridge(names: tuple[str, ...] = ("mushrooms", "a9a")) -> Iterator[Row]:
    """The same with a ridge of 1e-4 in the place of L1, which sag needs."""
    if not optional("sklearn"):
        return
    from sklearn.linear_model import LogisticRegression

    for name in names:
        if not (given := data(name)):
            continue
        loss, penalty = Logistic(*given), Ridge(1e-4)
        star = float(minimize(loss, penalty=penalty, tol=1e-10).fun)
        run = minimize(
            Minibatch(loss, batch_size(loss)),
            penalty=penalty,
            finish=False,
            max_iter=ROUNDS,
            on_failure="ignore",
        )
        options: dict[str, Any] = {
            "C": 1 / (1e-4 * len(given[1])),
            "fit_intercept": False,
            "random_state": 0,
            "tol": 0.0,
        }
        past: dict[str, list[float]] = {"sag": [0.0], "saga": [0.0]}
        for gap in GAPS:
            passes = reached(run.history, star, gap)[1]

            def good(model: Any, gap: float = gap, loss: Any = loss, star: float = star) -> bool:
                x = np.ravel(model.coef_)
                return bool(
                    loss.oracle(x)(x, np.empty_like(x)) + 5e-5 * float(x @ x)
                    <= star + gap * abs(star)
                )

            for solver, before in past.items():
                epochs, _ = fewest(
                    lambda k: LogisticRegression(solver=solver, max_iter=int(k), **options).fit(
                        *given
                    ),
                    good,
                    EPOCHS,
                    before,
                )
                yield passes_row(
                    f"{name}, ridge, {gap:.0e}: passes of minibatches, auto",
                    min(passes, EPOCHS),
                    solver,
                    epochs,
                )


def good_etas(names: tuple[str, ...] = ("mushrooms", "a9a", "news20", "made")) -> Iterator[Row]:
    """Decades of etas with a gap within ten times the best one's, both metrics with the same batches and svrg.

    At three strengths of the penalty: the stronger it is, the larger are the gradients at the optimum, whose squares AdaGrad
    goes on adding up, and which differences do not see. The verdict is that at 30 percent of the critical strength.
    """
    wider = 0
    for name in names:
        if not (given := data(name, SAMPLES // 10)):
            continue
        loss = Logistic(*given)
        size = (
            batch_size(loss) if name != "news20" else 128
        )  # what sums squared gradients visits all coordinates in each step
        for strength in STRENGTHS:
            penalty = at_fraction(loss, L1(1.0), strength)
            star, found = (
                minimize(loss, penalty=penalty, tol=1e-10, on_failure="ignore").fun,
                list[float](),
            )
            for rule in (AdaGradDiff(FINE), AdaGrad(FINE)):
                run = minimize(
                    Minibatch(loss, size),
                    penalty=penalty,
                    rule=rule,
                    max_iter=22,
                    on_failure="ignore",
                )
                row = np.searchsorted(run.history.passes, PASSES, side="right") - 1
                gaps = np.nan_to_num(run.history.objective[row], nan=np.inf) / star - 1
                gaps = np.maximum(gaps, 1e-9)
                found.append(decades(FINE, gaps, 10 * gaps.min())[0])
            about = f"{name}, {100 * strength:.0f} percent of the critical strength: decades of good etas"
            yield Row(about, found[0], "AdaGrad's metric", max(found[1], 1e-9), unit="")
        wider += found[0] >= found[1] + 0.5
    yield Row(
        "sets that must be wider by half a decade",
        2,
        "are, at 30 percent",
        max(wider, 1e-9),
        must=1,
        unit="",
    )


def defaults() -> Iterator[Row]:
    """Estimators as they come, beside the same without their opening by minibatches."""
    from adagrad_diff.sklearn import LinearClassifier, LogisticRegression
    from adagrad_diff.solvers import auto

    models = [
        LogisticRegression(),
        LogisticRegression(penalty="l1"),
        LinearClassifier("logistic", "l1", alpha=1e-3),
        LinearClassifier("squared_hinge", "l1", alpha=1e-3),
    ]
    least = auto.WARM_UP_SAMPLES
    for name in ("a9a", "made"):
        if not (given := data(name)):
            continue
        for model in models:
            model.fit(*(part[:60_000] for part in given))  # so that kernels are there
            took: dict[int, float] = {}
            for samples in (least, 10**12) * (9 if name == "a9a" else 2):
                auto.WARM_UP_SAMPLES = samples
                begin = perf_counter()
                model.fit(*given)
                took[samples] = min(took.get(samples, np.inf), perf_counter() - begin)
            auto.WARM_UP_SAMPLES = least
            said = " ".join(repr(model).split())
            yield Row(f"{name}, {said}", took[least], "without the opening", took[10**12], must=1.1)


def cost_of_a_step() -> Iterator[Row]:
    """3200 nonzeros a batch, anywhere in d columns: a step costs them, and not d.

    A long round less a short one: what a round costs beside its steps, which does depend on d, is in both. With more columns
    the same nonzeros are further apart in memory. A full gradient, which does nothing but read them, shows what that costs.
    """
    rng, samples, each, size = np.random.default_rng(0), 50_000, 50, 64
    steps, plain = {}, {}
    for d in (10**4, 10**5, 10**6):
        columns = np.sort(rng.integers(0, d, (samples, each)), axis=1).astype(np.int32)
        parts = (
            rng.standard_normal(samples * each),
            columns.ravel(),
            np.arange(0, samples * each + 1, each),
        )
        loss = Logistic(
            sparse.csr_array(parts, shape=(samples, d)), np.sign(rng.standard_normal(samples))
        )
        penalty = at_fraction(loss, L1(1.0), 0.1)
        seeds = sorted(range(50), key=lambda seed: Minibatch(loss, size, seed).length(0))
        short, long = Minibatch(loss, size, seeds[5]), Minibatch(loss, size, seeds[-3])

        def one_round(loss: Any, d: int = d, penalty: Any = penalty) -> None:
            next(islice(iterate(loss, np.zeros(d), penalty, AdaGradDiff(0.01)), 1))

        oracle, x, g = loss.oracle(np.zeros(d)), np.zeros(d), np.zeros(d)
        took = race(
            phases=3,
            long=lambda: one_round(long),
            short=lambda: one_round(short),
            full=lambda: oracle(x, g),
        )
        steps[d] = (took["long"] - took["short"]) / (long.length(0) - short.length(0))
        plain[d] = took["full"] * size / samples
        yield Row(
            f"a step of {size * each} nonzeros, d = {d:.0e}",
            steps[d],
            "as much of a full gradient",
            plain[d],
        )
    grows, plainly = (times[10**6] / times[10**4] for times in (steps, plain))
    yield Row(
        "a step, d = 1e6 instead of 1e4: times as long",
        grows,
        "a full gradient",
        plainly,
        must=2,
        unit="",
    )


CASES = [to_a_gap, ridge, good_etas, defaults, cost_of_a_step]
