"""
Handwritten digits: a small network in PyTorch
==============================================

Trained by AdaGrad-Diff at three learning rates, a factor 10 apart in all.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from adagrad_diff.experiments.style import METHODS, style
from adagrad_diff.torch import AdaGradDiff

EPOCHS, BATCH = 20, 256


def digits():
    """Images of 8 x 8 pixels as vectors, and what they show: for training, and for testing."""
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
    return [
        torch.tensor(part, dtype=torch.float32 if part.ndim == 2 else torch.long) for part in parts
    ]


def picture(losses):
    with style():
        _, axes = plt.subplots(figsize=(5.2, 2.8), layout="constrained")
        for (lr, values), dash in zip(losses.items(), (":", "--", "-"), strict=True):
            axes.semilogy(
                range(1, EPOCHS + 1),
                values,
                dash,
                color=METHODS["AdaGrad-Diff"]["color"],
                label=f"lr = {lr}",
            )
        axes.set(xlabel="epoch", ylabel="mean loss of its batches", xticks=range(0, EPOCHS + 1, 5))
        axes.legend()
        plt.show()


def main():
    torch.set_num_threads(1)  # the fastest for so small a network
    torch.manual_seed(0)
    X, X_test, y, y_test = digits()
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    accuracy, losses = {}, {}
    for lr in (0.03, 0.1, 0.3):
        for layer in (model[0], model[2]):
            layer.reset_parameters()
        optimizer = AdaGradDiff(model.parameters(), lr=lr)
        losses[lr] = []
        for _ in range(EPOCHS):
            seen = []
            for batch in torch.randperm(len(X)).split(BATCH):
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(X[batch]), y[batch])
                loss.backward()
                optimizer.step()
                seen.append(loss.item())
            losses[lr].append(sum(seen) / len(seen))
        accuracy[lr] = (model(X_test).argmax(1) == y_test).double().mean().item()
        print(f"lr = {lr}: {accuracy[lr]:.1%} of the test images are recognised")
    assert min(accuracy.values()) > 0.9
    picture(losses)


if __name__ == "__main__":
    main()
