"""
A training loop with Hugging Face accelerate
============================================

Gradients of two batches are accumulated and clipped, and the state is saved and loaded.
Needs ``pip install accelerate``.
"""

import tempfile

import torch
from accelerate import Accelerator
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

from adagrad_diff.torch import AdaGradDiff, GroupL2


def setup(accelerator):
    torch.manual_seed(0)
    X = torch.randn(256, 10)
    y = X[:, :2].prod(1, keepdim=True)  # two inputs matter
    model = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    groups = [
        {"params": [model[0].weight], "penalty": GroupL2(5e-3)},  # removes hidden units
        {"params": [model[0].bias, *model[2].parameters()]},
    ]
    optimizer = AdaGradDiff(groups, lr=0.05)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=200, gamma=0.5)
    loader = DataLoader(TensorDataset(X, y), batch_size=64)
    return accelerator.prepare(model, optimizer, loader, schedule)


def train(accelerator, model, optimizer, loader, schedule, epochs):
    for _ in range(epochs):
        for X, y in loader:
            with accelerator.accumulate(model):
                loss = mse_loss(model(X), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
    return loss.item()


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    parts = setup(accelerator)
    first = train(accelerator, *parts, epochs=1)
    train(accelerator, *parts, epochs=99)
    with tempfile.TemporaryDirectory() as directory:
        accelerator.save_state(directory)
        whole = train(accelerator, *parts, epochs=100)
        accelerator.load_state(directory)
        resumed = train(accelerator, *parts, epochs=100)
    print(
        f"The loss fell from {first:.3f} to {whole:.3f}, and after a checkpoint to {resumed:.3f}."
    )
    weight = parts[0][0].weight
    zero = int((weight == 0).all(1).sum())
    print(f"{zero} of {len(weight)} hidden units were removed.")
    assert whole == resumed
    assert whole < 0.2 * first


if __name__ == "__main__":
    main()
