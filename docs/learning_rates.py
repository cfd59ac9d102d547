"""How wide is the range of good learning rates? A small network, with and without minibatch noise.

The network learns scikit-learn's digits.

    python docs/learning_rates.py        # writes learning_rates.csv and a figure, prints tables
    python docs/learning_rates.py Adam   # only settings with this in their name, as "256 Adam"

The five seeds are trained at once: every parameter has a leading axis for them. All methods work
entry by entry, so a seed gets the result that it would get alone.
"""

import sys
import time
from functools import partial
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

from adagrad_diff.experiments.style import line_of, style
from adagrad_diff.rules.base import MAX_MOVE
from adagrad_diff.torch import AdaGradDiff, AdamDiff

METHODS = {
    "AdaGradDiff": AdaGradDiff,
    "Adagrad": lambda params, lr: torch.optim.Adagrad(params, lr, fused=True),
    "AdamDiff": AdamDiff,
    "Adam": lambda params, lr: torch.optim.Adam(params, lr, fused=True),
    "RMSprop": lambda params, lr: torch.optim.RMSprop(params, lr, foreach=True),
}
BOUNDS = {bound: f"AdamDiff (max_move={bound:g})" for bound in (1, 3, 10, 30, 100, np.inf)} | {
    MAX_MOVE: "AdamDiff"
}
OPTIMIZERS = METHODS | {name: partial(AdamDiff, max_move=bound) for bound, name in BOUNDS.items()}
RULES = {
    "AdaGradDiff": "AdaGradDiff",
    "Adagrad": "AdaGrad",
    "AdamDiff": "AdamDiff",
    "Adam": "Adam",
    "RMSprop": "RMSProp",
}
EPOCHS = {"full": 300, "256": 60, "16": 20}  # by batch size
RATES = np.logspace(-5, 1, 13)
SEEDS = 5
WIDTH = 32
HERE = Path(__file__).parent


def network() -> list[torch.Tensor]:
    """Weights and biases of 64-32-10, as `torch.nn.Linear` draws them, for every seed."""
    draws = []
    for seed in range(SEEDS):
        torch.manual_seed(seed)
        first, second = torch.nn.Linear(64, WIDTH), torch.nn.Linear(WIDTH, 10)
        draws.append([first.weight.T, first.bias[None], second.weight.T, second.bias[None]])
    return [
        torch.stack(same).detach().contiguous().requires_grad_()
        for same in zip(*draws, strict=True)
    ]


def losses(params, X, y):
    """The mean loss of each seed's network on its own samples."""
    W, b, V, c = params
    scores = torch.baddbmm(c, torch.baddbmm(b, X, W).relu(), V)
    return (
        cross_entropy(scores.flatten(0, 1), y.flatten(), reduction="none").view(SEEDS, -1).mean(1)
    )


def train(method: str, batch: str, lr: float, X, y) -> pd.DataFrame:
    """Return the final training loss of each seed, and a ratio of accumulated squares.

    The ratio is that of AdaGradDiff over Adagrad on the same gradients.
    """
    params, samples = network(), len(y)
    size = samples if batch == "full" else int(batch)
    steps = EPOCHS[batch] * (samples // size)
    optimizer, seeds = OPTIMIZERS[method](params, lr=lr), torch.arange(SEEDS)
    everything = X.expand(SEEDS, -1, -1), y.expand(SEEDS, -1)
    generator = torch.Generator().manual_seed(0)
    sums, before, previous = (
        torch.zeros(2, SEEDS, dtype=torch.float64),
        None,
        [torch.zeros_like(p) for p in params],
    )
    for step in range(steps):
        part = step % (samples // size)
        if size < samples and part == 0:
            order = torch.rand(SEEDS, samples, generator=generator).argsort(1)
        chosen = order[:, part * size : (part + 1) * size] if size < samples else None
        samples_now = everything if chosen is None else (X[chosen], y[chosen])

        def closure(some=samples_now):
            optimizer.zero_grad()
            loss = losses(params, *some).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        if (
            method == "AdaGradDiff"
        ):  # what it accumulates, and what Adagrad would have accumulated on the same way
            sums[0] += sum(
                (p.grad - q).square().sum((1, 2)) for p, q in zip(params, previous, strict=True)
            )
            sums[1] += sum(p.grad.square().sum((1, 2)) for p in params)
            previous = [p.grad.clone() for p in params]
            before = sums.clone() if step + 1 == steps - steps // 10 else before
    with torch.no_grad():
        final = losses(params, *everything)
    frame = pd.DataFrame({"method": method, "batch": batch, "lr": lr, "seed": seeds, "loss": final})
    if before is not None:
        end = sums - before  # of the last tenth of the steps
        frame["ratio"], frame["ratio_end"] = sums[0] / sums[1], end[0] / end[1]
    return frame


def decades(curve: pd.Series, limit: float) -> float:
    """Return the length of the set of log10(lr) where the loss is at most `limit`.

    The loss is linear between grid points in log-log.
    """
    fine = np.linspace(-5, 1, 6001)
    values = np.interp(fine, np.log10(curve.index), np.log10(curve.to_numpy()))
    return (values <= np.log10(limit)).mean() * 6


def tables(results: pd.DataFrame) -> str:
    """Return tables in Markdown: good learning rates, bounds of the moves, and minibatch noise."""
    curves = (
        results.fillna({"loss": np.inf})
        .groupby(["batch", "method", "lr"])
        .loss.mean()
        .clip(1e-12, 1e12)
    )
    lines = [
        "| batch | method | best lr | loss there | within 2x of the best of all | within 2x of its own best | loss < 0.1 |"
    ]
    lines += ["| --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    for batch in EPOCHS:
        best = curves[batch][list(METHODS)].min()
        for method in METHODS:
            curve = curves[batch, method]
            widths = " | ".join(
                f"{decades(curve, limit):.2f}" for limit in (2 * best, 2 * curve.min(), 0.1)
            )
            lines.append(
                f"| {batch} | {method} | {curve.idxmin():.2g} | {curve.min():.2g} | {widths} |"
            )
    lines += [
        "",
        "| max_move | full: loss < 0.1 | 256: loss < 0.1 | 16: loss < 0.1 | full, lr = 1e-5 | 1e-4 | 1e-3 | 0.01 |",
    ]
    lines += ["| --- |" + " ---: |" * 7]
    for bound, method in [("(Adam)", "Adam")] + [
        (f"{bound:g}", BOUNDS[bound]) for bound in sorted(BOUNDS)
    ]:
        widths = " | ".join(f"{decades(curves[batch, method], 0.1):.2f}" for batch in EPOCHS)
        ends = " | ".join(
            f"{value:.2g}" for value in curves["full", method].iloc[:8:2]
        )  # the grid has two rates per decade
        lines.append(f"| {bound} | {widths} | {ends} |")
    lines += [
        "",
        "| batch | lr | ratio | its root | ratio in the last tenth |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for (batch, lr), part in results[results.method == "AdaGradDiff"].groupby(
        ["batch", "lr"], sort=False
    ):
        if round(2 * np.log10(lr)) in (-8, -6, -4, -3, -2, -1, 0):
            whole, end = part.ratio.median(), part.ratio_end.median()
            lines.append(f"| {batch} | {lr:.2g} | {whole:.3g} | {whole**0.5:.2f} | {end:.3g} |")
    return "\n".join(lines)


def figure(results: pd.DataFrame) -> plt.Figure:
    """Loss against learning rate, a panel per batch size; the band spans the seeds."""
    fig, axes = plt.subplots(1, len(EPOCHS), figsize=(7.2, 2.7), sharey=True, layout="constrained")
    shown = results[results.method.isin(METHODS)]
    shown = shown.assign(loss=shown.loss.fillna(np.inf).clip(1e-12, 1e12))
    for ax, batch in zip(axes, EPOCHS, strict=True):
        for method, rule in RULES.items():
            look = line_of(rule)
            by_rate = shown[(shown.batch == batch) & (shown.method == method)].groupby("lr").loss
            ax.fill_between(
                RATES, by_rate.min(), by_rate.max(), color=look["color"], alpha=0.12, linewidth=0
            )
            ax.plot(RATES, by_rate.mean(), label=method, **look)
        title = "full batch" if batch == "full" else f"minibatches of {batch}"
        ax.set(
            xscale="log",
            yscale="log",
            xlabel="learning rate",
            title=f"{title}, {EPOCHS[batch]} epochs",
        )
        ax.set_ylim(shown.groupby(["batch", "method", "lr"]).loss.mean().min() / 3, 20)
    axes[0].set_ylabel("training loss at the end")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(RULES))
    return fig


def wall(method: str, lr: float = 1e-3, steep: float = 100.0) -> str:
    """Minimize max(far - a, steep (a - far)) from a = 0: a constant slope, then a wall.

    Return when the wall is met, and how hard.

    Where the last step before the wall ends is chance: 20 walls side by side, each an entry of
    `far`.
    """
    far = torch.linspace(50, 50.1, 20, dtype=torch.float64)
    a = torch.zeros_like(far, requires_grad=True)
    optimizer, met = OPTIMIZERS[method]([a], lr=lr), torch.zeros_like(far, dtype=torch.bool)
    steps, largest, worst = 0, 0.0, 0.0
    while not met.all():
        before = a.detach().clone()
        a.grad = torch.where(before > far, steep, -1.0).to(far)
        optimizer.step()
        steps, met = steps + 1, met | (a.detach() > far)
        largest = max(largest, (a.detach() - before).abs().max().item() / lr)
        worst = max(worst, (steep * (a.detach() - far)).max().item())
    return f"| {method} | {steps} | {largest:.3g} | {worst:.2g} |"


def settings() -> list[tuple[str, str]]:
    """Every batch size with its methods, in the order of the file."""
    return [(batch, method) for batch in EPOCHS for method in OPTIMIZERS]


def main():
    torch.set_num_threads(1)
    digits = load_digits()
    X, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
    start, frames, file = time.perf_counter(), [], HERE / "learning_rates.csv"
    words, kept = sys.argv[1:], pd.read_csv(file, dtype={"batch": str}) if sys.argv[1:] else None
    for batch, method in settings():
        again = kept is None or any(word in f"{batch} {method}" for word in words)
        if again:
            frames += [train(method, batch, lr, X, y) for lr in RATES]
            print(f"{batch} {method}: {time.perf_counter() - start:.0f} s", flush=True)
        else:
            frames.append(kept[(kept.batch == batch) & (kept.method == method)])
    results = pd.concat(frames)
    results.to_csv(file, index=False, float_format="%.6g")
    results["lr"] = np.array(RATES)[
        np.abs(np.log(results.lr.to_numpy()[:, None] / RATES)).argmin(1)
    ]  # of a file: rounded
    with style():
        figure(results).savefig(HERE / "learning_rates.png", dpi=220)
    print(tables(results))
    print("\n| method | steps to the wall | largest move in lr | largest loss behind it |")
    print("| --- | ---: | ---: | ---: |")
    print(
        "\n".join(wall(method) for method in ["Adam"] + [BOUNDS[bound] for bound in sorted(BOUNDS)])
    )


if __name__ == "__main__":
    main()
