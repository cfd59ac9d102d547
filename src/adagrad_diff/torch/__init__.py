"""AdaGrad-Diff for PyTorch: optimizers with exact proximal steps.

They replace `torch.optim.Adagrad`, `Adam` and `AdamW`.

>>> import torch
>>> from adagrad_diff.torch import L1, AdaGradDiff
>>> model = torch.nn.Linear(3, 1)
>>> optimizer = AdaGradDiff(model.parameters(), lr=0.1, penalty=L1(0.01))
>>> model(torch.ones(2, 3)).square().mean().backward()
>>> optimizer.step()
"""

from .._messages import require

require("torch", "torch")

from .adagrad_diff import AdaGradDiff  # noqa: E402
from .adam_diff import AdamDiff, AdamWDiff  # noqa: E402
from .penalties import L1, Box, ElasticNet, GroupL2, NonNegative, Penalty, Ridge  # noqa: E402

__all__ = [
    "L1",
    "AdaGradDiff",
    "AdamDiff",
    "AdamWDiff",
    "Box",
    "ElasticNet",
    "GroupL2",
    "NonNegative",
    "Penalty",
    "Ridge",
]
