"""The weights of optax's own scalings: update = direction / weights, by their hyperparameters h and their state s."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Known(NamedTuple):
    """A scaling of optax."""

    direction: Callable[[Any, Any, Any], Any]  # of h, s and the gradient g: what is divided
    weights: Callable[[Any, Any], Any]  # of h and s: by what
    total: Callable[[Any], Any]  # of s: what is zero where there has been no gradient


def _unbiased(average: Any, decay: Any, count: Any) -> Any:
    return jax.tree.map(lambda a: a / (1 - decay**count), average)


def _rss_weights(h: Any, s: Any) -> Any:
    return jax.tree.map(lambda t: jnp.sqrt(t + h.eps), s.sum_of_squares)


def _inside_or_outside(h: Any, v: Any) -> Any:
    return jax.tree.map(lambda v: jnp.sqrt(v + h.eps) if h.eps_in_sqrt else jnp.sqrt(v) + h.eps, v)


def _rms_mean(h: Any, s: Any, average: Any) -> Any:
    return _unbiased(average, h.decay, s.count) if h.bias_correction else average


def _rms_weights(h: Any, s: Any) -> Any:
    return _inside_or_outside(h, _rms_mean(h, s, s.nu))


def _stddev_weights(h: Any, s: Any) -> Any:
    m, v = _rms_mean(h, s, s.mu), _rms_mean(h, s, s.nu)
    return _inside_or_outside(h, jax.tree.map(lambda m, v: v - jnp.abs(m) ** 2, m, v))


def _adam_direction(h: Any, s: Any, g: Any) -> Any:
    if not h.nesterov:
        return _unbiased(s.mu, h.b1, s.count)
    then, now = _unbiased(s.mu, h.b1, s.count + 1), _unbiased(g, h.b1, s.count)
    return jax.tree.map(lambda m, g: h.b1 * m + (1 - h.b1) * g, then, now)


def _adam_weights(h: Any, s: Any) -> Any:
    return jax.tree.map(lambda v: jnp.sqrt(v + h.eps_root) + h.eps, _unbiased(s.nu, h.b2, s.count))


def _amsgrad_direction(h: Any, s: Any, g: Any) -> Any:
    always = not hasattr(h, "bias_correction_mu")  # in older versions of optax
    return _unbiased(s.mu, h.b1, s.count) if always or h.bias_correction_mu else s.mu


def _amsgrad_weights(h: Any, s: Any) -> Any:
    return jax.tree.map(lambda v: jnp.sqrt(v + h.eps_root) + h.eps, s.nu_max)


def _gradient(h: Any, s: Any, g: Any) -> Any:
    return g


SCALINGS = {
    "scale_by_rss": Known(_gradient, _rss_weights, lambda s: s.sum_of_squares),
    "scale_by_rms": Known(_gradient, _rms_weights, lambda s: s.nu),
    "scale_by_stddev": Known(_gradient, _stddev_weights, lambda s: s.nu),
    "scale_by_adam": Known(_adam_direction, _adam_weights, lambda s: s.nu),
    "scale_by_amsgrad": Known(_amsgrad_direction, _amsgrad_weights, lambda s: s.nu_max),
}

# What changes gradients and divides by nothing may stand before a scaling. Behind one, only weight decay leaves steps alone.
MOMENTUM = ("identity", "trace", "ema")
BEHIND = ("identity", "add_decayed_weights")
CLIPPING = ("clip", "clip_by_block_rms", "clip_by_global_norm", "adaptive_grad_clip")
BEFORE = (*MOMENTUM, *BEHIND, *CLIPPING, "zero_nans", "centralize", "add_noise")
