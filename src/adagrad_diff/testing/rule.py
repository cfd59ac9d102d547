"""Check a user-defined step-size rule: memory, steps, and runs that are saved and resumed."""

from __future__ import annotations

import tempfile
from dataclasses import fields, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ..rules import Rule
from ..solvers.minimize import as_solver, iterate, minimize
from ..solvers.proximal_gradient import ProximalGradient
from ..solvers.state import State, load_state
from .report import Fault, NotApplicable, Report, call_unchanged, show

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
    ...         return {"previous": g}
    ...     def update(self, memory, n, x, g):
    ...         return {}, x - 0.1 * (g - memory["previous"]), 0.1
    >>> print(check_rule(Careless(eta=0.1)).failures[0])  # doctest: +ELLIPSIS
    The memory that update returns in iteration 1 must be a dict with the names that init returns...
    """
    solver, rng = as_solver(rule), np.random.default_rng(seed)
    report, shape, width = Report(solver.name), _shape_for(rule), rule.trajectories or 1
    unit = 1.0 if rule.eta is None or callable(rule.eta) else float(np.min(rule.eta))
    # A quadratic function of each trajectory, the last axis of x, with a minimizer in units of eta.
    scale = 1.0 if rule.scale is None else rule.scale.reshape(*shape, 1)
    curvature = 10.0 ** rng.uniform(-1, 1, (*shape, 1)) / scale**2
    center = unit * scale * (1.0 + 3.0 * rng.random((*shape, 1)))

    def loss(x: np.ndarray, factor: float = 1.0) -> tuple[Any, np.ndarray]:
        g = factor * curvature * (x - center)
        return 0.5 * np.sum(g * (x - center), axis=tuple(range(len(shape)))), g

    def run(rule: Rule, iterations: int = CHECKED_ITERATIONS, **start: State) -> State:
        """Return the state after some iterations from zero or from the state `start`."""
        x0 = None if start else np.zeros((*shape, rule.trajectories or 1))
        return next(islice(iterate(loss, x0, None, rule, **start), iterations - 1, None))

    def variant(**parameters: Any) -> Any:
        """Return the rule with other values of those parameters that it has."""
        known = {field.name for field in fields(rule) if field.init}
        return replace(rule, **{k: v for k, v in parameters.items() if k in known})

    with report.check("The methods init and update return valid results and change no argument."):
        if not isinstance(solver, ProximalGradient):
            raise NotApplicable("Another solver makes the steps, and has another memory.")
        points = unit * rng.standard_normal((CHECKED_UPDATES, *shape, width))
        _check_updates(rule.prepared(shape, width), points, loss)
    if not report:
        return report

    with report.check("A run that is repeated, or saved and resumed, gives the same result."):
        twice = 2 * CHECKED_ITERATIONS
        whole, half = run(rule, twice), run(rule)
        _compare_states(whole, run(rule, twice), "repeated")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "state.npz")
            half.save(path)
            _compare_states(whole, run(rule, state=load_state(path)), "saved and resumed")

    with report.check("Several trajectories side by side equal each alone."):
        etas = np.array([unit, 3 * unit]) if rule.trajectories is None else rule.eta
        together = run(variant(eta=etas)).x
        for k in range(together.shape[-1]):
            x, expected = run(variant(eta=float(etas[k]))).x[..., 0], together[..., k]
            if not np.allclose(x, expected, rtol=1e-9, atol=1e-12 * np.abs(x).max()):
                raise Fault(
                    "Trajectories side by side must equal each of them alone: with eta = "
                    f"{etas[k]:g} x is {show(expected)} and {show(x)}."
                )

    with report.check("The rule decreases a quadratic function."):
        single, x0 = variant(eta=unit) if rule.trajectories else rule, np.zeros((*shape, 1))
        start = loss(x0)[0]
        # Rules differ in what their step size means: it suits one of these functions.
        for factor in (1.0, 1.0 / unit, 0.1 / unit):
            scaled = partial(loss, factor=factor)
            found = minimize(scaled, x0, rule=single, max_iter=200, on_failure="ignore")
            if found.fun_best < factor * start:
                break
        else:
            raise Fault(
                f"A quadratic function does not go down from {show(start)} in 200 iterations."
            )

    for blocks in (None, "all", np.arange(center.size) // 2):
        with report.check(f"The rule works with blocks={show(blocks)}."):
            if not np.isfinite(run(variant(eta=[unit, 2 * unit], blocks=blocks), 5).x).all():
                raise Fault(f"With blocks={show(blocks)}, a run is not finite.")
    return report


def _shape_for(rule: Any) -> tuple[int, ...]:
    """Return a shape of x that fits the scale and the blocks of the rule."""
    if np.ndim(rule.blocks):
        return np.shape(rule.blocks)
    size, columns = (6, 2) if rule.scale is None else (rule.scale.size, 1)
    return (size, columns) if rule.blocks == "row" else (size,)


def _check_updates(rule: Rule, points: np.ndarray, loss: Any) -> None:
    """Call `update` at some points, and check what it returns."""
    width, memory = points.shape[-1], {}
    for n, point in enumerate(points, 1):
        x, g = point.reshape(-1, width), loss(point)[1].reshape(-1, width)
        if n == 1:
            memory = names = rule.init(x.copy(), g.copy())
            _check_memory(memory, names, "init returns", width)
        arguments = {"x": x, "g": g, **{f"memory[{name!r}]": memory[name] for name in memory}}
        update = partial(rule.update, memory, np.full(width, n))
        new, moved, step = call_unchanged(
            "The method update", lambda x, g, update=update, **_: update(x, g), **arguments
        )
        _check_memory(new, names, f"update returns in iteration {n}", width)
        np.broadcast_to(step, x.shape)  # or it raises
        good = np.isfinite(moved).all() and np.isfinite(step).all() and np.all(step > 0)
        if np.shape(moved) != x.shape or not good:
            raise Fault(
                "The point that update returns must be finite and have the shape of x, and every "
                f"step must be positive and finite. It returned the point {show(moved)} and the "
                f"step {show(step)}."
            )
        memory = new


def _check_memory(memory: Any, names: Any, method: str, width: int) -> None:
    if not isinstance(memory, dict) or memory.keys() != names.keys():
        raise Fault(
            f"The memory that {method} must be a dict with the names that init returns. "
            f"It is {memory!r}."
        )
    for name, array in memory.items():
        if not np.isfinite(array).all() or np.shape(array)[-1:] != (width,):
            raise Fault(
                f"The memory entry {name!r} that {method} must be finite, and end in the axis of "
                f"trajectories, ({width},). It is {show(array)}."
            )


def _compare_states(first: State, second: State, action: str) -> None:
    if not np.array_equal(first.x, second.x):
        raise Fault(
            f"A run that is {action} gives another result: x is {show(second.x)} instead of "
            f"{show(first.x)}. Keep everything that `update` needs in the memory: only that is "
            "saved."
        )
