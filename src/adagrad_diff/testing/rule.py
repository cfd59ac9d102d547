"""Check a user-defined step-size rule: memory, steps, and runs that are saved and resumed."""

from __future__ import annotations

import tempfile
from dataclasses import fields, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .. import _check
from ..rules import Rule
from ..solvers.minimize import as_solver, iterate, minimize
from ..solvers.proximal_gradient import ProximalGradient
from ..solvers.state import State, load_state
from ._report import Fault, Report, call_unchanged, show

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
    report, shape = Report(solver.name), _shape_for(rule)
    if callable(rule.eta):
        with report.check("The schedule eta(n) gives positive numbers."):
            for n in range(1, 2 * CHECKED_ITERATIONS + 1):
                _check.positive(rule.eta(n), f"eta({n})", solver.name)
        if not report:
            return report
    eta = rule.eta(1) if callable(rule.eta) else rule.eta
    unit = 1.0 if eta is None else float(np.min(eta))
    # A quadratic function of each trajectory, the last axis of x, with a minimizer in units of eta.
    scale = 1.0 if rule.scale is None else rule.scale.reshape(*shape, 1)
    curvature = 10.0 ** rng.uniform(-1, 1, (*shape, 1)) / scale**2
    center = unit * scale * (1.0 + 3.0 * rng.random((*shape, 1)))

    def loss(x: np.ndarray, factor: float = 1.0) -> tuple[Any, np.ndarray]:
        g = factor * curvature * (x - center)
        return 0.5 * np.sum(g * (x - center), axis=tuple(range(len(shape)))), g

    def run(rule: Rule, iterations: int = CHECKED_ITERATIONS, state: State | None = None) -> State:
        """Return the state after some iterations from zero or from another state."""
        x0 = np.zeros((*shape, rule.trajectories or 1)) if state is None else None
        return next(islice(iterate(loss, x0, None, rule, state=state), iterations - 1, None))

    def with_parameters(**parameters: Any) -> Any:
        """Return the rule with other values of those parameters that it has."""
        known = {field.name for field in fields(rule) if field.init}
        return replace(rule, **{k: v for k, v in parameters.items() if k in known})

    if isinstance(solver, ProximalGradient):  # other solvers keep a memory of their own
        with report.check(
            "The methods init and update return valid results and change no argument."
        ):
            points = unit * rng.standard_normal((CHECKED_UPDATES, *shape, rule.trajectories or 1))
            _check_updates(rule.prepared(shape, points.shape[-1]), points, loss)
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

    with report.check("Several trajectories side by side equal each alone, also by select."):
        etas = np.array([unit, 3 * unit]) if rule.trajectories is None else rule.eta
        several = with_parameters(eta=etas)
        together = run(several).x
        for k, eta in enumerate(etas[: several.trajectories or 0]):
            selected = several.select(np.array([k]))
            if type(selected) is not type(rule):
                raise Fault(f"The method select must return the same rule, not {selected!r}.")
            for one in (with_parameters(eta=float(eta)), selected):
                x, expected = run(one).x[..., 0], together[..., k]
                if not np.allclose(x, expected, rtol=1e-9, atol=1e-12 * np.abs(x).max()):
                    raise Fault(
                        "Trajectories side by side must equal each of them alone, also after "
                        f"select: with eta = {eta:g} x is {show(expected)} and {show(x)}."
                    )

    with report.check("The rule decreases a quadratic function."):
        single = with_parameters(eta=unit) if rule.trajectories else rule
        x0 = np.zeros((*shape, 1))
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
            for eta in (unit, np.array([unit, 2 * unit])):
                if not np.isfinite(run(with_parameters(eta=eta, blocks=blocks), 5).x).all():
                    raise Fault(f"With blocks={show(blocks)} and eta={eta}, a run is not finite.")
    return report


def _shape_for(rule: Any) -> tuple[int, ...]:
    """Return a shape of x that fits the scale and the blocks of the rule."""
    if np.ndim(rule.blocks):
        return np.shape(rule.blocks)
    size, columns = (6, 2) if rule.scale is None else (rule.scale.size, 1)
    return (size, columns) if rule.blocks == "row" else (size,)


def _check_updates(rule: Rule, points: np.ndarray, loss: Any) -> None:
    """Call `update` at some points, and check what it returns."""
    width, memory = points.shape[-1], None
    for n, point in enumerate(points, 1):
        x, g = point.reshape(-1, width), loss(point)[1].reshape(-1, width)
        if memory is None:
            memory = rule.init(x.copy(), g.copy())
            _check_memory(memory, memory, "init returns", width)
        new, moved, step = call_unchanged(
            "The method update",
            lambda x, g, memory=memory, n=n, **_: rule.update(memory, np.full(width, n), x, g),
            **{"x": x, "g": g, **{f"memory[{name!r}]": memory[name] for name in memory}},
        )
        _check_memory(new, memory, f"update returns in iteration {n}", width)
        finite = np.isfinite(moved).all() and np.isfinite(step).all()
        shapes = np.shape(moved) == x.shape and _broadcasts(np.shape(step), x.shape)
        if not shapes or not finite or np.any(step <= 0):
            raise Fault(
                "The point that update returns must be finite and have the shape of x, and "
                "every step must be positive and finite, and broadcast to that shape. It returned the point "
                f"{show(moved)} and the step {show(step)}."
            )
        memory = new


def _broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether arrays of this shape broadcast to the target shape."""
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False


def _check_memory(memory: Any, first: dict[str, np.ndarray], method: str, width: int) -> None:
    if not isinstance(memory, dict) or memory.keys() != first.keys():
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
    for name, array in {"x": first.x, **first.memory}.items():
        other = {"x": second.x, **second.memory}[name]
        if not np.array_equal(array, other):
            raise Fault(
                f"A run that is {action} gives another result: {name} is {show(other)} instead of "
                f"{show(array)}. Keep everything that `update` needs in the memory: only that is "
                "saved."
            )
