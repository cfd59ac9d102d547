"""
A checkpoint in PyTorch, resumed exactly
========================================

100 steps in one go, and 60 steps, a file and 40 more, end in the same bits.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch

from adagrad_diff.experiments.style import METHODS, style
from adagrad_diff.torch import L1, AdaGradDiff

STEPS, BREAK = 100, 60


def setup():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = AdaGradDiff(model.parameters(), lr=0.1, penalty=L1(1e-4))
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.5)


def train(parts, steps):
    model, optimizer, scheduler = parts
    losses = []
    for step in steps:
        X = torch.randn(
            32, 8, generator=torch.Generator().manual_seed(step)
        )  # the batch belongs to the step
        optimizer.zero_grad()
        loss = (model(X).squeeze(1) - X.prod(1)).square().mean()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


def picture(whole, before, after):
    with style():
        _, axes = plt.subplots(figsize=(5.2, 2.6), layout="constrained")
        axes.semilogy(
            whole,
            color=METHODS["AdaGrad-Diff"]["color"],
            linewidth=3,
            alpha=0.35,
            label="in one go",
        )
        axes.semilogy(before, color="black", linewidth=0.8, label="until the checkpoint")
        axes.semilogy(
            range(BREAK, STEPS), after, "--", color="black", linewidth=0.8, label="resumed from it"
        )
        axes.axvline(BREAK, color="black", linewidth=0.5, linestyle=":")
        axes.set(xlabel="step", ylabel="loss of the batch")
        axes.legend()
        plt.show()


def main():
    through = setup()
    whole = train(through, range(STEPS))

    first = setup()
    before = train(first, range(BREAK))
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "checkpoint.pt"
        torch.save([part.state_dict() for part in first], file)
        resumed = setup()
        for part, state in zip(resumed, torch.load(file, weights_only=True), strict=True):
            part.load_state_dict(state)
    after = train(resumed, range(BREAK, STEPS))

    same = all(
        torch.equal(p, q)
        for p, q in zip(through[0].parameters(), resumed[0].parameters(), strict=True)
    )
    outcome = "equal" if same else "NOT equal"
    print(
        f"{STEPS} steps, and {BREAK} + {STEPS - BREAK} through a checkpoint: the parameters are {outcome}"
    )
    assert same
    assert whole == before + after
    picture(whole, before, after)


if __name__ == "__main__":
    main()
