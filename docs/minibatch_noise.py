"""Minibatch noise in differences of gradients, and two ways to remove it.

Run `python docs/minibatch_noise.py`.

Small networks in NumPy; all methods, learning rates and seeds of a task train side by side. Writes
minibatch_noise.csv and the tables of minibatch_noise.md. Two tasks were used to choose the decay of
the moving average; the others were run once, afterwards.
"""

import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes, load_digits, load_wine

from adagrad_diff.experiments.scores import decades
from adagrad_diff.experiments.tables import markdown_table

HERE = Path(__file__).parent
SEEDS = 5
RATES = np.logspace(-3, 1, 9)
BATCHES = {16: 600, 64: 300, 256: 200, 0: 200}  # batch size (0: all samples) -> steps
BETA1, BETA2, EPS, MAX_MOVE = 0.9, 0.999, 1e-8, 30.0
DECAY = 0.9  # of the moving average; 0.5 and 0.99 are in the table of the selection
ADA = {"AdaGrad": "g", "AdaGradDiff": "difference", "mean": "mean", "min": "min"}
ADAM = {"Adam": "g", "AdamDiff": "difference", "Adam mean": "mean", "Adam min": "min"}
SELECTION, HELD_OUT = ("digits", "logistic"), ("diabetes", "spirals", "wine")
TABLES = "## Tables"  # where they begin in minibatch_noise.md


def tasks():
    """name -> (X, targets, hidden units; zero for a linear model). One-hot targets are classes."""
    rng = np.random.default_rng(0)
    X, y = load_digits(return_X_y=True)
    yield "digits", X[:512] / 16, np.eye(10)[y[:512]], 16
    X = rng.standard_normal((512, 20))
    y = (X @ rng.standard_normal(20) + 2 * rng.standard_normal(512) > 0).astype(int)
    yield "logistic", X * np.logspace(-1, 0.5, 20), np.eye(2)[y], 0
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes", X / X.std(axis=0), ((y - y.mean()) / y.std())[:, None], 16
    angle, arm = 3 * np.sqrt(rng.random(512)), rng.integers(0, 2, 512)
    turn = 2 * angle + np.pi * arm
    X = angle[:, None] * np.column_stack([np.cos(turn), np.sin(turn)]) / 2
    yield "spirals", X + 0.05 * rng.standard_normal(X.shape), np.eye(2)[arm], 16
    X, y = load_wine(return_X_y=True)
    yield "wine", (X - X.mean(axis=0)) / X.std(axis=0), np.eye(3)[y], 16


class Network:
    """One hidden layer of tanh units or none; parameters have shape (runs, seeds, size)."""

    def __init__(self, inputs, hidden, outputs):
        layers = [inputs, hidden, outputs] if hidden else [inputs, outputs]
        self.shapes = [(a + 1, b) for a, b in pairwise(layers)]
        self.size = sum(a * b for a, b in self.shapes)

    def start(self, seed):
        rng = np.random.default_rng(seed)
        weights = [rng.standard_normal((a, b)) / np.sqrt(a) for a, b in self.shapes]
        return np.concatenate([w.ravel() for w in weights])

    def loss_and_gradient(self, theta, X, targets):
        """Losses (runs, seeds) and gradients; X has shape (seeds, samples, inputs)."""
        weights, at = [], 0
        for a, b in self.shapes:
            weights.append(theta[..., at : at + a * b].reshape(*theta.shape[:-1], a, b))
            at += a * b
        ones, inputs = (
            np.ones((*X.shape[:-1], 1)),
            [np.concatenate([X, np.ones((*X.shape[:-1], 1))], -1)],
        )
        z = inputs[0] @ weights[0]
        if len(weights) == 2:
            hidden = np.tanh(z)
            ones = np.broadcast_to(ones, (*hidden.shape[:-1], 1))
            inputs.append(np.concatenate([hidden, ones], -1))
            z = inputs[1] @ weights[1]
        count = X.shape[-2]
        if targets.shape[-1] == 1:
            d = z - targets
            loss, d = 0.5 * np.mean(d[..., 0] ** 2, axis=-1), d / count
        else:
            z = z - z.max(axis=-1, keepdims=True)
            p = np.exp(z)
            p /= p.sum(axis=-1, keepdims=True)
            loss = -np.mean(np.sum(targets * np.log(p + 1e-30), axis=-1), axis=-1)
            d = (p - targets) / count
        gradients = [np.swapaxes(inputs[-1], -1, -2) @ d]
        if len(weights) == 2:
            d = (d @ np.swapaxes(weights[1][..., :-1, :], -1, -2)) * (1 - hidden**2)
            gradients.insert(0, np.swapaxes(inputs[0], -1, -2) @ d)
        return loss, np.concatenate([g.reshape(*theta.shape[:-1], -1) for g in gradients], -1)


def squares(kind, g, memory, decay):
    """What is accumulated, and the new memory: the last gradient, or an average of past ones."""
    difference = (g - memory) ** 2
    if kind == "g":
        return g**2, memory
    if kind == "min":
        return np.minimum(difference, g**2), g
    return difference, g if kind == "difference" else decay * memory + (1 - decay) * g


def train(network, X, targets, kind, adam, batch, steps, decay=DECAY):
    """Final losses (rates, seeds) on all samples; infinite where a run diverged."""
    samples, eta = len(X), RATES[:, None, None]
    theta = np.stack([network.start(seed) for seed in range(SEEDS)])
    theta = np.repeat(theta[None], len(RATES), axis=0)
    memory, total, mean = np.zeros_like(theta), np.zeros_like(theta), np.zeros_like(theta)
    draws = [np.random.default_rng(100 + seed) for seed in range(SEEDS)]
    whole = np.broadcast_to(X, (SEEDS, *X.shape)), np.broadcast_to(targets, (SEEDS, *targets.shape))
    queue = [np.zeros(0, int)] * SEEDS
    for n in range(1, steps + 1):
        data = whole
        if batch and batch < samples:  # without replacement within an epoch
            for k, rng in enumerate(draws):
                if len(queue[k]) < batch:
                    queue[k] = rng.permutation(samples)
            rows = np.stack([each[:batch] for each in queue])
            queue = [each[batch:] for each in queue]
            data = X[rows], targets[rows]
        _, g = network.loss_and_gradient(theta, *data)
        new, memory = squares(kind, g, memory, decay)
        if adam:
            mean = BETA1 * mean + (1 - BETA1) * g
            total = BETA2 * total + (1 - BETA2) * new
            m, root = mean / (1 - BETA1**n), np.sqrt(total / (1 - BETA2**n))
            bound = 0.0 if kind == "g" else np.abs(m) / MAX_MOVE
            theta = theta - eta * m / (EPS + np.maximum(root, bound))
        else:
            total = total + new
            theta = theta - eta * g / (EPS + np.sqrt(total))
    loss, _ = network.loss_and_gradient(theta, *whole)
    return np.where(np.isfinite(loss), loss, np.inf)


def study(names, methods):
    """One row per task, batch size and method: best learning rate, loss there, and ranges."""
    rows = []
    for name, X, targets, hidden in tasks():
        if name not in names:
            continue
        network = Network(X.shape[1], hidden, targets.shape[1])
        for batch, steps in BATCHES.items():
            if batch >= len(X):
                continue
            for method, (kind, adam, decay) in methods.items():
                losses = train(network, X, targets, kind, adam, batch, steps, decay)
                means = losses.mean(axis=1)
                best = int(np.argmin(means))
                row = {"task": name, "batch": batch or len(X), "method": method}
                row |= {"best lr": RATES[best], "loss": means[best]}
                row["se"] = losses[best].std(ddof=1) / np.sqrt(SEEDS)
                row["within 2x"] = decades(RATES, means, 2 * means[best])[0]
                rows.append(
                    row | {f"loss at {lr:.3g}": v for lr, v in zip(RATES, means, strict=True)}
                )
            print(f"{name}, batch {batch or 'all'}: {time.process_time():.0f} s", flush=True)
    return pd.DataFrame(rows)


def wide(frame, column, spec):
    """A table with one row per task and batch size, one column per method."""
    table = frame.pivot_table(column, ["task", "batch"], "method", sort=False)
    rows = [
        [*map(str, index), *(f"{v:{spec}}" for v in row)]
        for index, row in zip(table.index, table.values, strict=True)
    ]
    return "\n".join(markdown_table(["task", "batch", *table.columns], rows, 1))


def main(what="all"):
    np.seterr(all="ignore")
    if what == "select":
        methods = {"AdaGrad": ("g", False, 0.0), "AdaGradDiff": ("difference", False, 0.0)}
        methods |= {f"mean {decay}": ("mean", False, decay) for decay in (0.5, 0.9, 0.99)}
        methods["min"] = ("min", False, 0.0)
        found = study(SELECTION, methods)
        print(wide(found, "loss", ".3g"), wide(found, "within 2x", ".2f"), sep="\n\n")
        found.to_csv(HERE / "minibatch_noise_selection.csv", index=False, float_format="%.5g")
        return
    methods = {name: (kind, False, DECAY) for name, kind in ADA.items()}
    methods |= {name: (kind, True, DECAY) for name, kind in ADAM.items()}
    found = study((*SELECTION, *HELD_OUT), methods)
    found.to_csv(HERE / "minibatch_noise.csv", index=False, float_format="%.5g")
    parts = []
    for title, names in (("sums of squares", ADA), ("averages of squares", ADAM)):
        part = found[found.method.isin(names)]
        parts += [f"### Loss at the best learning rate: {title}", wide(part, "loss", ".3g")]
        parts += [
            f"### Decades within 2x of the method's own best: {title}",
            wide(part, "within 2x", ".2f"),
        ]
    page = HERE / "minibatch_noise.md"
    if page.exists():
        text = page.read_text(encoding="utf-8").partition(TABLES)[0]
        page.write_text(f"{text}{TABLES}\n\n" + "\n\n".join(parts) + "\n", encoding="utf-8")
    print(*parts, f"CPU time: {time.process_time():.0f} s", sep="\n\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
