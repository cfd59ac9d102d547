"""Every scheduler of torch, alone and in company, as functions of an optimizer: those that torch's own tests try."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from torch.optim import lr_scheduler as lr
from torch.optim.swa_utils import SWALR

STEPS = 16  # so many steps show every milestone below


class Slower:
    """A factor per step, as an object: its attributes are saved with the scheduler."""

    def __init__(self, factor: float):
        self.factor = factor

    def __call__(self, n: int) -> float:
        return self.factor**n


def half(n: int) -> float:
    return 0.5 ** (n // 4)


def nine_tenths(n: int) -> float:
    return 0.9


# One scheduler each: by these words, and with nothing else to say.
SINGLE: dict[str, Callable[[Any], Any]] = {
    "step": partial(lr.StepLR, step_size=3),
    "milestones": partial(lr.MultiStepLR, milestones=[2, 5, 9]),
    "constant": partial(lr.ConstantLR, factor=0.5, total_iters=5),
    "linear": partial(lr.LinearLR, start_factor=0.25, end_factor=0.6, total_iters=4),
    "exponential": partial(lr.ExponentialLR, gamma=0.9),
    "polynomial": partial(lr.PolynomialLR, total_iters=5, power=0.9),
    "cosine": partial(lr.CosineAnnealingLR, T_max=10, eta_min=1e-10),
    "cosine, several times": partial(lr.CosineAnnealingLR, T_max=5, eta_min=0.1),
    "warm restarts": partial(lr.CosineAnnealingWarmRestarts, T_0=4, eta_min=1e-10),
    "warm restarts, later and later": partial(lr.CosineAnnealingWarmRestarts, T_0=4, T_mult=2),
    "function": partial(lr.LambdaLR, lr_lambda=half),
    "functions of groups": partial(lr.LambdaLR, lr_lambda=[half, Slower(0.8)]),
    "factor": partial(lr.MultiplicativeLR, lr_lambda=nine_tenths),
    "averaging": partial(SWALR, anneal_epochs=3, swa_lr=0.01),
    "averaging, straight": partial(SWALR, anneal_epochs=4, anneal_strategy="linear", swa_lr=[0.01, 0.02]),
    "plateau": partial(lr.ReduceLROnPlateau, patience=2, threshold=0.1),
    "plateau of what grows": partial(
        lr.ReduceLROnPlateau, mode="max", threshold_mode="abs", patience=3, cooldown=2, min_lr=[0.01, 0.02]
    ),
}

# These also move a momentum, if they may: `cycle_momentum` comes from the test.
CYCLES: dict[str, Callable[..., Any]] = {
    "triangles": partial(lr.CyclicLR, base_lr=0.1, max_lr=0.5, step_size_up=4),
    "triangles of groups": partial(lr.CyclicLR, base_lr=[0.1, 0.2], max_lr=[0.5, 0.6], step_size_up=2, step_size_down=6),
    "smaller triangles": partial(lr.CyclicLR, base_lr=0.1, max_lr=0.5, step_size_up=3, mode="triangular2"),
    "fading triangles": partial(lr.CyclicLR, base_lr=0.1, max_lr=0.5, step_size_up=3, mode="exp_range", gamma=0.9),
    "one cycle": partial(lr.OneCycleLR, max_lr=0.5, total_steps=STEPS + 1),
    "one straight cycle": partial(lr.OneCycleLR, max_lr=[0.5, 0.4], total_steps=STEPS + 1, anneal_strategy="linear"),
    "three phases": partial(lr.OneCycleLR, max_lr=0.5, total_steps=STEPS + 1, pct_start=0.4, three_phase=True),
}


def chained(*words: str) -> Callable[[Any], Any]:
    return lambda optimizer: lr.ChainedScheduler([SINGLE[word](optimizer) for word in words])


def after(*words: str, milestones: list[int]) -> Callable[[Any], Any]:
    return lambda optimizer: lr.SequentialLR(optimizer, [SINGLE[word](optimizer) for word in words], milestones)


def compound(*words: str) -> Callable[[Any], list[Any]]:
    return lambda optimizer: [SINGLE[word](optimizer) for word in words]


def chain_first(optimizer: Any) -> Any:
    schedulers = [chained("linear", "constant")(optimizer), SINGLE["constant"](optimizer)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it begins the chain again, which the chain takes for a step too early
        return lr.SequentialLR(optimizer, schedulers, [5])


TOGETHER: dict[str, Callable[[Any], Any]] = {
    "one in a chain": chained("step"),
    "chain": chained("linear", "milestones"),
    "chain of three": chained("exponential", "constant", "step"),
    "chain that ends": chained("polynomial", "constant"),
    "exponential, then steps": after("exponential", "step", milestones=[3]),
    "warm-up": after("constant", "exponential", milestones=[3]),
    "three, one after the other": after("constant", "exponential", "step", milestones=[3, 6]),
    "a chain, then another": chain_first,
    "step and milestones": compound("step", "milestones"),
    "step and exponential": compound("step", "exponential"),
    "exponential and milestones": compound("milestones", "exponential"),
    "linear and exponential": compound("linear", "exponential"),
    "step and constant": compound("step", "constant"),
    "linear and milestones": compound("milestones", "linear"),
    "cosine and step": compound("cosine", "step"),
    "cosine and milestones": compound("cosine", "milestones"),
    "cosine and linear": compound("linear", "cosine"),
    "cosine and exponential": compound("cosine", "exponential"),
    "plateau and step": compound("plateau", "step"),
    "plateau and milestones": compound("plateau", "milestones"),
    "plateau and exponential": compound("plateau of what grows", "exponential"),
    "plateau and cosine": compound("plateau", "cosine"),
    "plateau and linear": compound("plateau", "linear"),
}
