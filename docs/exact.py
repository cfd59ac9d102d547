"""The story of a default run: proven gap and true error against time.

`python docs/exact.py` draws exact.png.

Two problems: absolute errors with an L1 penalty on Gaussian columns, and the median of a table in
its own units. The true error is measured from an optimum that is proven to 1e-12.
"""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from adagrad_diff import L1, LAD, Quantile, minimize
from adagrad_diff.experiments.style import FINE_PRINT, GREY, METHODS, clear_ticks, style

TOL = 1e-10
FLOOR = 1e-16  # relative: what is below is drawn there
BLUE, ORANGE = METHODS["AdaGrad-Diff"]["color"], METHODS["AdaGrad"]["color"]


@dataclass
class Story:
    title: str
    time: np.ndarray  # seconds, of every iteration
    gap: np.ndarray  # proven, relative
    error: np.ndarray  # true, relative
    stages: np.ndarray  # seconds at which a stage ended and trajectories restarted
    end: float
    last: tuple[float, float]  # gap and error of the answer
    finish: Any  # what the result says of its finish, if there was one


def gaussian() -> tuple[np.ndarray, np.ndarray]:
    """5000 x 200, 20 true coefficients, errors with heavy tails."""
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((5000, 200)), np.zeros(200)
    w[rng.choice(200, 20, replace=False)] = rng.standard_normal(20)
    return A, A @ w + rng.standard_t(3, 5000)


def raw() -> tuple[np.ndarray, np.ndarray]:
    """20000 x 200: correlated columns far from zero, in units from 1e-3 to 1e4."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20000, 200)) + rng.standard_normal((20000, 6)) @ rng.standard_normal(
        (6, 200)
    )
    b = A @ rng.standard_normal(200) + rng.gamma(2.0, 1.0, 20000)
    return (A + rng.uniform(-5, 20, 200)) * rng.permutation(
        np.geomspace(1e-3, 1e4, 200)
    ), 10 * b + 200


def tell(title: str, loss: Any, alpha: float) -> Story:
    rows: list[tuple[float, float, float, float]] = []
    star = minimize(loss, penalty=L1(alpha), tol=1e-12, max_iter=10000).fun
    begin = perf_counter()

    def note(now: Any) -> None:
        notes = now.state.notes
        bound = next(
            (float(value) for name, value in notes.items() if name.endswith(".bound")), -np.inf
        )
        rows.append(
            (perf_counter() - begin, float(now.fun_best), bound, float(notes["race.stage_end"]))
        )

    result = minimize(
        loss,
        penalty=L1(alpha),
        tol=TOL,
        max_iter=10000,
        callback=note,
        on_failure="ignore",
        history=0,
    )
    end = perf_counter() - begin
    time, fun, bound, stage = np.array(rows or [(end, result.fun, result.fun - result.gap, 0.0)]).T
    return Story(
        title,
        time,
        np.minimum((fun - bound) / star, 1.0),
        np.maximum((fun - star) / star, FLOOR),
        time[1:][np.diff(stage) > 0],
        end,
        (max(result.gap / star, FLOOR), max((result.fun - star) / star, FLOOR)),
        getattr(result, "finish", None),
    )


def draw(axes: Any, story: Story) -> None:
    for number, second in enumerate(story.stages):
        axes.axvline(
            second, color=GREY, linewidth=0.5, linestyle=":", label=None if number else "restarts"
        )
    seconds = float(getattr(story.finish, "seconds", 0.0) or 0.0)
    if story.finish is not None:
        axes.axvspan(
            story.end - seconds,
            story.end,
            color="#009E73",
            alpha=0.25,
            linewidth=0,
            label="the finish",
        )
        told = f"{story.finish.rounds} round(s), {story.finish.samples} samples, {story.finish.coefficients} coefficients"
        axes.set_xlabel(
            f"seconds; the finish: {told if story.finish.done else story.finish.reason}"
        )
    else:
        axes.set_xlabel("seconds")
    time = np.append(story.time, story.end)
    axes.plot(time, np.append(story.gap, story.last[0]), color=BLUE, label="proven gap")
    axes.plot(
        time,
        np.append(story.error, story.last[1]),
        color=ORANGE,
        linestyle="--",
        label="true error",
    )
    axes.plot(
        [story.end] * 2,
        story.last,
        "o",
        color="black",
        markersize=3.5,
        label="the answer",
        zorder=5,
    )
    first = story.time[0]
    race = story.stages[0] if len(story.stages) else first
    axes.axvspan(first, race, color=GREY, alpha=0.15, linewidth=0, label="race of eight etas")
    axes.set(
        yscale="log",
        ylim=(FLOOR / 3, 3),
        xscale="log",
        xlim=(first, 1.3 * story.end),
        title=story.title,
        ylabel="relative to the optimum",
    )
    clear_ticks(axes)


def main() -> None:
    from matplotlib.figure import Figure

    A, b = gaussian()
    X, y = raw()
    stories = [
        tell("LAD + L1, 5000 x 200", LAD(A, b, intercept=True), 0.02),
        tell("median + L1, raw table 20000 x 200", Quantile(X, y, tau=0.5, intercept=True), 1e-4),
    ]
    with style():
        figure = Figure(figsize=(7.2, 3.0), layout="constrained")
        for axes, story in zip(figure.subplots(1, 2, sharey=True), stories, strict=True):
            draw(axes, story)
        figure.axes[0].legend(fontsize=FINE_PRINT, loc="lower left")
        figure.axes[1].set_ylabel("")
        figure.savefig(Path(__file__).with_name("exact.png"), dpi=160)
    for story in stories:
        print(
            f"{story.title}: {story.end:.2f} s, proven {story.last[0]:.1e}, true {story.last[1]:.1e}, finish {story.finish}"
        )


if __name__ == "__main__":
    main()
