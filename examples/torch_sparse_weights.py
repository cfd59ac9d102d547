"""
Sparse weights in PyTorch: not small, but zero
==============================================

An L1 penalty, by its exact proximal step, leaves most of a network's weights at zero.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from adagrad_diff.experiments.style import GREY, style
from adagrad_diff.torch import L1, AdaGradDiff

STEPS, LR = 400, 0.05


def digits():
    """Images of 8 x 8 pixels as vectors, and what they show: for training, and for testing."""
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
    return [
        torch.tensor(part, dtype=torch.float32 if part.ndim == 2 else torch.long) for part in parts
    ]


def train(lam, X, y):
    """Return a network with a penalty on its weights, and without one on its biases."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    weights, biases = ([p for p in model.parameters() if p.ndim == ndim] for ndim in (2, 1))
    optimizer = AdaGradDiff([{"params": weights, "penalty": L1(lam)}, {"params": biases}], lr=LR)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(X), y).backward()
        optimizer.step()
    return model, torch.cat([p.detach().flatten() for p in weights])


def picture(layers):
    """Which of the weights from 64 pixels to 64 units are left."""
    with style():
        _, axes = plt.subplots(
            1, len(layers), figsize=(5.6, 2.2), layout="constrained", sharey=True
        )
        for ax, (lam, weight) in zip(axes, layers.items(), strict=True):
            ax.imshow(weight != 0, cmap="Blues", vmin=0, vmax=1.3, interpolation="nearest")
            ax.set(title=f"lam = {lam:g}", xlabel="pixel")
            ax.grid(False)
        axes[0].set_ylabel("unit")
        axes[-1].text(
            1.04,
            0.5,
            "white: exactly zero",
            rotation=90,
            va="center",
            color=GREY,
            transform=axes[-1].transAxes,
        )
        plt.show()


def main():
    torch.set_num_threads(1)  # the fastest for so small a network
    X, X_test, y, y_test = digits()
    layers = {}
    for lam in (0.0, 3e-4, 1e-3):
        model, weights = train(lam, X, y)
        share = (weights == 0).double().mean().item()
        accuracy = (model(X_test).argmax(1) == y_test).double().mean().item()
        print(
            f"lam = {lam:g}: {share:.1%} of the weights are exactly zero, {accuracy:.1%} of the test images are recognised"
        )
        assert accuracy > 0.9
        layers[lam] = model[0].weight.detach().numpy()
    assert share > 0.5
    picture(layers)


if __name__ == "__main__":
    main()
