"""Arithmetic of the transformations: complex entries, blocks, roots, and dtypes."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from ..penalties.group_root import block_sum, group_norms


def real(x: jax.Array) -> jax.Array:
    """Return a complex array as a real one, with a last axis for both parts."""
    x = jnp.asarray(x)
    return jnp.stack([x.real, x.imag], axis=-1) if jnp.iscomplexobj(x) else x


def like(y: jax.Array, x: jax.Array) -> jax.Array:
    """Return real coordinates y as an array of the kind and dtype of x."""
    dtype = jnp.asarray(x).dtype
    whole = jnp.issubdtype(dtype, jnp.complexfloating)
    return (jax.lax.complex(y[..., 0], y[..., 1]) if whole else y).astype(dtype)


def wide(x: Any) -> Any:
    """Return the dtype to calculate in. Half precision is too narrow for sums."""
    return jnp.promote_types(x.dtype, jnp.float32)


def block_full(x: Any, blocks: str, dtype: Any, value: Any = 0.0) -> jax.Array:
    """Return a buffer with one entry per block of x, distributed over devices like x."""
    shape = jax.eval_shape(lambda x: block_sum(real(x), blocks), x)
    return jnp.asarray(jnp.full_like(shape, value, dtype=dtype or wide(shape)))


def root(total: jax.Array) -> jax.Array:
    """Return the square root, with derivative 0 at 0, where there has been no gradient."""
    zero = total == 0
    return jnp.where(zero, 0.0, jnp.sqrt(jnp.where(zero, 1.0, total)))


def bounded(size: jax.Array, direction: jax.Array, blocks: str, max_move: Any) -> jax.Array:
    """Return max(size, |direction| / max_move), with norms of blocks."""
    if isinstance(max_move, float) and max_move == math.inf:
        return size
    return jnp.maximum(size, group_norms(jnp, direction, blocks) / max_move)


def after(g: jax.Array, total: jax.Array) -> jax.Array:
    """Return the gradient g, available only once the new total is (which is never negative).

    The new total is computed from the previous gradient, in whose memory g is stored. Without an
    order between the two, XLA copies whole arrays, which takes longer than the step itself.
    """
    return jnp.where(total >= 0, g, jnp.nan)
