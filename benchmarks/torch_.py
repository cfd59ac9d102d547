"""The PyTorch optimizers compared with torch's own, on two CPU threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ._timing import Row, fresh, optional, race

WIDTH, LAYERS = 320, 8
LAYER = [(3, 1), (3,), (1, 1), (1,), (1,), (1,), (1,), (1,), (4, 1), (4,), (1, 4), (1,)]
TRANSFORMER = [tuple(WIDTH * n for n in shape) for shape in LAYER] * LAYERS + [(1000, WIDTH)]
SHAPES = {
    "one tensor of 20 million": [(20_000_000,)],
    "2000 tensors of 256": [(256,)] * 2000,
    "a transformer of 10 million": TRANSFORMER,
    "convolutions, channels_last": [(256, 256, 3, 3)] * 16,
}
DEFAULT_LIMIT = 1.3  # times the default step of torch.optim.Adagrad
FUSED_LIMIT = 1.1  # times the fused step of torch.optim.Adam, which has as many arrays


def steppers(name: str, dtype: Any, **optimizers: Callable) -> dict[str, Callable]:
    """Return the step of each optimizer, every one with parameters of its own."""
    import torch

    torch.set_num_threads(2)
    steps = {}
    for kind, make in optimizers.items():
        parameters = [torch.randn(shape, dtype=dtype) for shape in SHAPES[name]]
        if "channels_last" in name:
            parameters = [p.to(memory_format=torch.channels_last) for p in parameters]
        for p in parameters:
            p.requires_grad_()
            p.grad = torch.randn_like(p)
        steps[kind] = make(parameters).step
    return steps


def default() -> Iterator[Row]:
    """Compare the default steps. Half precision has buffers in single precision here."""
    if not optional("torch"):
        return
    import torch

    from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff

    for dtype in (torch.float32, torch.bfloat16):
        for name in SHAPES:
            times = race(
                **steppers(
                    name,
                    dtype,
                    ours=AdaGradDiff,
                    same=lambda p: AdaGradDiff(p, accumulator_dtype=p[0].dtype),
                    l1=lambda p: AdaGradDiff(p, penalty=L1(1e-4)),
                    loop=lambda p: AdaGradDiff(p, foreach=False),
                    adam_diff=AdamDiff,
                    adagrad=torch.optim.Adagrad,
                    adam=torch.optim.Adam,
                )
            )
            title = f"{name}, {str(dtype).removeprefix('torch.')}"
            peer = ("Adagrad", times["adagrad"])
            yield Row(title, times["ours"], *peer, must=DEFAULT_LIMIT)
            if dtype == torch.bfloat16:
                yield Row("  buffers in bfloat16", times["same"], *peer, must=DEFAULT_LIMIT)
            yield Row("  with L1", times["l1"], "without", times["ours"])
            yield Row("  one tensor after the other", times["loop"], "lists", times["ours"])
            yield Row("  AdamDiff", times["adam_diff"], "Adam", times["adam"])


def fused() -> Iterator[Row]:
    """Compare the compiled steps with the fused ones of torch."""
    if not optional("torch"):
        return
    import torch

    from adagrad_diff.torch import L1, AdaGradDiff

    for name in SHAPES:
        times = race(
            **steppers(
                name,
                torch.float32,
                ours=lambda p: AdaGradDiff(p, fused=True),
                l1=lambda p: AdaGradDiff(p, fused=True, penalty=L1(1e-4)),
                adam=lambda p: torch.optim.Adam(p, fused=True),
            )
        )
        must = FUSED_LIMIT if "20 million" in name else None
        yield Row(f"fused, {name}", times["ours"], "Adam(fused=True)", times["adam"], must=must)
        yield Row("  with L1", times["l1"], "without", times["ours"])


def first_step() -> Iterator[Row]:
    """Time the first step in a new interpreter, where nothing is compiled."""
    if not optional("torch"):
        return
    setup = """
import torch
from adagrad_diff.torch import AdaGradDiff
p = torch.randn(1000, requires_grad=True)
p.grad = torch.randn(1000)
optimizer = AdaGradDiff([p])
"""
    yield Row("first step", fresh(setup, "optimizer.step()", 3), "budget", 0.1, must=1.0)


CASES = [default, fused, first_step]
