"""Is it a rule: positive steps, nothing remembered but its memory, and trajectories that do not know of each other?"""

from __future__ import annotations

import tempfile
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .. import _check
from ..rules import Rule
from ..solvers.minimize import as_solver, iterate, minimize
from ..solvers.proximal_gradient import ProximalGradient
from ..solvers.state import State, load_state
from ._report import Report, show

TRIED_ITERATIONS = 20
Memory = dict[str, Any]


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
    ...     def init(self, x, g):
    ...         return {"total": 0.0 * g}
    ...     def update(self, memory, n, x, g):
    ...         return {"total": memory["total"] - g**2}, x - 0.1 * g, 0.1
    >>> print(check_rule(Careless(eta=0.1)).failures[0])
    What it remembers as "total" must not become negative: after 1 gradients it is so.
    """
    solver = as_solver(rule)
    report = Report(solver.name)
    if callable(rule.eta) and not report.look(
        "Its schedule gives positive numbers.", lambda: _schedule(rule)
    ):
        return report
    trial = RuleTrial(rule, np.random.default_rng(seed))
    own = isinstance(solver, ProximalGradient)  # else there is a solver with a memory of its own
    if own and not report.look(
        "What it remembers is finite, and a total is not negative.", trial.remembers
    ):
        return report
    if own:
        report.look("update does not change what it is given.", trial.leaves_arguments_alone)
        report.look("Steps are positive, and moves are finite.", trial.steps)
    report.look("It works with blocks of every kind.", trial.blocks)
    report.look("The same run gives the same answer twice.", trial.repeats)
    report.look(
        "A run that is saved and continued goes on as if it had never stopped.", trial.resumes
    )
    report.look("Trajectories side by side are what each is alone.", trial.columns)
    report.look("select keeps the chosen trajectories, and all else.", trial.selects)
    report.look("A quadratic function goes down.", trial.goes_down)
    return report


class RuleTrial:
    """A rule and a quadratic function of a size that fits it. Each method returns what is wrong, or None."""

    def __init__(self, rule: Any, rng: np.random.Generator):
        self.rule, self.rng = rule, rng
        self.shape = self._shape()
        self.etas = rule.eta if isinstance(rule.eta, np.ndarray) else None
        eta = rule.eta(1) if callable(rule.eta) else rule.eta
        self.unit = 1.0 if eta is None else float(np.min(eta))  # distances that suit the step size
        scale = (
            np.ones(int(np.prod(self.shape)))
            if rule.scale is None
            else rule.scale.astype(np.float64)
        )
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
        self,
        rule: Rule,
        iterations: int = TRIED_ITERATIONS,
        state: State | None = None,
        width: tuple[int, ...] = (),
    ) -> State:
        """The state after some iterations."""
        width = width if rule.trajectories is None else (rule.trajectories,)
        x0 = None if state is not None else np.zeros((*self.shape, *width))
        return next(
            islice(iterate(self.loss, x0, None, rule, state=state), iterations - 1, None)
        ).copy()

    def begun(self) -> tuple[Rule, Memory, np.ndarray, np.ndarray]:
        """Return the rule for the shape of x, its first memory, a random point and a random gradient."""
        width = () if self.etas is None else (len(self.etas),)
        rule = self.rule.prepared(self.shape, np.float64, *(width or (None,)))
        x, g = self.rng.standard_normal((2, int(np.prod(self.shape)), *width))
        return rule, self._memory(rule.init(x.copy(), g.copy()), "init"), x, g

    def counted(self, n: int) -> Any:
        """Return n as rules get it."""
        return n if self.etas is None else np.full(len(self.etas), n)

    def _memory(self, memory: Any, method: str) -> Memory:
        """Return a memory, or raise if it is not one."""
        if not isinstance(memory, dict):
            raise TypeError(
                f"{method} must return a dict of arrays as memory. It returned {memory!r}"
            )
        for name, values in memory.items():
            batch = () if self.etas is None else self.etas.shape
            shape = np.shape(values)
            if not isinstance(name, str) or shape[len(shape) - len(batch) :] != batch:
                raise ValueError(
                    f"What it remembers as {name!r} must end in the axis of trajectories, {batch}. It has shape {shape}"
                )
        return memory

    def remembers(self) -> str | None:
        """Return what is wrong with the memory after some gradients."""
        rule, memory, x, g = self.begun()
        kinds = set(memory)
        for n in range(1, 7):
            memory = self._memory(
                rule.update(memory, self.counted(n), x.copy(), g.copy())[0], "update"
            )
            if set(memory) != kinds:
                names = f"the names of init, {sorted(kinds)}. It has {sorted(memory)}"
                return f"The method update must return a memory with {names}."
            for name, array in memory.items():
                for word, bad in (
                    ("NaN", np.isnan),
                    ("infinite", np.isinf),
                    ("negative", lambda total: total < 0),
                ):
                    if np.any(bad(array)) and (name == "total" or word != "negative"):
                        return f'What it remembers as "{name}" must not become {word}: after {n} gradients it is so.'
            x, g = x + self.rng.standard_normal(x.shape), self.rng.standard_normal(x.shape)
        return None

    def leaves_arguments_alone(self) -> str | None:
        """Return which argument `update` changes."""
        rule, memory, x, g = self.begun()
        for n in (1, 2):
            given = {
                "x": x,
                "g": g,
                **{f"memory[{name!r}]": array for name, array in memory.items()},
            }
            kept = {name: np.copy(array) for name, array in given.items()}
            new = rule.update(memory, self.counted(n), x, g)[0]
            for name, array in given.items():
                if not np.array_equal(array, kept[name], equal_nan=True):
                    return f"The method update changes {name}, which it should only read."
            memory, x, g = new, x + 1.0, self.rng.standard_normal(x.shape)
        return None

    def steps(self) -> str | None:
        """Return what is wrong with the first step."""
        rule, memory, x, g = self.begun()
        _, point, step = rule.update(memory, self.counted(1), x, g)
        if not (np.isfinite(step).all() and np.all(step > 0)):
            return f"Every step must be positive and finite. The method update makes them {show(np.asarray(step))}."
        if np.shape(point) != x.shape or not np.isfinite(point).all():
            return f"The point that update leads to must be finite, and of the shape of x. It is {show(np.asarray(point))}."
        return None

    def with_(self, **parameters: Any) -> Any:
        """The rule with other parameters, as far as it has them."""
        known = {field.name for field in fields(self.rule) if field.init}
        return replace(
            self.rule, **{name: value for name, value in parameters.items() if name in known}
        )

    def blocks(self) -> str | None:
        size = int(np.prod(self.shape))
        for blocks in (None, "all", np.arange(size) // 2):
            for eta in (self.unit, np.array([self.unit, 2 * self.unit])):
                rule = self.with_(eta=eta, blocks=blocks)
                try:
                    state = self.run(rule, 5)
                except Exception as error:
                    words, many = (
                        repr(blocks) if not isinstance(blocks, np.ndarray) else show(blocks),
                        np.ndim(eta),
                    )
                    where = f"With blocks={words} and {'several eta' if many else 'one eta'}"
                    return (
                        f"{where} it raises {type(error).__name__}: {str(error).splitlines()[0]}."
                    )
                if not np.isfinite(state.x).all():
                    return f"With blocks={blocks!r} a run on a quadratic function is not finite."
        return None

    def repeats(self) -> str | None:
        first, second = self.run(self.rule), self.run(self.rule)
        return (
            None if _same(first, second) else f"The same run gives different answers. {ON_MEMORY}"
        )

    def resumes(self) -> str | None:
        whole, half = self.run(self.rule, 2 * TRIED_ITERATIONS), self.run(self.rule)
        with tempfile.TemporaryDirectory() as folder:
            half.save(Path(folder) / "state.npz")
            continued = self.run(self.rule, state=load_state(Path(folder) / "state.npz"))
        return (
            None
            if _same(whole, continued)
            else f"A run that is saved and loaded goes on differently. {ON_MEMORY}"
        )

    def columns(self) -> str | None:
        etas = np.array([self.unit, 3 * self.unit]) if self.etas is None else self.etas
        together = self.run(self.with_(eta=etas), width=(2,))
        for k, eta in enumerate(etas):
            alone = self.run(self.with_(eta=float(eta)))
            if not np.allclose(
                together.x[..., k], alone.x, rtol=1e-9, atol=1e-12 * float(np.abs(alone.x).max())
            ):
                found = f"{show(together.x[..., k])}, and {show(alone.x)}"
                return f"Trajectories side by side differ from each alone: with eta = {eta:g} x is {found}."
        return None

    def selects(self) -> str | None:
        rule = (
            self.rule
            if self.etas is not None
            else self.with_(eta=np.array([self.unit, 2 * self.unit]))
        )
        if rule.trajectories is None:
            return (
                None
                if rule.select(np.array([0])) is rule
                else "The method select must return the rule: it has no eta."
            )
        last = rule.trajectories - 1
        part = rule.select(np.array([last]))
        if type(part) is not type(rule) or part.trajectories != 1:
            return f"The method select must return a {type(rule).__name__} for the chosen trajectories. It returned {part!r}."
        together, alone = self.run(rule), self.run(part)
        if not np.allclose(
            together.x[..., last],
            alone.x[..., 0],
            rtol=1e-9,
            atol=1e-12 * float(np.abs(alone.x).max()),
        ):
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
        _check.positive(rule.eta(n), f"eta({n})", type(rule).__name__)


ON_MEMORY = (
    "Whatever a rule remembers must be in the memory that update returns: only that is saved."
)


def _same(first: State, second: State) -> bool:
    same = all(
        np.array_equal(getattr(first, name), getattr(second, name)) for name in ("x", "g", "f")
    )
    return same and all(
        np.array_equal(array, second.memory[name]) for name, array in first.memory.items()
    )
