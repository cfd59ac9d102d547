"""
Mean-variance portfolios on the simplex
=======================================

Shares that are nonnegative and sum to one, for investors who fear risk more or less.
"""

import matplotlib.pyplot as plt
import numpy as np

from adagrad_diff import Quadratic, Simplex, minimize
from adagrad_diff.experiments.style import GREY, METHODS, style

ASSETS, FACTORS = 40, 4


def market(rng):
    """Expected returns and covariance (per year) of assets that are driven by a few factors."""
    exposure = rng.normal(0.0, 0.1, (ASSETS, FACTORS))
    covariance = exposure @ exposure.T + np.diag(rng.uniform(0.1, 0.3, ASSETS) ** 2)
    return rng.normal(0.06, 0.04, ASSETS), covariance


def by_cvxpy(returns, covariance, aversion):
    import cvxpy as cp

    x = cp.Variable(ASSETS, nonneg=True)
    risk = cp.quad_form(x, cp.psd_wrap(covariance))
    return cp.Problem(cp.Minimize(aversion / 2 * risk - returns @ x), [cp.sum(x) == 1]).solve(
        solver=cp.CLARABEL
    )


def picture(returns, covariance, chosen):
    """Every asset, and the three portfolios: less risk than any asset with as much return."""
    blue = METHODS["AdaGrad-Diff"]
    with style():
        _, axes = plt.subplots(figsize=(5.2, 3.0), layout="constrained")
        axes.plot(
            100 * np.sqrt(np.diag(covariance)),
            100 * returns,
            ".",
            color=GREY,
            label="single assets",
        )
        risks = [100 * np.sqrt(x @ covariance @ x) for x in chosen.values()]
        gains = [100 * returns @ x for x in chosen.values()]
        axes.plot(risks, gains, **blue, label="portfolios")
        for aversion, risk, gain in zip(chosen, risks, gains, strict=True):
            axes.annotate(
                f"aversion {aversion:g}",
                (risk, gain),
                (6, -3),
                textcoords="offset points",
                color=blue["color"],
            )
        axes.set(
            xlabel="volatility in percent", ylabel="expected return in percent", xlim=(0, None)
        )
        axes.legend(loc="lower left")
        plt.show()


def main():
    returns, covariance = market(np.random.default_rng(0))
    equal, chosen = np.full(ASSETS, 1 / ASSETS), {}
    for aversion in (1.0, 5.0, 25.0):
        result = minimize(
            Quadratic(aversion * covariance, returns), equal, Simplex(), eta=0.02, max_iter=3000
        )
        theirs, x = by_cvxpy(returns, covariance, aversion), result.x
        print(
            f"risk aversion {aversion:g}: objective {result.fun:.9f} by AdaGrad-Diff, {theirs:.9f} by cvxpy"
        )
        risk, held = np.sqrt(x @ covariance @ x), np.count_nonzero(x)
        print(
            f"  return {returns @ x:.1%}, volatility {risk:.1%}; {held} assets, the largest share is {x.max():.0%}"
        )
        assert abs(result.fun - theirs) <= 1e-6 * abs(theirs)
        chosen[aversion] = x
    picture(returns, covariance, chosen)


if __name__ == "__main__":
    main()
