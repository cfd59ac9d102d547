"""Time of a LAD fit against the number of samples, with 100 features in float32.

`python docs/scaling.py` draws scaling.png.
"""

from pathlib import Path
from time import perf_counter

import numpy as np

from adagrad_diff.experiments.style import GREY, METHODS, style
from adagrad_diff.sklearn import LADRegressor

SAMPLES = np.geomspace(1e3, 1e6, 7).astype(int)


def main():
    from matplotlib.figure import Figure

    rng = np.random.default_rng(0)
    A = rng.standard_normal((SAMPLES[-1], 100), dtype=np.float32)
    b = A[:, 0] - 2 * A[:, 1] + rng.standard_normal(len(A), dtype=np.float32)
    seconds = []
    for n in SAMPLES:
        model = LADRegressor(alpha=0.01)
        runs = []
        for _ in range(4 if n < 1e5 else 2):  # the first one may compile
            begin = perf_counter()
            model.fit(A[:n], b[:n])
            runs.append(perf_counter() - begin)
        seconds.append(min(runs))
        print(
            f"{n:>8} samples: {seconds[-1]:.3f} s, {model.n_iter_} iterations, {model.stop_reason_}",
            flush=True,
        )
    with style():
        figure = Figure(figsize=(4.2, 2.8), layout="constrained")
        axes = figure.subplots()
        axes.loglog(SAMPLES, seconds, **METHODS["AdaGrad-Diff"], label="LADRegressor, tol = 1e-4")
        axes.loglog(
            SAMPLES,
            seconds[-1] * SAMPLES / SAMPLES[-1],
            ":",
            color=GREY,
            label="proportional to the samples",
        )
        axes.set(xlabel="samples", ylabel="seconds")
        axes.legend()
        figure.savefig(Path(__file__).with_name("scaling.png"), dpi=160)


if __name__ == "__main__":
    main()
