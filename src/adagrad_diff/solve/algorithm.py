"""The iteration of runs without a given step size, until they have moved to `solvers`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _check
from ..losses import Loss, Minibatch
from ..penalties import Penalty
from ..solvers.fingerprint import describe_problem
from .memory import Memory
from .problem import check_same
from .race_rule import RaceRule
from .state import State
from .step import Step, penalised
from .walk import Walk


def iterations(loss: Loss, penalty: Penalty, rule: RaceRule, state: State) -> Iterator[State]:
    """The loop. The two buffers that end in _prev hold what comes next until the iteration is complete.

    With minibatches, a walk with estimated gradients comes before each step. Whoever draws the states sets `committing` back:
    until then a state must not be taken apart.
    """
    state.oracle = None  # that of an earlier run, whose memory is needed again
    oracle = state.oracle = loss.oracle(state.x)
    step = Step(loss, penalty, rule, state)
    state.x_prev, state.g_prev = step.buffer(), np.empty_like(state.x)
    memory, now, flat = Memory(state.memory), step.now, step.flat
    walk = Walk(loss, step) if isinstance(loss, Minibatch) and loss.estimates else None
    now.n, now.x, now.g, now.f, now.step = (
        state.n + 1,
        flat(state.x),
        flat(state.g),
        state.f,
        state.step,
    )

    while True:
        x_next, g_next = state.x_prev, state.g_prev
        z = step(memory if walk is None else walk(), x_next)  # x^{n+1}
        f, phi = oracle(x_next, out=g_next), penalty.value(z)  # f, g^{n+1} and phi
        state.committing = True
        state.advance(f, phi)
        if state.failed is not True:
            if walk is not None:
                walk.commit()
            now.n, now.x, now.g, now.f = state.n + 1, flat(state.x), flat(state.g), state.f
            now.x_prev, now.g_prev = flat(state.x_prev), flat(state.g_prev)
            if walk is not None:
                now.n = walk.steps
            rule.add_gradient(memory, now)  # the metric W_{n+1}
        yield state


def start(
    loss: Loss,
    x0: Any,
    penalty: Penalty,
    rule: RaceRule,
) -> State:
    """The state before the first iteration: x = x^1, n = 0."""
    if x0 is None and loss.shape is None:
        raise ValueError("'x0' is needed: the loss is a function, so the size of x is not known.")
    x = _check.real_array(np.zeros(loss.shape, loss.dtype) if x0 is None else x0, "x0")
    x = _check.cast(x, loss.dtype or x.dtype, "x0")  # a copy: x0 is never modified
    dims = x.ndim if loss.shape is None else len(loss.shape)
    if x.ndim == 0 or (
        loss.shape is not None and (x.shape[:dims] != loss.shape or x.ndim > dims + 1)
    ):
        wanted = (
            "at least one dimension"
            if loss.shape is None
            else f"shape {loss.shape}, or that and a trajectory axis"
        )
        raise ValueError(f"'x0' must have {wanted}. Got shape {x.shape} instead.")
    if x.size == 0:
        raise ValueError(f"'x0' is empty: it has shape {x.shape}.")
    _check.finite(x, "x0")
    if rule.trajectories and x.ndim == (dims if loss.shape is not None else 1):
        x = np.repeat(x[..., None], rule.trajectories, axis=-1)  # the same start for every eta
    g = np.empty_like(x)
    f = loss.oracle(x)(x, out=g)
    batched = np.ndim(f) == 1
    if rule.trajectories and not batched:
        raise ValueError(
            "With several eta the loss must return one value per trajectory (column of x), "
            f"shape {x.shape[-1:]} for x of shape {x.shape}. Got one number instead."
        )
    columns = g.reshape(-1, g.shape[-1] if batched else 1)
    with np.errstate(all="ignore"):
        norm = np.linalg.norm(columns.astype(np.float64, copy=False), axis=0)
    state = State(
        n=np.zeros(f.shape, np.int64) if batched else 0,
        x=x,
        f=np.array(f, np.float64) if batched else float(f),
        phi=0.0,
        g=g,
        memory={},
        x_sum=np.zeros(x.shape),
        x_best=x.copy(),
        fun_best=np.inf,
        f_first=np.array(f, np.float64) if batched else float(f),
        g_first=norm if batched else float(norm[0]),
        norm=np.full(norm.shape, np.nan) if batched else np.nan,
        failed=~np.isfinite(f + norm) if batched else not np.isfinite(f + norm[0]),
        rule=type(rule).__name__,
        batched=batched,
    )
    now = rule.view(x, batched, loss.intercept)
    state.memory = rule.remember(x, batched, now.labels) | loss.remember(np.shape(f))
    now.x = now.x_prev = state.flat(x)
    now.g, now.g_prev, now.n, now.f = (
        state.flat(g),
        np.zeros_like(state.flat(g)),
        state.n + 1,
        state.f,
    )  # g^0 = 0
    rule.add_gradient(Memory(state.memory), now)
    part = penalised(loss, state)(x)
    penalty.check_size(len(part))
    phi = penalty.value(part)
    state.phi = np.array(np.broadcast_to(phi, f.shape), np.float64) if batched else float(phi)
    if batched:
        state.f[np.isneginf(state.f) & np.isposinf(state.phi)] = (
            np.nan
        )  # as their sum, which would warn each time
    state.fun_best = state.fun
    return state


def check_memory(loss: Loss, rule: RaceRule, state: State) -> None:
    """Raise if the state's memory is not one of this rule's."""
    wanted = rule.remember(
        state.x, state.batched, rule.view(state.x, state.batched, loss.intercept).labels
    )
    wanted |= loss.remember(np.shape(state.f))
    if wanted.keys() != state.memory.keys():
        raise ValueError(
            f"'state' was made with another rule than {type(rule).__name__}: it remembers other things."
        )
    if any(array.shape != state.memory[name].shape for name, array in wanted.items()):
        raise ValueError("'state' was made with other blocks than this rule's.")


def check_state(loss: Loss, x0: Any, penalty: Penalty, rule: Any, state: State) -> None:
    """Raise if `state` belongs to another problem, or another rule."""
    if not isinstance(state, State):
        raise TypeError(
            f"'state' must be a State, such as result.state or load_state(path). Got {type(state).__name__} instead."
        )
    if state.x_sum is None:
        raise ValueError(
            "'state' is one of a sweep, which does without the average: minimize cannot continue it."
        )
    if loss.dtype is not None and state.x.dtype != loss.dtype:
        raise ValueError(
            f"'state' has x of dtype {state.x.dtype}, but this loss works in {loss.dtype}."
        )
    if x0 is not None and np.shape(x0) != state.x.shape:
        raise ValueError(
            f"'x0' has shape {np.shape(x0)}, but 'state' has x of shape {state.x.shape}. Leave x0 out."
        )
    if loss.shape is not None and state.x.shape[: len(loss.shape)] != loss.shape:
        raise ValueError(
            f"'state' has x of shape {state.x.shape}, but this loss needs {loss.shape}."
        )
    check_same(state.problem, describe_problem(loss, penalty, rule))
