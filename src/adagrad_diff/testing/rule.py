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
from ._report import Checks, Fault, Report, call_unchanged, run_checks, show

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
    >>> print(check_rule(Careless(eta=0.1)).failures[0])  # doctest: +ELLIPSIS
    After iteration 1, memory['total'] is ... It must be finite, and a total not negative.
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
        "A run that is repeated, or saved and resumed, gives the same result.": checks.repeat,
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
        size = int(np.prod(self.shape))
        scale = np.ones(size) if rule.scale is None else rule.scale.astype(float)
        self.curvature = (10.0 ** rng.uniform(-1, 1, size) / scale**2)[:, None]
        self.center = (scale * (1.0 + 3.0 * rng.random(size)))[:, None]  # in units of the step size

    @cached_property
    def unit(self) -> float:
        """A step size of the rule, or 1 if it has none."""
        eta = self.rule.eta(1) if callable(self.rule.eta) else self.rule.eta
        return 1.0 if eta is None else float(np.min(eta))

    def loss(self, x: np.ndarray, factor: float = 1.0) -> tuple[Any, np.ndarray]:
        """Return the quadratic function and its gradient for one x or several side by side."""
        distance = x.reshape(self.center.size, -1) - self.unit * self.center
        g = factor * self.curvature * distance
        value = 0.5 * np.sum(g * distance, axis=0)
        return value.reshape(x.shape[len(self.shape) :]), g.reshape(x.shape)

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
        rule = self.rule.prepared(self.shape, self.rule.trajectories)
        points = self.unit * self.rng.standard_normal((CHECKED_UPDATES, *self.shape, *self.batch))
        memory = None
        for n, point in enumerate(points, 1):
            _, slope = self.loss(point)
            x, g = point.reshape(-1, *self.batch), slope.reshape(-1, *self.batch)
            if memory is None:
                memory = rule.init(x.copy(), g.copy())
                self.check_memory(memory, "init")
            arguments = {f"memory[{name!r}]": array for name, array in memory.items()}
            arguments |= {"x": x, "g": g}
            call = partial(rule.update, memory, np.full(self.batch, n)[()], x, g)
            new, moved, step = call_unchanged("The method update", call, arguments)
            self.check_memory(new, "update")
            if new.keys() != memory.keys():
                raise Fault(
                    "The method update must return a memory with the names of init, "
                    f"{sorted(memory)}. It has {sorted(new)}."
                )
            for name, array in new.items():
                if not np.isfinite(array).all() or (name == "total" and np.any(array < 0)):
                    raise Fault(
                        f"After iteration {n}, memory[{name!r}] is {show(array)}. It must be "
                        "finite, and a total not negative."
                    )
            finite = np.isfinite(moved).all() and np.isfinite(step).all()
            if np.shape(moved) != x.shape or not finite or np.any(step <= 0):
                raise Fault(
                    "The point that update returns must be finite and have the shape of x, and "
                    "every step must be positive and finite. It returned the point "
                    f"{show(moved)} and the step {show(step)}."
                )
            memory = new

    def check_memory(self, memory: Any, method: str) -> None:
        if not isinstance(memory, dict):
            raise Fault(f"The memory from the method {method} must be a dict, not {memory!r}.")
        for name, array in memory.items():
            if self.batch and np.shape(array)[-1:] != self.batch:
                raise Fault(
                    f"The memory entry {name!r} must end in the axis of trajectories, {self.batch}. "
                    f"It has shape {np.shape(array)}."
                )

    def blocks(self, blocks: Any) -> None:
        for eta in (self.unit, np.array([self.unit, 2 * self.unit])):
            x = self.run(self.with_parameters(eta=eta, blocks=blocks), 5).x
            if not np.isfinite(x).all():
                where = f"With blocks={show(blocks)} and eta={eta}"
                raise Fault(f"{where}, a run on a quadratic function is not finite.")

    def repeat(self) -> None:
        rule, twice = self.rule, 2 * CHECKED_ITERATIONS
        whole, repeated, half = self.run(rule, twice), self.run(rule, twice), self.run(rule)
        _compare_states(whole, repeated, "repeated")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "state.npz")
            half.save(path)
            resumed = self.run(rule, state=load_state(path))
        _compare_states(whole, resumed, "saved and resumed")

    def trajectories(self) -> None:
        etas = self.rule.eta if self.batch else np.array([self.unit, 3 * self.unit])
        rule = self.with_parameters(eta=etas)
        together = self.run(rule, batch=etas.shape).x
        for k, eta in enumerate(etas):
            selected = rule.select(np.array([k]))
            if type(selected) is not type(rule):
                raise Fault(f"The method select must return the same rule, not {selected!r}.")
            results = {
                "alone": self.run(self.with_parameters(eta=float(eta))).x,
                "alone after select": self.run(selected, batch=(1,)).x[..., 0],
            }
            for how, x in results.items():
                if not _close(together[..., k], x):
                    raise Fault(
                        f"Trajectories side by side must equal each of them {how}: with "
                        f"eta = {eta:g} x is {show(together[..., k])} and {show(x)}."
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
    if np.ndim(rule.blocks):
        return np.shape(rule.blocks)
    size, columns = (6, 2) if rule.scale is None else (rule.scale.size, 1)
    return (size, columns) if rule.blocks == "row" else (size,)


def _close(x: np.ndarray, expected: np.ndarray) -> bool:
    return np.allclose(x, expected, rtol=1e-9, atol=1e-12 * float(np.abs(expected).max()))


def _compare_states(first: State, second: State, action: str) -> None:
    for name, array in {"x": first.x, **first.memory}.items():
        other = {"x": second.x, **second.memory}[name]
        if not np.array_equal(array, other):
            raise Fault(
                f"A run that is {action} gives another result: {name} is {show(other)} instead of "
                f"{show(array)}. Keep everything that `update` needs in the memory: only that is "
                "saved."
            )
