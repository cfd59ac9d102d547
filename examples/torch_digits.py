"""Handwritten digits: a small network in PyTorch, trained by AdaGrad-Diff at three learning rates a factor 10 apart in all."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from adagrad_diff.torch import AdaGradDiff

EPOCHS, BATCH = 20, 256


def digits():
    """Images of 8 x 8 pixels as vectors, and what they show: for training, and for testing."""
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
    return [torch.tensor(part, dtype=torch.float32 if part.ndim == 2 else torch.long) for part in parts]


def main():
    torch.set_num_threads(1)  # the fastest for so small a network
    torch.manual_seed(0)
    X, X_test, y, y_test = digits()
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    accuracy = {}
    for lr in (0.03, 0.1, 0.3):
        for layer in (model[0], model[2]):
            layer.reset_parameters()
        optimizer = AdaGradDiff(model.parameters(), lr=lr)
        for _ in range(EPOCHS):
            for batch in torch.randperm(len(X)).split(BATCH):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(X[batch]), y[batch]).backward()
                optimizer.step()
        accuracy[lr] = (model(X_test).argmax(1) == y_test).double().mean().item()
        print(f"lr = {lr}: {accuracy[lr]:.1%} of the test images are recognised")
    assert min(accuracy.values()) > 0.9


if __name__ == "__main__":
    main()
