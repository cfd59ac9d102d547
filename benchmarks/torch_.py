"""The PyTorch optimizers beside torch's own: float32 on two CPU threads."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from random import sample
from types import SimpleNamespace
from typing import Any

from ._timing import Row, fresh, optional, peak_memory, race

LARGE = [(1024, 1024)] * 20 + [(1024,)] * 40
SMALL = [(256,)] * 2000


PROCESSES = 9  # a virtual machine's memory is faster at one time than at another: by half, for seconds, for all alike


def steppers(shapes: list, **optimizers: Callable) -> dict[str, Callable]:
    """The step of each optimizer, every one with parameters of its own."""
    import torch

    torch.set_num_threads(2)
    steps = {}
    for name, make in optimizers.items():
        parameters = [torch.randn(shape).requires_grad_() for shape in shapes]
        for p in parameters:
            p.grad = torch.randn_like(p)
        steps[name] = make(parameters).step
    return steps


def reducing(parameters: list) -> SimpleNamespace:
    """AdaGradDiff with reduce="storm" and a closure that costs nothing: its gradients are there already."""
    from adagrad_diff.torch import AdaGradDiff

    optimizer, grads = AdaGradDiff(parameters, reduce="storm"), [p.grad for p in parameters]

    def closure() -> None:
        for p, g in zip(parameters, grads, strict=True):
            p.grad = g

    return SimpleNamespace(step=lambda: optimizer.step(closure))


def one_process() -> dict[str, float]:
    """Seconds per step of 21 million parameters, and of reading and writing as much memory, in this process."""
    import torch

    from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff

    optimizers = {
        "ours": AdaGradDiff,
        "l1": lambda p: AdaGradDiff(p, penalty=L1(1e-4)),
        "adam_diff": AdamDiff,
        "storm": reducing,
        "adagrad": lambda p: torch.optim.Adagrad(p, fused=True),
        "adam": lambda p: torch.optim.Adam(p, fused=True),
    }
    names = sample(
        list(optimizers), len(optimizers)
    )  # memory is given out in another order each time
    times = race(phases=3, **steppers(LARGE, **{name: optimizers[name] for name in names}))
    return times | {"seven": traffic(3), "five": traffic(2)}


def large() -> Iterator[Row]:
    """21 million parameters: what counts is how often memory is read and written."""
    if not optional("torch"):
        return
    command = [
        sys.executable,
        "-c",
        "import json; from benchmarks.torch_ import one_process; print(json.dumps(one_process()))",
    ]
    outputs = [
        subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for _ in range(PROCESSES)
    ]
    runs = [json.loads(output) for output in outputs]

    def row(name: str, ours: str, peer: str, theirs: str, **limits: Any) -> Row:
        """From the run whose ratio is the median."""
        run = sorted(runs, key=lambda times: times[ours] / times[theirs])[PROCESSES // 2]
        return Row(name, run[ours], peer, run[theirs], **limits)

    yield row(
        "one step, 20 x (1024 x 1024) + 40 x 1024", "ours", "4 reads and 3 writes alone", "seven"
    )
    yield row("  (Adagrad(fused=True))", "adagrad", "3 reads and 2 writes alone", "five")
    yield row(
        f"  median of {PROCESSES} processes", "ours", "Adagrad(fused=True)", "adagrad", must=1.4
    )  # seven arrays for five
    yield row("", "ours", "Adam(fused=True)", "adam", must=1.0)
    yield row("  with L1", "l1", "without", "ours", must=1.15)
    yield row("  AdamDiff", "adam_diff", "Adam(fused=True)", "adam")
    # Seven arrays, and twelve: weights kept, changed and put back (2 each), two gradients joined to the direction (3 each).
    # Where memory is written that was not read, the processor reads it all the same: four more.
    yield row(
        "  reduce='storm', beside its two evaluations",
        "storm",
        "without",
        "ours",
        must=4.5,
        aim=23 / 7,
    )


def foreach() -> Iterator[Row]:
    """The same by operations on lists."""
    if not optional("torch"):
        return
    import torch

    from adagrad_diff.torch import AdaGradDiff

    steps = steppers(
        LARGE,
        ours=lambda p: AdaGradDiff(p, foreach=True),
        adagrad=lambda p: torch.optim.Adagrad(p, foreach=True),
    )
    times = race(**steps)
    yield Row(
        "one step with foreach=True",
        times["ours"],
        "Adagrad(foreach=True)",
        times["adagrad"],
        must=1.0,
    )


def after_torch() -> Iterator[Row]:
    """The same right after an operation of torch, as in training: its threads are still awake and must not be in the way."""
    if not optional("torch"):
        return
    import torch

    from adagrad_diff.torch import AdaGradDiff

    a = torch.randn(1024, 1024)
    steps = steppers(LARGE, ours=AdaGradDiff, adam=lambda p: torch.optim.Adam(p, fused=True))
    times = race(**{name: lambda step=step: (a @ a, step()) for name, step in steps.items()})
    yield Row("product and step", times["ours"], "product and Adam(fused=True)", times["adam"])


def traffic(written: int) -> float:
    """Seconds to read one array and read and write `written` others, 20 M float32 each: the physical limit of a step.

    In memory of PyTorch's: large arrays of NumPy's lie in huge pages, which saves a tenth.
    """
    import torch

    from adagrad_diff._threads import over_rows
    from adagrad_diff.kernels import compiled

    @compiled
    def two(g, a, b, c):
        for i in range(g.size):
            a[i] += g[i]
            b[i] += g[i]

    @compiled
    def three(g, a, b, c):
        for i in range(g.size):
            a[i] += g[i]
            b[i] += g[i]
            c[i] += g[i]

    arrays, kernel = (
        [torch.ones(20 << 20).numpy() for _ in range(4)],
        three if written == 3 else two,
    )
    work = lambda part, lo, hi: kernel(*(array[lo:hi] for array in arrays))
    return race(pass_=lambda: over_rows(work, 20 << 20, 2))["pass_"]


def small() -> Iterator[Row]:
    """Many small tensors: what counts is the time per tensor in Python."""
    if not optional("torch"):
        return
    import torch

    from adagrad_diff.torch import AdaGradDiff, AdamDiff

    peers = {
        "adagrad": lambda p: torch.optim.Adagrad(p, fused=True),
        "adam": lambda p: torch.optim.Adam(p, fused=True),
    }
    times = race(**steppers(SMALL, ours=AdaGradDiff, adam_diff=AdamDiff, **peers))
    yield Row(
        "one step, 2000 tensors of 256",
        times["ours"],
        "Adagrad(fused=True)",
        times["adagrad"],
        must=0.5,
        aim=0.35,
    )
    yield Row("  AdamDiff", times["adam_diff"], "Adam(fused=True)", times["adam"])


def first_step() -> Iterator[Row]:
    """In a new interpreter, when the kernel was compiled before."""
    if not optional("torch"):
        return
    setup = """
import torch
from adagrad_diff.torch import AdaGradDiff
p = torch.randn(1000, requires_grad=True)
p.grad = torch.randn(1000)
optimizer = AdaGradDiff([p])
"""
    with tempfile.TemporaryDirectory() as cache:
        fresh(setup, "optimizer.step()", 1, NUMBA_CACHE_DIR=cache)
        yield Row(
            "first step, compiled before",
            fresh(setup, "optimizer.step()", 3, NUMBA_CACHE_DIR=cache),
            "budget",
            1.0,
            must=1.0,
        )


def memory() -> Iterator[Row]:
    """Beyond the two buffers, which are there after the first step."""
    if not optional("torch"):
        return
    from adagrad_diff.torch import AdaGradDiff

    step = steppers(LARGE, ours=AdaGradDiff)["ours"]
    yield Row(
        "memory of a step (NumPy's share)",
        peak_memory(step),
        "1% of the parameters",
        4 * 21e4,
        must=1.0,
        unit="B",
    )


CASES = [large, foreach, after_torch, small, first_step, memory]
