"""
Parameter groups and a schedule as in timm
==========================================

Every layer of a vision transformer has its own learning rate, by the key ``lr_scale`` of its group
that the schedule reads. Biases and norms do not decay, and matrices have a penalty.
"""

import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from adagrad_diff.torch import L1, AdamWDiff

EPOCHS, WARMUP, RATE, LAYER_DECAY = 40, 5, 3e-3, 0.75


class VisionTransformer(nn.Module):
    def __init__(self, width=32, depth=2, patch=4):
        super().__init__()
        self.patches = nn.Conv2d(1, width, patch, stride=patch)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 2, 64, dropout=0.0, batch_first=True)
            for _ in range(depth)
        )
        self.head = nn.Linear(width, 2)

    def forward(self, images):
        x = self.patches(images).flatten(2).mT
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


def layer_groups(model):
    """Return groups by layer, from the patches to the head, and by whether they decay."""
    layers = [model.patches, *model.blocks, model.head]
    groups = []
    for k, layer in enumerate(layers):
        matrices = [p for p in layer.parameters() if p.ndim > 1]
        others = [p for p in layer.parameters() if p.ndim <= 1]
        scale = LAYER_DECAY ** (len(layers) - 1 - k)
        groups.append(
            {"params": matrices, "lr_scale": scale, "weight_decay": 0.05, "penalty": L1(1e-4)}
        )
        groups.append({"params": others, "lr_scale": scale, "weight_decay": 0.0})
    return groups


def set_rates(optimizer, epoch):
    rate = RATE * min(1.0, (epoch + 1) / WARMUP) * 0.5 * (1 + math.cos(math.pi * epoch / EPOCHS))
    for group in optimizer.param_groups:
        group["lr"] = rate * group["lr_scale"]


def main():
    torch.manual_seed(0)
    model = VisionTransformer()
    optimizer = AdamWDiff(layer_groups(model), lr=RATE)
    images = torch.randn(128, 1, 8, 8)
    labels = (images[..., :4].mean((1, 2, 3)) > images[..., 4:].mean((1, 2, 3))).long()
    losses = []
    for epoch in range(EPOCHS):
        set_rates(optimizer, epoch)
        optimizer.zero_grad()
        loss = cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"The loss fell from {losses[0]:.3f} to {losses[-1]:.3f}.")
    for group, described in zip(optimizer.param_groups, optimizer.step_sizes(), strict=True):
        median = described["quantiles"][2]
        print(f"median step size at lr_scale {group['lr_scale']:.2f}: {median:.2g}")
    assert losses[-1] < 0.2 * losses[0]


if __name__ == "__main__":
    main()
