"""
How much does the learning rate matter? A small MLP and a small transformer
===========================================================================

`sensitivity` runs a training function with many methods, learning rates and seeds. It keeps
complete runs if it is given a checkpoint, and takes processes (`n_jobs=2`) or a Dask client.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

from adagrad_diff import sensitivity
from adagrad_diff.torch import AdaGradDiff, AdamDiff

OPTIMIZERS = {
    "AdaGradDiff": AdaGradDiff,
    "AdaGrad": torch.optim.Adagrad,
    "AdamDiff": AdamDiff,
    "Adam": torch.optim.Adam,
}
RATES, SEEDS = [1e-3, 1e-2, 1e-1], 2
DIGITS, LENGTH, WIDTH = 10, 6, 32  # of the transformer's sequences, and of its vectors


class Transformer(nn.Module):
    """One layer of self-attention over digits and their positions."""

    def __init__(self):
        super().__init__()
        self.digit, self.place = nn.Embedding(DIGITS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        options = {"dim_feedforward": 2 * WIDTH, "dropout": 0.0, "batch_first": True}
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, **options)
        self.head = nn.Linear(WIDTH, DIGITS)

    def forward(self, x):
        return self.head(self.layer(self.digit(x) + self.place(torch.arange(LENGTH))))


def descend(model, loss, method, lr, steps):
    """Return the loss before training and after each step."""
    optimizer, losses = OPTIMIZERS[method](model.parameters(), lr=lr), []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return [*losses, loss().item()]


def mlp(method, lr, seed):
    """Recognize handwritten digits, with all images in every step."""
    torch.manual_seed(seed)
    images, labels = (torch.from_numpy(part) for part in load_digits(return_X_y=True))
    images = (images / 16).float()
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    return descend(model, lambda: cross_entropy(model(images), labels), method, lr, steps=50)


def transformer(method, lr, seed):
    """Reverse sequences of six digits."""
    torch.manual_seed(seed)
    model, x = Transformer(), torch.randint(DIGITS, (128, LENGTH))
    loss = lambda: cross_entropy(model(x).flatten(0, 1), x.flip(1).flatten())
    return descend(model, loss, method, lr, steps=25)


def main():
    torch.set_num_threads(1)  # the fastest for so small networks
    _, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for axis, train in zip(axes, (mlp, transformer), strict=True):
        found = sensitivity(train, rules=list(OPTIMIZERS), etas=RATES, starts=SEEDS)
        print(found, end="\n\n")
        for method, losses in found.gap().mean("seed").groupby("rule"):
            axis.loglog(found.etas, losses.squeeze(), ".-", label=method)
        axis.set(title=train.__name__, xlabel="learning rate", ylabel="loss at the end")
    axes[0].legend()
    plt.show()


if __name__ == "__main__":
    main()
