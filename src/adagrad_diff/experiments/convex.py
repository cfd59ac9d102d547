"""The public function `sensitivity`: how much the step sizes of rules matter on a problem."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .. import rules as library
from .._files import as_path
from .._messages import require
from ..duality import duality_gap
from ..losses import Loss, as_loss
from ..penalties import Penalty, as_penalty
from ..rules import Rule, has_eta
from ..solvers import minimize
from ..solvers.result import Interrupted
from ..sweeps import sweep
from .result import FAILURES, GAP_RESOLUTION, FStar, Sensitivity
from .style import FAMILIES, thin
from .training import compare_training, is_training

PROTOCOL_FACTOR = 10  # budgets of the run that refines F_star, in the paper's protocol
OPTIMUM_TOL = {"float64": 1e-9, "float32": 1e-6}  # relative duality gaps
OPTIMUM_ITERATIONS = 1000  # that the search for the optimum may take in any case
RECORDED_ITERATIONS = 500  # recorded iterations of a run, about
CURVE_POINTS = 60  # iterations that a comparison keeps, of which it has hundreds of curves
RANDOM_STARTS_SEED = 0
GRID_DECADES = (-4.0, 3.0)  # relative to a minimizer's largest coordinate
GRID_PER_DECADE = 2
ANY_ETA = 1.0  # for rules without a step size
RULES_WANTED = "'rules' must be rules, rule classes or functions eta -> rule"


def sensitivity(
    loss: Any,
    penalty: Any = None,
    rules: Any = None,
    etas: Any = None,
    starts: Any = 3,
    n_iter: int = 500,
    *,
    f_star: float | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    memory: str | float = "2GB",
    n_jobs: int | None = None,
    progress: bool | None = None,
    client: Any = None,
) -> Sensitivity:
    r"""Compare rules over step sizes: how far from the best one may be, and still be good?

    Every rule runs with every eta from every start. What is compared are relative gaps,

    .. math:: \text{gap}(x) = \frac{F(x) - F_\star}{F(0) - F_\star},

    of the last, the best and the average iterate: 1 is as good as x = 0. (Where x = 0 is optimal,
    or F is infinite there, the starts take its place.) An iteration of every rule is one gradient.

    Parameters
    ----------
    loss, penalty
        As for `sweep`. Or, as `loss`, a training function: see below.
    rules : rule, rule class, name, function eta -> rule, or several of them, optional
        All rules of the package by default. Rules without a step size run once per start. The eta
        of a rule such as ``Adam(beta1=0.8)`` is replaced. A dict gives names of your choice.
    etas : array, optional
        Step sizes; by default 15 over seven decades around the size of a minimizer's coordinates.
    starts : int or array (d, starts)
        How many starts, or one per column. The first of a number of starts is zero, the others are
        small and random.
    n_iter : int
        Iterations of each run.
    f_star : float, "certified" or "protocol", optional
        The smallest value of F: given, certified by a relative duality gap of 1e-9, or by the
        paper's protocol (the smallest value of all iterates, after the best rule and eta have run
        ten times as long). By default it is certified where that is possible, and the protocol's
        elsewhere; `result.f_star` says which.
    checkpoint : path, optional
        A directory for finished work: the same call resumes from there, as with `sweep`.
    memory, n_jobs, progress, client
        As for `sweep`; the calling process computes the optimum.

    Returns
    -------
    Sensitivity
        print() shows its table.

    Notes
    -----
    A training function ``train(method, lr, seed)`` returns a final loss, or a loss curve whose
    first entry is the loss before training. `rules` are then names of methods, `etas` learning
    rates (five decades by default) and `starts` the number of seeds. The runs are independent of
    each other: `n_jobs` processes compute them (one by default), or a cluster, and `checkpoint`
    keeps each when it is complete. Divergence counts as the initial loss: the median of the first
    entries or, without curves, the largest loss at the smallest learning rate. If the best learning
    rate of a method lies on an edge of the grid, the grid is extended for all methods, up to four
    times. The table then has ranges within 2 and 1.1 times the smallest loss, sensitivities and
    tunabilities. Other parameters have no effect.

    Examples
    --------
    >>> import numpy as np
    >>> from adagrad_diff import L1, LAD, AdaGrad, AdaGradDiff, DoG, sensitivity
    >>> A = np.random.default_rng(0).standard_normal((60, 8))
    >>> b = A[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(60)
    >>> found = sensitivity(LAD(A, b), L1(0.01), [AdaGradDiff, AdaGrad, DoG], n_iter=200)
    >>> found.f_star.how
    'certified'
    >>> found.score("AdaGradDiff")["decades_10x"] > found.score("AdaGrad")["decades_10x"]
    True
    """
    if is_training(loss):
        return compare_training(loss, rules, etas, starts, checkpoint, n_jobs, client)
    xarray, *_ = (require(package, "sweep") for package in ("xarray", "tqdm", "threadpoolctl"))
    loss, penalty = as_loss(loss), as_penalty(penalty)
    n_iter = _check.count(n_iter, "n_iter", "sensitivity", least=1)
    if f_star not in (None, "certified", "protocol"):
        f_star = _check.number(
            f_star, "f_star", "sensitivity", "a number, 'certified' or 'protocol'"
        )
    methods = as_methods(rules, penalty)
    x0s = _starts(starts, loss, penalty)
    folder = None if checkpoint is None else as_path(checkpoint, "checkpoint")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    options = {"memory": memory, "n_jobs": n_jobs, "progress": progress, "client": client}
    options |= {"keep_x": False, "averages": True}

    def run(stage: str, names: list[str], etas: Any, n_iter: int = n_iter) -> Any:
        options["checkpoint"] = folder and folder / stage.replace(" ", "-")
        options["record"] = max(1, n_iter // RECORDED_ITERATIONS)
        factories = {name: methods[name].make for name in names}
        try:
            found = sweep(loss, penalty, factories, etas, x0s, n_iter, label=stage, **options)
        except Interrupted as error:
            raise Interrupted(
                f"The comparison was interrupted while it ran {stage}. With a directory as "
                "'checkpoint', the same call resumes.",
                error.result,
            ) from error
        return found.drop_vars("start")

    at_zero = np.inf
    if loss.shape is not None:
        still: dict[str, Any] = {"max_iter": 0, "history": 0, "on_failure": "ignore"}
        at_zero = float(minimize(loss, None, penalty, eta=ANY_ETA, **still).fun)
    optimum: FStar | str = "it was not asked for"
    if f_star in (None, "certified") or etas is None:
        x0 = None if np.isfinite(at_zero) else x0s[..., 0]
        optimum, size = _optimum(loss, penalty, x0, n_iter, folder and folder / "optimum.npz")
        if f_star == "certified" and isinstance(optimum, str):
            raise _check.InputError(
                f'\'f_star\' cannot be "certified" here: {optimum}. Give a number, "protocol", or '
                "more iterations."
            )
        if etas is None:
            low, high = np.round(np.log10(size)) + np.array(GRID_DECADES)
            etas = np.logspace(low, high, 1 + GRID_PER_DECADE * round(high - low))
    etas = np.sort(np.ravel(_check.real_array(etas, "etas")))

    free = [name for name, method in methods.items() if method.free]
    published = np.array([method.published for method in methods.values()], float)
    outside = [eta for eta in published if eta > 0 and not np.isclose(etas, eta).any()]
    grid = np.union1d(etas, outside) if outside else etas
    parts = []
    if tuned := [name for name in methods if name not in free]:
        parts = [run("rules with a step size", tuned, grid)]
    if free:
        once = run("rules without a step size", free, [ANY_ETA])
        parts.append(once.isel(eta=np.zeros(grid.size, int)).assign_coords(eta=grid))
    minimal = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "join": "exact"}
    runs = xarray.concat(parts, "rule", **minimal).sel(rule=list(methods))
    runs = runs.assign_coords(free=("rule", np.isin(list(methods), free)))
    runs = runs.assign_coords(published=("rule", published))
    places = np.abs(grid - np.nan_to_num(published)[:, None]).argmin(axis=1)
    defaults = runs.isel(eta=xarray.DataArray(places, dims="rule"))
    data = runs.sel(eta=etas).isel(iteration=thin(runs.sizes["iteration"], CURVE_POINTS))

    least = _smallest(runs)
    if not np.isfinite(least):
        raise _check.InputError(
            "The objective is not finite at any of the starts, or after them: there is nothing to "
            "compare. Check the data."
        )
    if isinstance(f_star, float):
        reached = f", but a run has reached {least:.10g}" if least < f_star else ""
        text = f"The optimum {f_star:.10g} was given{reached}."
        known = FStar(min(f_star, least), "given", text)
    elif f_star != "protocol" and isinstance(optimum, FStar):
        known = optimum
    else:
        known = _protocol(run, methods, data, n_iter, least)
    call = f"sensitivity(loss, penalty, {list(methods)}, {etas.tolist()}, starts, {n_iter})"
    return Sensitivity(
        data,
        defaults,
        known,
        *_scale(at_zero, data, known),
        title=f"How much does the step size matter? {type(loss).__name__}, {penalty.name}",
        about=[["Loss", repr(loss)], ["Penalty", repr(penalty)]],
        command=["from adagrad_diff import sensitivity", call],
    )


def _starts(starts: Any, loss: Loss, penalty: Penalty) -> np.ndarray:
    """Return one start per column: the array given, or zeros and small random models."""
    if np.ndim(starts) > 0:
        return np.asarray(starts)  # checked by `sweep`
    count = _check.count(starts, "starts", "sensitivity", least=1)
    if loss.shape is None:
        raise ValueError(
            "'starts' must be an array with one start per column: the loss is a function of any "
            "number of coordinates."
        )
    known, size = loss.coordinates(), np.ones(loss.shape)
    if known.scale is not None:  # predictions have the size of the target, not coefficients
        size.reshape(-1)[: known.scale.size] = known.scale
    draws = np.random.default_rng(RANDOM_STARTS_SEED).standard_normal((*loss.shape, count))
    draws *= known.unit * size[..., None] / np.sqrt(loss.shape[0])
    draws[..., 0] = 0.0
    draws = draws.astype(loss.dtype or np.float64)
    for x in np.moveaxis(draws[: loss.shape[0] - loss.intercept], -1, 0):
        if not np.isfinite(penalty.value(x.ravel())):  # the penalty is a set that does not hold x
            x[...] = penalty.prox(x.ravel(), 1.0).reshape(x.shape)
    return draws


def _optimum(
    loss: Loss, penalty: Penalty, x0: Any, n_iter: int, checkpoint: Any
) -> tuple[FStar | str, float]:
    """Return the certified optimum, or why there is none, and a minimizer's largest coordinate."""
    if loss.shape is None:
        return "the dual problem of a function is not known", float(np.abs(x0).max()) or 1.0
    tol, budget = OPTIMUM_TOL[str(loss.dtype)], max(OPTIMUM_ITERATIONS, PROTOCOL_FACTOR * n_iter)
    options: dict[str, Any] = {"history": 0, "on_failure": "ignore", "checkpoint": checkpoint}
    found = minimize(loss, x0, penalty, tol=tol, max_iter=budget, **options)
    size = float(np.abs(found.x).max())
    if not 0 < size < np.inf:
        size = loss.coordinates().unit
    if not found.certified:
        return f"a relative gap of {tol:g} was not reached within {budget} iterations", size
    # A continued run knows nothing of the bounds found on the way: this one depends on x only.
    bound = max(found.bound, duality_gap(loss, penalty, found.x).bound)
    gap = max(0.0, found.fun - bound)
    text = f"it is {bound:.10g}, or larger by {gap:.1g} at most."
    text = f"The optimum is certified by a duality gap: {text}"
    return FStar(float(bound), "certified", text, float(gap)), size


def _smallest(runs: Any) -> float:
    """Return the smallest objective of all iterates, the starts included."""
    values = np.array([runs.objective_best.min(), runs.objective_start.min()])
    return float(np.min(values[np.isfinite(values)], initial=np.inf))


def _protocol(run: Any, methods: dict[str, Any], data: Any, n_iter: int, least: float) -> FStar:
    """Return the smallest value of all iterates, after the best run has continued for longer."""
    text = "The optimum is the smallest value of all iterates"
    final = data.objective.isel(iteration=-1)
    mean = final.where(np.isfinite(final) & ~data.status.isin(FAILURES), np.inf).mean("seed")
    if not np.isfinite(mean).any():
        return FStar(least, "protocol", f"{text}. All runs failed.")
    fastest = mean.isel(mean.argmin(("rule", "eta")))
    name, eta = str(fastest.rule.item()), fastest.eta.item()
    refined = run("refinement of the optimum", [name], [eta], PROTOCOL_FACTOR * n_iter)
    where = name if methods[name].free else f"{name} with eta = {eta:.3g}"
    text += f", {where} having run {PROTOCOL_FACTOR} times as long."
    return FStar(min(least, _smallest(refined)), "protocol", text)


def _scale(at_zero: float, data: Any, known: FStar) -> tuple[float, str]:
    """Return what gaps are relative to, and its name."""
    starts = data.objective_start.where(np.isfinite(data.objective_start)).median()
    for value, name in ((at_zero, "F(0) - F_star"), (starts, "F(start) - F_star")):
        gap = float(value - known.value)
        if GAP_RESOLUTION * abs(known.value) < gap < np.inf:
            return gap, name
    return 1.0, "1"


# ------------------------------------------------------------------------------ methods


class Method(NamedTuple):
    """A rule of a comparison."""

    make: Callable[[float], Any]  # a rule with this step size
    free: bool  # whether it has no step size
    published: float | None  # the step size that its authors recommend, if any


def as_methods(rules: Any, penalty: Penalty) -> dict[str, Method]:
    """Return methods by name: what users pass, or all rules of the package that fit the penalty."""
    known = {name: getattr(library, name) for family in FAMILIES.values() for name in family}
    if rules is None:
        rules = [rule for rule in known.values() if penalty.accepts == "diagonal" or _shared(rule)]
    pairs = list(rules.items() if isinstance(rules, Mapping) else _named(rules))
    methods = {str(name): _method(str(name), rule, known, penalty) for name, rule in pairs}
    if not methods:
        raise _check.InputError("'rules' is empty: give at least one rule, such as AdaGradDiff.")
    if len(methods) < len(pairs):
        names = [name for name, _ in pairs]
        raise _check.InputError(
            f"'rules' has a name twice: {names}. Give a dict of names of your own."
        )
    return methods


def _named(rules: Any) -> Iterable[tuple[str, Any]]:
    """Return the rules of a list with the names of their classes or functions."""
    single = isinstance(rules, str | Rule) or not isinstance(rules, Iterable)
    for k, rule in enumerate([rules] if single else rules):
        name = rule if isinstance(rule, str) else getattr(rule, "__name__", type(rule).__name__)
        yield f"rule {k}" if name == "<lambda>" else name, rule


def _method(name: str, rule: Any, known: dict[str, type[Rule]], penalty: Penalty) -> Method:
    if isinstance(rule, str):
        if rule not in known:
            raise _check.InputError(
                f"'rules' has {rule!r}, which is not one of {', '.join(known)}."
            )
        rule = known[rule]
    make = _factory(rule, penalty)
    made = make(1.0)
    if not isinstance(made, Rule):
        raise TypeError(f"{RULES_WANTED}, but {name} made {made!r}.")
    return Method(make, made.eta is None, None if made.eta is None else made.published)


def _factory(rule: Any, penalty: Penalty) -> Callable[[float], Any]:
    """Return a function eta -> rule. The eta of a rule that was given is replaced."""
    if isinstance(rule, Rule):
        return lambda eta: rule if rule.eta is None else replace(rule, eta=eta)
    if not callable(rule):
        raise TypeError(f"{RULES_WANTED}. Got {rule!r} instead.")
    if not (isinstance(rule, type) and issubclass(rule, Rule)):
        return rule  # type: ignore[no-any-return]
    shared = penalty.accepts == "scalar" and _shared(rule, init=True)
    options: Any = {"blocks": "all"} if shared else {}
    return (lambda eta: rule(eta=eta, **options)) if has_eta(rule) else lambda eta: rule(**options)


def _shared(rule: type[Rule], init: bool = False) -> bool:
    """Return whether all coordinates can share a weight, as the prox of some penalties needs it."""
    (blocks,) = (field for field in fields(rule) if field.name == "blocks")
    return blocks.init or (not init and blocks.default == "all")
