"""The scores of a comparison in plain loops, from runs of `minimize` one at a time."""

import math

import numpy as np

from adagrad_diff import minimize

POINTS = 4001  # at which an interval of the grid is looked at


def gap_of(loss, penalty, rule, x0, n_iter, f_star, scale):
    """The gaps of the last, the best and the average iterate of one run."""
    run = minimize(loss, x0, penalty, rule, max_iter=n_iter, on_failure="ignore")
    if run.status in (5, 6):  # not finite, diverged
        return {"last": math.inf, "best": (run.fun_best - f_star) / scale, "average": math.inf}
    average = loss.value_and_grad(run.x_avg)[0] + penalty.value(run.x_avg)
    values = {"last": run.fun, "best": run.fun_best, "average": average}
    return {name: max(value - f_star, 0.0) / scale for name, value in values.items()}


def mean_gaps(loss, penalty, make, eta, starts, n_iter, f_star, scale):
    several = [gap_of(loss, penalty, make(eta), x0, n_iter, f_star, scale) for x0 in starts.T]
    return {name: sum(gaps[name] for gaps in several) / len(several) for name in several[0]}


def decades_below(etas, gaps, threshold):
    """Return how much of the grid is below, from many points of the line between logarithms."""
    length = 0.0
    for k in range(len(etas) - 1):
        ends = [
            math.log10(max(gap, 1e-300)) if math.isfinite(gap) else 1e9 for gap in gaps[k : k + 2]
        ]
        share = np.mean(np.linspace(*ends, POINTS) < math.log10(threshold))
        length += share * math.log10(etas[k + 1] / etas[k])
    return length


def naive_scores(etas, gaps, floor):
    """Return {rule: (decades within 10 times the best of all, best eta, best gap)}."""
    best = max(min(min(of_rule) for of_rule in gaps.values()), floor)
    answer = {}
    for rule, of_rule in gaps.items():
        counted = [max(gap, floor) for gap in of_rule]
        k = counted.index(min(counted))
        answer[rule] = (decades_below(etas, counted, 10 * best), etas[k], of_rule[k])
    return answer
