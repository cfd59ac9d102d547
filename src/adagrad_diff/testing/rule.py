"""Check a user-defined step-size rule: its memory, its steps, and runs that are saved and resumed."""

from __future__ import annotations

import tempfile
from dataclasses import fields, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .. import _check
from ..rules import Rule
from ..solvers.minimize import as_solver, iterate, minimize
from ..solvers.proximal_gradient import ProximalGradient
from ..solvers.state import State, load_state
from ._report import Checks, Fault, Report, run_checks, show

CHECKED_UPDATES = 6  # direct calls of `update`
CHECKED_ITERATIONS = 20  # of a run


def check_rule(rule: Any, *, seed: int = 0) -> Report:
    """Check a user-defined step-size rule on random quadratic functions.

    Its memory, steps, blocks and trajectories are checked, and whether runs can be saved and
    resumed. Passing these checks does not prove correctness.

    Parameters
    ----------
    rule : Rule
        The rule.
    seed : int
        Seed of the random functions.

    Returns
    -------
    Report
        True if nothing is wrong. It prints as one sentence per check. `failures` lists the
        sentences about what is wrong.

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
    The memory entry 'total' is negative after iteration 1.
    """
    solver = as_solver(rule)
    checks = RuleChecks(rule, np.random.default_rng(seed))
    required: Checks = {}
    if callable(rule.eta):
        required["The schedule eta(n) gives positive numbers."] = checks.schedule
    if isinstance(solver, ProximalGradient):  # other solvers keep a memory of their own
        statement = "The methods init and update return valid results and change no argument."
        required[statement] = checks.update
    others: Checks = {
        "A run that is repeated, or saved and resumed, gives the same result.": checks.resume,
        "Several trajectories side by side equal each alone, also by select.": checks.trajectories,
        "The rule decreases a quadratic function.": checks.decrease,
    }
    for blocks in (None, "all", np.arange(checks.curvature.size) // 2):
        others[f"The rule works with blocks={show(blocks)}."] = partial(checks.blocks, blocks)
    return run_checks(solver.name, required, others)


class RuleChecks:
    """The checks of a rule, and a quadratic function of a size that fits it."""

    def __init__(self, rule: Any, rng: np.random.Generator):
        self.rule, self.rng = rule, rng
        self.shape = _shape_for(rule)
        self.batch = () if rule.trajectories is None else (rule.trajectories,)
        scale = np.ones(self.shape) if rule.scale is None else rule.scale.reshape(self.shape)
        self.curvature = 10.0 ** rng.uniform(-1, 1, self.shape) / scale.astype(float) ** 2
        self.center = scale * (1.0 + 3.0 * rng.random(self.shape))  # in units of the step size

    @cached_property
    def unit(self) -> float:
        """A step size of the rule, or 1 if it has none."""
        eta = self.rule.eta(1) if callable(self.rule.eta) else self.rule.eta
        return 1.0 if eta is None else float(np.min(eta))

    @property
    def etas(self) -> np.ndarray:
        """The step sizes of the rule if they are several, or else two step sizes."""
        return np.array([self.unit, 3 * self.unit]) if self.batch == () else self.rule.eta

    def loss(self, x: np.ndarray, factor: float = 1.0) -> tuple[Any, np.ndarray]:
        """Return the quadratic function and its gradient for one x or several side by side."""
        columns = (..., *[None] * (x.ndim - len(self.shape)))
        distance = x - self.unit * self.center[columns]
        g = factor * self.curvature[columns] * distance
        return 0.5 * np.sum(g * distance, axis=tuple(range(len(self.shape)))), g

    def run(
        self,
        rule: Rule,
        iterations: int = CHECKED_ITERATIONS,
        batch: tuple[int, ...] = (),
        state: State | None = None,
    ) -> State:
        """Return the state after some iterations from zero or from another state."""
        batch = batch if rule.trajectories is None else (rule.trajectories,)
        x0 = None if state is not None else np.zeros((*self.shape, *batch))
        return next(islice(iterate(self.loss, x0, None, rule, state=state), iterations - 1, None))

    def with_parameters(self, **parameters: Any) -> Any:
        """Return the rule with other values of those parameters that it has."""
        known = {field.name for field in fields(self.rule) if field.init}
        return replace(self.rule, **{k: v for k, v in parameters.items() if k in known})

    def schedule(self) -> None:
        for n in range(1, 2 * CHECKED_ITERATIONS + 1):
            _check.positive(self.rule.eta(n), f"eta({n})", type(self.rule).__name__)

    def update(self) -> None:
        rule = self.rule.prepared(self.shape, np.float64, self.rule.trajectories)
        x, g = self.random_point()
        memory = rule.init(x.copy(), g.copy())
        self.check_memory(memory, "init")
        for n in range(1, CHECKED_UPDATES + 1):
            arguments = {f"memory[{name!r}]": array for name, array in memory.items()}
            arguments |= {"x": x, "g": g}
            before = {name: np.copy(array) for name, array in arguments.items()}
            counts = np.full(self.batch, n) if self.batch else n
            new_memory, point, step = rule.update(memory, counts, x, g)
            for name, array in arguments.items():
                if not np.array_equal(array, before[name], equal_nan=True):
                    raise Fault(f"The method update changes {name}, which it should only read.")
            self.check_memory(new_memory, "update")
            if set(new_memory) != set(memory):
                names = f"the names of init, {sorted(memory)}. It has {sorted(new_memory)}"
                raise Fault(f"The method update must return a memory with {names}.")
            for name, array in new_memory.items():
                if not np.isfinite(array).all():
                    found = f"It is {show(array)} after iteration {n}"
                    raise Fault(
                        f"The memory entry {name!r} must not become NaN or infinite. {found}."
                    )
                if name == "total" and np.any(array < 0):
                    raise Fault(f"The memory entry 'total' is negative after iteration {n}.")
            if not (np.isfinite(step).all() and np.all(step > 0)):
                raise Fault(f"Every step must be positive and finite. It is {show(step)}.")
            if np.shape(point) != x.shape or not np.isfinite(point).all():
                found = f"must be finite and have the shape of x, {x.shape}. It is {show(point)}"
                raise Fault(f"The point that update returns {found}.")
            memory = new_memory
            x, g = self.random_point()

    def random_point(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a random x and the gradient there, as rules get them."""
        x = self.unit * self.rng.standard_normal((*self.shape, *self.batch))
        _, g = self.loss(x)
        return x.reshape(-1, *self.batch), g.reshape(-1, *self.batch)

    def check_memory(self, memory: Any, method: str) -> None:
        if not isinstance(memory, dict):
            raise Fault(f"The method {method} must return a dict of arrays first, not {memory!r}.")
        for name, array in memory.items():
            shape = np.shape(array)
            if shape[len(shape) - len(self.batch) :] != self.batch:
                raise Fault(
                    f"The memory entry {name!r} must end in the axis of trajectories, {self.batch}. "
                    f"It has shape {shape}."
                )

    def blocks(self, blocks: Any) -> None:
        for eta in (self.unit, np.array([self.unit, 2 * self.unit])):
            x = self.run(self.with_parameters(eta=eta, blocks=blocks), 5).x
            if not np.isfinite(x).all():
                where = f"With blocks={show(blocks)} and eta={eta}"
                raise Fault(f"{where}, a run on a quadratic function is not finite.")

    def resume(self) -> None:
        rule, twice = self.rule, 2 * CHECKED_ITERATIONS
        whole, again, half = self.run(rule, twice), self.run(rule, twice), self.run(rule)
        self.compare_states(whole, again, "repeated")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "state.npz")
            half.save(path)
            resumed = self.run(rule, state=load_state(path))
        self.compare_states(whole, resumed, "saved and resumed")

    def compare_states(self, first: State, second: State, what: str) -> None:
        expected, found = (
            {"x": state.x, "g": state.g, "f": state.f, **state.memory} for state in (first, second)
        )
        if not all(np.array_equal(array, found[name]) for name, array in expected.items()):
            raise Fault(
                f"A run that is {what} gives another result. Put all that the rule keeps between "
                "iterations into the memory: only that is saved."
            )

    def trajectories(self) -> None:
        rule = self.with_parameters(eta=self.etas)
        together = self.run(rule, batch=self.etas.shape).x
        for k, eta in enumerate(self.etas):
            where = f"with eta = {eta:g} x is {show(together[..., k])}"
            alone = self.run(self.with_parameters(eta=float(eta))).x
            if not _close(together[..., k], alone):
                found = f"{where}, and {show(alone)} alone"
                raise Fault(f"Trajectories side by side differ from each alone: {found}.")
            selected = rule.select(np.array([k]))
            x = self.run(selected, batch=(1,)).x
            if type(selected) is not type(rule) or not _close(together[..., [k]], x):
                raise Fault(
                    "The method select must return the same rule for the chosen trajectories: "
                    f"{where}, but select returned {selected!r}, which gives {show(x[..., 0])}."
                )

    def decrease(self) -> None:
        rule = self.with_parameters(eta=self.unit) if self.batch else self.rule
        x0 = np.zeros(self.shape)
        # Rules differ in what their step size means: it suits one of these functions.
        for factor in (1.0, 1.0 / self.unit, 0.1 / self.unit):
            loss = partial(self.loss, factor=factor)
            start, _ = loss(x0)
            end = minimize(loss, x0, rule=rule, max_iter=200, on_failure="ignore").fun_best
            if end < start:
                return
        raise Fault(
            f"A quadratic function does not go down: from {start:.6g} to {end:.6g} at best, in 200 "
            "iterations."
        )


def _shape_for(rule: Any) -> tuple[int, ...]:
    """Return a shape of x that fits the scale and the blocks of the rule."""
    if isinstance(rule.blocks, str) and rule.blocks == "row":
        return (3, 2) if rule.scale is None else (rule.scale.size, 1)
    if rule.blocks is not None and not isinstance(rule.blocks, str):
        return np.shape(rule.blocks)
    return (6,) if rule.scale is None else rule.scale.shape


def _close(x: np.ndarray, expected: np.ndarray) -> bool:
    return np.allclose(x, expected, rtol=1e-9, atol=1e-12 * float(np.abs(expected).max()))
