"""
A small transformer in PyTorch
==============================

It learns to continue a text: AdamW against AdamWDiff, and AdaGradDiff with L1 on the embeddings.
With what a real script has: groups, warm-up and decay of the learning rate, clipped and accumulated
gradients, a checkpoint in the middle of the run. The text is made here.
"""

import io

import matplotlib.pyplot as plt
import torch
from torch import nn

from adagrad_diff.experiments.style import style, style_of
from adagrad_diff.torch import L1, AdaGradDiff, AdamWDiff

WORDS, NEVER, CONTEXT, WIDTH = (
    300,
    60,
    12,
    32,
)  # the last NEVER words of the dictionary do not occur in the text
STEPS, BATCH, PARTS, LAM = 120, 32, 2, 3e-4  # a step adds up the gradients of PARTS batches
METHODS = {
    "AdamW": (torch.optim.AdamW, 1e-2, None),
    "AdamWDiff": (AdamWDiff, 1e-2, None),
    "AdaGradDiff with L1": (AdaGradDiff, 1e-1, L1(LAM)),
}


def text(length, seed):
    """Half of the words follow from the one before; the others are chatter, some of it rare."""
    generator = torch.Generator().manual_seed(seed)
    follower = torch.randperm(WORDS - NEVER, generator=torch.Generator().manual_seed(0))
    chatter = (torch.rand(length, generator=generator) ** 2 * (WORDS - NEVER)).long()
    follows = torch.rand(length, generator=generator) < 0.5
    words = chatter.tolist()
    for k in range(1, length):
        if follows[k]:
            words[k] = int(follower[words[k - 1]])
    return torch.tensor(words)


class Model(nn.Module):
    """One block: attention to the words so far, and two layers."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.layers = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )
        self.head = nn.Linear(WIDTH, WORDS)
        self.future = nn.Buffer(
            torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1), persistent=False
        )

    def forward(self, words):
        x = self.words(words) + self.places.weight
        y = self.before(x)
        x = x + self.attention(y, y, y, attn_mask=self.future, need_weights=False)[0]
        return self.head(x + self.layers(self.after(x)))


def setup(method):
    """The model, its optimizer with three groups, and the schedule."""
    kind, lr, penalty = METHODS[method]
    torch.manual_seed(0)
    model = Model()
    embeddings = [model.words.weight]
    matrices = [p for name, p in model.named_parameters() if p.ndim > 1 and name != "words.weight"]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    groups = [
        {"params": embeddings, "weight_decay": 0.0},
        {"params": matrices},
        {"params": vectors, "weight_decay": 0.0},
    ]
    if penalty is not None:
        groups[0]["penalty"] = penalty
    decay = {} if kind is AdaGradDiff else {"weight_decay": 0.01}
    optimizer = kind(groups, lr=lr, **decay)
    warm_up = STEPS // 10
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: min((n + 1) / warm_up, 1.0 - 0.9 * n / STEPS)
    )
    return model, optimizer, schedule


def train(parts, words, steps):
    """The loss of every step, and the share of embedding entries that are exactly zero."""
    model, optimizer, schedule = parts
    losses, zeros = [], []
    for step in steps:
        optimizer.zero_grad()
        total = 0.0
        for part in range(PARTS):
            generator = torch.Generator().manual_seed(
                PARTS * step + part
            )  # the batch belongs to the step
            starts = torch.randint(len(words) - CONTEXT - 1, (BATCH, 1), generator=generator)
            chosen = words[starts + torch.arange(CONTEXT + 1)]
            loss = (
                nn.functional.cross_entropy(
                    model(chosen[:, :-1]).flatten(0, 1), chosen[:, 1:].flatten()
                )
                / PARTS
            )
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(total)
        zeros.append((model.words.weight == 0).double().mean().item())
    return losses, zeros


def resumed(method, words):
    """The same run with a checkpoint in its middle, which goes on in new objects."""
    parts = setup(method)
    losses, zeros = train(parts, words, range(STEPS // 2))
    file = io.BytesIO()
    torch.save([part.state_dict() for part in parts], file)
    file.seek(0)
    parts = setup(method)
    for part, state in zip(parts, torch.load(file, weights_only=True), strict=True):
        part.load_state_dict(state)
    more = train(parts, words, range(STEPS // 2, STEPS))
    return parts[0], losses + more[0], zeros + more[1]


def picture(results):
    looks = {
        "AdamW": ("Adam", "-"),
        "AdamWDiff": ("AdamDiff", "--"),
        "AdaGradDiff with L1": ("AdaGrad", "-"),
    }
    with style():
        _, (left, right) = plt.subplots(1, 2, figsize=(5.8, 2.7), layout="constrained")
        for method, (losses, zeros) in results.items():
            rule, dash = looks[method]
            left.plot(losses, dash, label=method, color=style_of(rule)["color"])
            right.plot([100 * share for share in zeros], dash, color=style_of(rule)["color"])
        left.set(xlabel="step", ylabel="loss of the batch", title="Next word")
        right.set(xlabel="step", ylabel="percent exactly zero", title="Embeddings")
        left.legend()
        plt.show()


def main():
    torch.set_num_threads(1)  # the fastest for so small a model
    words, results = text(20_000, seed=1), {}
    for method in METHODS:
        model, _, _ = parts = setup(method)
        initial = model.words.weight.detach()[-NEVER:].clone()
        losses, zeros = train(parts, words, range(STEPS))
        results[method] = losses, zeros
        print(
            f"{method}: loss {losses[0]:.2f} -> {sum(losses[-10:]) / 10:.2f}, {zeros[-1]:.0%} of the embeddings zero"
        )
        assert torch.equal(
            model.words.weight[-NEVER:], initial
        )  # words that never occur are left alone
    again, *same = resumed(method, words)  # the last one
    assert (losses, zeros) == tuple(same)
    assert all(
        torch.equal(p, q) for p, q in zip(model.parameters(), again.parameters(), strict=True)
    )
    print("The same run through a checkpoint ended in the same bits.")
    picture(results)


if __name__ == "__main__":
    main()
