"""Time of a quantile regression with L1 against the number of samples: docs/fit_time.png.

    make .venv/.bench
    .venv/bin/python docs/fit_time.py

Three solvers take turns on the same data, 50 features: QuantileRegressor of this package (certified
to a relative gap of 1e-6), scikit-learn's (HiGHS) and the fastest of quantreg's routines that come
within 1e-6 of the optimum (Barrodale-Roberts, Frisch-Newton, Frisch-Newton with preprocessing). Each
size shows the shortest of several times. A solver that takes more than a minute is not run on more
samples. The fit_time.csv beside the figure holds the numbers.
"""

import csv
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.linear_model import QuantileRegressor as HiGHSRegressor

from adagrad_diff.experiments.style import GREY, METHODS, style
from adagrad_diff.sklearn import QuantileRegressor

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks._kinked_peers import barrodale_roberts, frisch_newton, preprocessed, quantile

SIZES = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000]
FEATURES, QUANTILE, ALPHA, TOL = 50, 0.8, 0.01, 1e-6
LIMIT = 60.0  # seconds after which a solver is not run on more samples
QUANTREG = {"br": barrodale_roberts, "fn": frisch_newton, "pfn": preprocessed}


def seconds(run: Callable[[], object], repeats: int) -> tuple[float, object]:
    """Return the shortest time of several runs, and what the last one returned."""
    times = []
    for _ in range(repeats):
        begin = perf_counter()
        found = run()
        times.append(perf_counter() - begin)
        if times[-1] > 2.0:
            break
    return min(times), found


def measure() -> list[dict[str, float]]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((SIZES[-1], FEATURES))
    y = X[:, 0] - 2 * X[:, 1] + rng.standard_t(3, len(X))
    ours = QuantileRegressor(quantile=QUANTILE, alpha=ALPHA, tol=TOL)
    peer = HiGHSRegressor(quantile=QUANTILE, alpha=ALPHA)
    ours.fit(X[:20_000], y[:20_000])  # compiles what large data need
    rows, slow = [], set()
    for n in SIZES:
        A, b = X[:n], y[:n]
        problem = quantile(A, b, QUANTILE, ALPHA)
        row = {"samples": n}
        row["adagrad-diff"], fitted = seconds(lambda A=A, b=b: ours.fit(A, b), 5)
        assert fitted.stop_reason_ == "certified"
        limit = problem.value(np.append(fitted.coef_, fitted.intercept_)) * (1 + 2 * TOL)
        if "scikit-learn" not in slow:
            row["scikit-learn"], _ = seconds(lambda A=A, b=b: peer.fit(A, b), 5)
        for name, routine in QUANTREG.items():
            if name in slow:
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    time, x = seconds(lambda r=routine, p=problem: r(p, TOL, LIMIT), 5)
            except Exception as error:  # a routine that cannot solve this size
                print(f"quantreg {name} at {n} samples: {error!r}", file=sys.stderr)
                slow.add(name)
                continue
            if time > LIMIT / 3:
                slow.add(name)
            if problem.value(x) <= limit:
                row["quantreg"] = min(time, row.get("quantreg", np.inf))
        slow |= {name for name, time in row.items() if name != "samples" and time > LIMIT / 3}
        rows.append(row)
        print({key: round(value, 4) for key, value in row.items()}, flush=True)
    return rows


def draw(rows: list[dict[str, float]]) -> None:
    from matplotlib.figure import Figure

    looks = {
        "adagrad-diff": {**METHODS["AdaGrad-Diff"], "label": "adagrad-diff (certified)"},
        "quantreg": {**METHODS["AdaGrad"], "label": "quantreg (fastest routine)"},
        "scikit-learn": {"color": GREY, "marker": "s", "label": "scikit-learn (HiGHS)"},
    }
    with style():
        figure = Figure(figsize=(5.6, 2.9), layout="constrained", facecolor="white")
        axes = figure.subplots()
        for name, look in looks.items():
            shown = [row for row in rows if name in row]
            axes.loglog([r["samples"] for r in shown], [r[name] for r in shown], **look)
        axes.set(xlabel="samples (50 features)", ylabel="seconds per fit")
        axes.set_title("Quantile regression with an L1 penalty")
        axes.legend(loc="upper left")
        figure.savefig(Path(__file__).with_suffix(".png"), dpi=160)


if __name__ == "__main__":
    rows = measure()
    with Path(__file__).with_suffix(".csv").open("w", newline="") as file:
        names = ["samples", "adagrad-diff", "quantreg", "scikit-learn"]
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows([{k: f"{v:.4g}" for k, v in row.items()} for row in rows])
    draw(rows)
