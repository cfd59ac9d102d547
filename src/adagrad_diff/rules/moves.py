"""How far one step may go, in learning rates, where old differences are forgotten. One number for PyTorch and optax.

The sum of AdaGrad-Diff never shrinks, and its steps never grow. An exponential average does: as long as a gradient m stays the
same, the squares of its differences are averages over more and more zeros, and m / (sqrt(v) + eps) grows without end. So the
weights of the averaging rules (`AdamDiff`, `decay`) are

    w = max( sqrt(v), ||m|| / max_move ) + eps

with the norm over the block that shares the weight: no coordinate is moved by its gradient by more than max_move learning
rates, and no weight is so small that a penalty wipes what it stands for.
"""

MAX_MOVE = (
    30.0  # keeps nearly all that small learning rates gain: docs/learning_rates.md has the study
)
