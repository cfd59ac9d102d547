"""Whether a race opens with minibatches: where samples are many, a few passes with them replace dozens of full gradients."""

from __future__ import annotations

from ..data.stored import Dense
from ..losses import LinearModel, Loss, Minibatch, Squared

# `make bench ONLY=stochastic.defaults` has what it brings at 1e6 x 100. From 1e5 x 50 on it was ahead, or even on raw columns;
# smaller problems are finished at once in less time than a few rounds take.
OPENING_ENTRIES, OPENING_SAMPLES, SAMPLES_PER_COEFFICIENT = 5_000_000, 50_000, 100
OPENING_ROUNDS = 16  # of the opening, at most: about 24 passes over the data
FIRST_LOOK, ROUNDS_BETWEEN_LOOKS = 6, 2  # rounds after which the duality gap is looked at
BATCHES = 2000  # in a pass: so many steps bring most of what more of them would, and each is long enough to be worth its call
LEAST_SIZE = 32


def opening(loss: Loss) -> Minibatch | None:
    """The loss with minibatches, if they pay: a smooth one, of many dense samples in memory. (On sparse ones they are even.)"""
    if (
        not isinstance(loss, LinearModel)
        or loss.smoothness is None
        or not isinstance(loss.A, Dense)
    ):
        return None
    if isinstance(loss, Squared):  # one step of the finish solves it
        return None
    if not loss.A.array.flags.c_contiguous:  # all rows would be copied, which nobody has asked for
        return None
    samples, features = loss.A.shape
    if loss.A.size < OPENING_ENTRIES or samples < max(
        OPENING_SAMPLES, SAMPLES_PER_COEFFICIENT * features
    ):
        return None
    return Minibatch(loss, max(LEAST_SIZE, samples // BATCHES))


def looks(n: int) -> bool:
    """Whether round n is one after which the gap is looked at."""
    return n >= FIRST_LOOK and (n - FIRST_LOOK) % ROUNDS_BETWEEN_LOOKS == 0
