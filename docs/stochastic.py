"""Gaps against eta, with and without reduced noise.

`python docs/stochastic.py DIRECTORY` draws it from a9a there.

Penalties are in percent of the critical strength.
"""

import sys
from pathlib import Path

import numpy as np

from adagrad_diff import (
    L1,
    AdaGrad,
    AdaGradDiff,
    Logistic,
    Minibatch,
    at_fraction,
    datasets,
    minimize,
)
from adagrad_diff.experiments.style import line_of, style

ETAS = np.geomspace(1e-4, 1e2, 13)
PASSES = 20


def main(directory=None):
    from matplotlib.figure import Figure

    data = datasets.load("a9a", directory)
    loss = Logistic(data.A, data.b)
    with style():
        figure = Figure(figsize=(7.5, 2.6), layout="constrained")
        panels = figure.subplots(1, 3, sharey=True)
        for axes, (reduce, strength) in zip(
            panels, (("svrg", 0.3), ("svrg", 0.01), (None, 0.3)), strict=True
        ):
            penalty = at_fraction(loss, L1(1.0), strength)
            star = minimize(loss, penalty=penalty, tol=1e-10).fun
            for rule in (AdaGradDiff(ETAS), AdaGrad(ETAS)):
                batches = Minibatch(loss, 128, reduce=reduce)
                run = minimize(
                    batches, penalty=penalty, rule=rule, max_iter=15, on_failure="ignore"
                )
                last = np.searchsorted(run.history.passes, PASSES, side="right") - 1
                gaps = np.maximum(run.history.objective[last] / star - 1, 1e-12)
                print(
                    reduce,
                    strength,
                    type(rule).__name__,
                    *(f"{gap:.1e}" for gap in gaps),
                    flush=True,
                )
                axes.loglog(ETAS, gaps, label=type(rule).__name__, **line_of(type(rule).__name__))
            axes.set(title=f"reduce={reduce!r}, penalty {100 * strength:.0f} %", xlabel="eta")
        figure.axes[0].set_ylabel(f"relative gap after {PASSES} passes")
        figure.axes[0].legend()
        figure.savefig(Path(__file__).with_name("stochastic.png"), dpi=130)


if __name__ == "__main__":
    main(*sys.argv[1:])
