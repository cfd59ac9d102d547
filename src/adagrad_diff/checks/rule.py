"""Is it a rule: positive steps, nothing remembered but its memory, and trajectories that do not know of each other?"""

from __future__ import annotations

import tempfile
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..common import check
from ..rules import Memory, Rule, View, as_rule
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
    ...     def learn(self, memory, now):
    ...         memory.total -= now.g**2
    >>> print(check_rule(Careless(eta=0.1)).failures[0])
    What it remembers as memory.total must not become negative: after 1 gradients it is so.
    """
    report = Report(type(as_rule(rule)).__name__)
    if callable(rule.eta) and not report.look("Its schedule gives positive numbers.", lambda: _schedule(rule)):
        return report
    trial = RuleTrial(rule, np.random.default_rng(seed))
    if not report.look("What it remembers is finite, and a total is not negative.", trial.remembers):
        return report
    report.look("learn and move do not change what they are given.", trial.leaves_arguments_alone)
    report.look("Steps are positive, and moves are finite.", trial.steps)
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
        eta = rule.eta(1) if callable(rule.eta) else rule.eta
        self.unit = 1.0 if eta is None else float(np.min(eta))  # distances that suit the step size
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

    def run(
        self, rule: Rule, iterations: int = TRIED_ITERATIONS, state: State | None = None, width: tuple[int, ...] = ()
    ) -> State:
        """The state after some iterations."""
        width = width if rule.trajectories is None else (rule.trajectories,)
        x0 = None if state is not None else np.zeros((*self.shape, *width))
        return next(islice(iterate(self.loss, x0, None, rule, state=state), iterations - 1, None)).copy()

    def begun(self) -> tuple[Memory, View]:
        """The rule's memory and view at the first of some random gradients."""
        width = () if self.etas is None else (len(self.etas),)
        x = self.rng.standard_normal((*self.shape, *width))
        now = self.rule.view(x, bool(width))
        memory = Memory(self.rule.remember(x, bool(width), now.labels))
        now.x = now.x_prev = x.reshape(-1, *width)
        now.g, now.g_prev = self.rng.standard_normal(now.x.shape), np.zeros(now.x.shape)
        now.step, now.point = np.full(now.x.shape, np.nan), np.full(now.x.shape, np.nan)
        now.n, now.f = (np.ones(width, np.int64), np.ones(width)) if width else (1, 1.0)
        self.rule.begin(memory, now)
        self.rule.learn(memory, now)
        return memory, now

    def remembers(self) -> str | None:
        memory, now = self.begun()
        for n in range(1, 6):
            for name in self.rule.memory:
                array = getattr(memory, name)
                for word, bad in (("NaN", np.isnan), ("infinite", np.isinf), ("negative", lambda total: total < 0)):
                    if bad(array).any() and (name == "total" or word != "negative"):
                        return f"What it remembers as memory.{name} must not become {word}: after {n} gradients it is so."
            now.n, now.x_prev, now.g_prev = now.n + 1, now.x, now.g
            now.x, now.g = now.x + self.rng.standard_normal(now.x.shape), self.rng.standard_normal(now.x.shape)
            self.rule.learn(memory, now)
        return None

    def leaves_arguments_alone(self) -> str | None:
        memory, now = self.begun()
        now.x_prev, now.g_prev = self.rng.standard_normal((2, *now.x.shape))
        for method in ("move", "learn"):
            given = {name: getattr(now, name) for name in ("x", "g", "x_prev", "g_prev")}
            kept = {name: array.copy() for name, array in given.items()}
            getattr(self.rule, method)(memory, now)
            for name, array in given.items():
                if not np.array_equal(array, kept[name]):
                    return f"The method {method} changes now.{name}, which it should only read."
        return None

    def steps(self) -> str | None:
        memory, now = self.begun()
        self.rule.schedule(now)
        self.rule.move(memory, now)
        if not (np.isfinite(now.step).all() and (now.step > 0).all()):
            return f"Every step must be positive and finite. The method move makes them {show(now.step)}."
        if not np.isfinite(now.point).all():
            return f"The point that move leads to must be finite. It is {show(now.point)}."
        return None

    def with_(self, **parameters: Any) -> Rule:
        """The rule with other parameters, as far as it has them."""
        known = {field.name for field in fields(self.rule) if field.init}
        return replace(self.rule, **{name: value for name, value in parameters.items() if name in known})

    def blocks(self) -> str | None:
        size = int(np.prod(self.shape))
        for blocks in (None, "all", np.arange(size) // 2):
            for eta in (self.unit, np.array([self.unit, 2 * self.unit])):
                rule = self.with_(eta=eta, blocks=blocks)
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
        together = self.run(self.with_(eta=etas), width=(2,))
        for k, eta in enumerate(etas):
            alone = self.run(self.with_(eta=float(eta)))
            if not np.allclose(together.x[..., k], alone.x, rtol=1e-9, atol=1e-12 * float(np.abs(alone.x).max())):
                found = f"{show(together.x[..., k])}, and {show(alone.x)}"
                return f"Trajectories side by side differ from each alone: with eta = {eta:g} x is {found}."
        return None

    def selects(self) -> str | None:
        rule = self.rule if self.etas is not None else self.with_(eta=np.array([self.unit, 2 * self.unit]))
        if rule.trajectories is None:
            return None if rule.select(np.array([0])) is rule else "The method select must return the rule: it has no eta."
        last = rule.trajectories - 1
        part = rule.select(np.array([last]))
        if type(part) is not type(rule) or part.trajectories != 1:
            return f"The method select must return a {type(rule).__name__} for the chosen trajectories. It returned {part!r}."
        together, alone = self.run(rule), self.run(part)
        if not np.allclose(together.x[..., last], alone.x[..., 0], rtol=1e-9, atol=1e-12 * float(np.abs(alone.x).max())):
            return "The method select must keep everything but the other eta: the chosen trajectory alone runs differently."
        return None

    def goes_down(self) -> str | None:
        """Of some curvatures, one has to suit the step size: what that means is not the same for all rules."""
        rule, zero, curvature = (
            self.with_(eta=self.unit) if self.etas is not None else self.rule,
            np.zeros(self.shape),
            self.curvature,
        )
        for factor in (1.0, 1.0 / self.unit, 0.1 / self.unit):
            self.curvature = factor * curvature
            start = float(self.loss(zero)[0])
            end = minimize(self.loss, zero, rule=rule, max_iter=200, on_failure="ignore").fun_best
            if end < start:
                return None
        return f"A quadratic function does not go down: from {start:.6g} to {end:.6g} at best, in 200 steps."


def _schedule(rule: Any) -> None:
    """Raises if the first values of eta(n) are no step sizes."""
    for n in range(1, 2 * TRIED_ITERATIONS + 1):
        check.positive(rule.eta(n), f"eta({n})", type(rule).__name__)


ON_MEMORY = "Whatever a rule remembers must be named in its `memory`: only that is saved."


def _same(first: State, second: State) -> bool:
    same = all(np.array_equal(getattr(first, name), getattr(second, name)) for name in ("x", "g", "f"))
    return same and all(np.array_equal(array, second.memory[name]) for name, array in first.memory.items())
