"""Is it a rule: positive steps, nothing remembered but `metric.total`, and trajectories that do not know of each other?"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..common import check
from ..rules import Rule, as_rule
from ..solve.algorithm import iterate
from ..solve.run import minimize
from ..solve.state import State, load_state
from ._report import Report, show

TRIED_ITERATIONS = 20


def check_rule(rule: Any, *, seed: int = 0) -> Report:
    """Try a rule on random quadratic functions: its steps, blocks, trajectories, and whether runs can be continued.

    For those who write their own. It says what is wrong, and cannot prove that nothing is.

    Parameters
    ----------
    rule : Rule
        The rule.
    seed : int
        Of the functions.

    Returns
    -------
    Report
        True if nothing is wrong. Printed, it is one sentence per statement; `failures` are those about what is wrong.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from adagrad_diff import AdaGradDiff, Rule, check_rule
    >>> bool(check_rule(AdaGradDiff(eta=0.1)))
    True
    >>> @dataclass(frozen=True, eq=False)
    ... class Careless(Rule):
    ...     def update(self, metric, g, g_prev):
    ...         metric.total -= g**2
    >>> print(check_rule(Careless(eta=0.1)).failures[0])
    The sums metric.total must not become negative: after 1 gradients they are so.
    """
    report = Report(type(as_rule(rule)).__name__)
    if callable(rule.eta) and not report.look("Its schedule gives positive numbers.", lambda: _schedule(rule)):
        return report
    trial = RuleTrial(rule, np.random.default_rng(seed))
    if not report.look("The sums metric.total are finite and not negative.", trial.sums):
        return report
    report.look("update does not change the gradients it is given.", trial.update_leaves_gradients_alone)
    report.look("Steps are positive, and what they lead to is x - step * g.", trial.steps)
    report.look("It works with blocks of every kind.", trial.blocks)
    report.look("The same run gives the same answer twice.", trial.repeats)
    report.look("A run that is saved and continued goes on as if it had never stopped.", trial.resumes)
    report.look("Trajectories side by side are what each is alone.", trial.columns)
    report.look("select keeps the chosen trajectories, and all else.", trial.selects)
    report.look("A quadratic function goes down.", trial.goes_down)
    return report


class RuleTrial:
    """A rule and a quadratic function of a size that fits it. Each method returns what is wrong, or None."""

    def __init__(self, rule: Rule, rng: np.random.Generator):
        self.rule, self.rng = rule, rng
        self.shape = self._shape()
        self.etas = rule.eta if isinstance(rule.eta, np.ndarray) else None
        self.unit = float(np.min(rule.eta(1) if callable(rule.eta) else rule.eta))  # distances that suit the step size
        scale = np.ones(int(np.prod(self.shape))) if rule.scale is None else rule.scale.astype(np.float64)
        self.curvature = (10.0 ** rng.uniform(-1, 1, self.shape)) / scale.reshape(self.shape) ** 2
        self.target = self.unit * scale.reshape(self.shape) * (1.0 + 3.0 * rng.random(self.shape))

    def _shape(self) -> tuple[int, ...]:
        """Of x, as the scale and the blocks of the rule have it."""
        rule = self.rule
        if isinstance(rule.blocks, str) and rule.blocks == "row":
            return (3, 2) if rule.scale is None else (rule.scale.size, 1)
        if rule.blocks is not None and not isinstance(rule.blocks, str):
            return np.shape(rule.blocks)
        return (6,) if rule.scale is None else rule.scale.shape

    def loss(self, x: np.ndarray) -> tuple[Any, np.ndarray]:
        """sum(c (x - target)^2) / 2 for one x or several side by side."""
        extra = (1,) * (x.ndim - len(self.shape))
        away = x - self.target.reshape(*self.shape, *extra)
        slope = self.curvature.reshape(*self.shape, *extra) * away
        return 0.5 * np.sum(slope * away, axis=tuple(range(len(self.shape)))), slope

    def run(self, rule: Rule, iterations: int = TRIED_ITERATIONS, state: State | None = None) -> State:
        """The state after some iterations."""
        width = () if rule.trajectories is None else (rule.trajectories,)
        x0 = None if state is not None else np.zeros((*self.shape, *width))
        return next(islice(iterate(self.loss, x0, None, rule, state=state), iterations - 1, None)).copy()

    def gradients(self, width: tuple[int, ...] = ()) -> list[np.ndarray]:
        return [np.zeros((*self.shape, *width)), *(self.rng.standard_normal((*self.shape, *width)) for _ in range(5))]

    def sums(self) -> str | None:
        width = () if self.etas is None else (len(self.etas),)
        gradients = self.gradients(width)
        metric = self.rule.init(gradients[0], bool(width))
        for n in range(1, len(gradients)):
            self.rule.update(metric, gradients[n].copy(), gradients[n - 1].copy())
            for word, bad in (("NaN", np.isnan), ("infinite", np.isinf), ("negative", lambda total: total < 0)):
                if bad(metric.total).any():
                    return f"The sums metric.total must not become {word}: after {n} gradients they are so."
        return None

    def update_leaves_gradients_alone(self) -> str | None:
        width = () if self.etas is None else (len(self.etas),)
        before, after = self.gradients(width)[1:3]
        metric, g, g_prev = self.rule.init(after, bool(width)), after.copy(), before.copy()
        self.rule.update(metric, g, g_prev)
        for name, given, kept in (("g", g, after), ("g_prev", g_prev, before)):
            if not np.array_equal(given, kept):
                return f"The method update changes its argument {name}."
        return None

    def steps(self) -> str | None:
        width = () if self.etas is None else (len(self.etas),)
        flat = (int(np.prod(self.shape)), *width)
        g_prev, g = self.gradients(width)[:2]
        metric = self.rule.init(g, bool(width))
        self.rule.update(metric, g, g_prev)
        x, slope = self.rng.standard_normal(flat), g.reshape(flat)
        given, step, out = x.copy(), np.full(flat, np.nan), np.full(flat, np.nan)
        self.rule.forward(metric, np.ones(width, np.int64) if width else 1, given, slope.copy(), step, out)  # type: ignore[arg-type]
        if not np.array_equal(given, x):
            return "The method forward changes its argument x."
        if not (np.isfinite(step).all() and (step > 0).all()):
            return f"Every step must be positive and finite. The method forward makes them {show(step)}."
        if not np.allclose(out, x - step * slope, rtol=1e-9, atol=1e-9 * float(np.abs(out).max())):
            return "The method forward takes other steps than it says: out must be x - step * g."
        return None

    def blocks(self) -> str | None:
        size = int(np.prod(self.shape))
        for blocks in (None, "all", np.arange(size) // 2):
            for eta in (self.unit, np.array([self.unit, 2 * self.unit])):
                rule = replace(self.rule, eta=eta, blocks=blocks)
                try:
                    state = self.run(rule, 5)
                except Exception as error:
                    words, many = repr(blocks) if not isinstance(blocks, np.ndarray) else show(blocks), np.ndim(eta)
                    where = f"With blocks={words} and {'several eta' if many else 'one eta'}"
                    return f"{where} it raises {type(error).__name__}: {str(error).splitlines()[0]}."
                if not np.isfinite(state.x).all():
                    return f"With blocks={blocks!r} a run on a quadratic function is not finite."
        return None

    def repeats(self) -> str | None:
        first, second = self.run(self.rule), self.run(self.rule)
        return None if _same(first, second) else f"The same run gives different answers. {ON_MEMORY}"

    def resumes(self) -> str | None:
        whole, half = self.run(self.rule, 2 * TRIED_ITERATIONS), self.run(self.rule)
        with tempfile.TemporaryDirectory() as folder:
            half.save(Path(folder) / "state.npz")
            continued = self.run(self.rule, state=load_state(Path(folder) / "state.npz"))
        return None if _same(whole, continued) else f"A run that is saved and loaded goes on differently. {ON_MEMORY}"

    def columns(self) -> str | None:
        etas = np.array([self.unit, 3 * self.unit]) if self.etas is None else self.etas
        together = self.run(replace(self.rule, eta=etas))
        for k, eta in enumerate(etas):
            alone = self.run(replace(self.rule, eta=float(eta)))
            if not np.allclose(together.x[..., k], alone.x, rtol=1e-9, atol=1e-12 * float(np.abs(alone.x).max())):
                found = f"{show(together.x[..., k])}, and {show(alone.x)}"
                return f"Trajectories side by side differ from each alone: with eta = {eta:g} x is {found}."
        return None

    def selects(self) -> str | None:
        rule = self.rule if self.etas is not None else replace(self.rule, eta=np.array([self.unit, 2 * self.unit]))
        last = len(rule.eta) - 1  # type: ignore[arg-type]
        part = rule.select(np.array([last]))
        if type(part) is not type(rule) or part.trajectories != 1:
            return f"The method select must return a {type(rule).__name__} for the chosen trajectories. It returned {part!r}."
        together, alone = self.run(rule), self.run(part)
        if not np.allclose(together.x[..., last], alone.x[..., 0], rtol=1e-9, atol=1e-12 * float(np.abs(alone.x).max())):
            return "The method select must keep everything but the other eta: the chosen trajectory alone runs differently."
        return None

    def goes_down(self) -> str | None:
        rule = replace(self.rule, eta=self.unit) if self.etas is not None else self.rule
        start = float(self.loss(np.zeros(self.shape))[0])
        end = minimize(self.loss, np.zeros(self.shape), rule=rule, max_iter=200, on_failure="ignore").fun_best
        if not end < start:
            return f"A quadratic function does not go down: from {start:.6g} to {end:.6g} at best, in 200 steps."
        return None


def _schedule(rule: Any) -> None:
    """Raises if the first values of eta(n) are no step sizes."""
    for n in range(1, 2 * TRIED_ITERATIONS + 1):
        check.positive(rule.eta(n), f"eta({n})", type(rule).__name__)


ON_MEMORY = "Whatever a rule remembers must be in metric.total: only that is saved, and it starts from zero."


def _same(first: State, second: State) -> bool:
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in ("x", "g", "total", "f"))
