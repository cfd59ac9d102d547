"""Complex entries as two real coordinates, and buffers with one entry per block of these."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..penalties.group_root import block_sum


def real(x: jax.Array) -> jax.Array:
    """A complex array as a real one, with a last axis for the two parts; a real array as it is."""
    x = jnp.asarray(x)
    return jnp.stack([x.real, x.imag], axis=-1) if jnp.iscomplexobj(x) else x


def like(y: jax.Array, x: jax.Array) -> jax.Array:
    """The inverse: real coordinates y as an array of the kind and dtype of x."""
    dtype = jnp.asarray(x).dtype
    return (
        jax.lax.complex(y[..., 0], y[..., 1]) if jnp.issubdtype(dtype, jnp.complexfloating) else y
    ).astype(dtype)


def block_full(x: Any, blocks: str, dtype: Any, value: Any = 0.0) -> jax.Array:
    """A buffer with one entry per block of x, which may be only a shape; spread over devices like x."""
    shape = jax.eval_shape(lambda x: block_sum(real(x), blocks), x)
    return jnp.full_like(shape, value, dtype=dtype or wide(shape.dtype))


def wide(dtype: Any) -> Any:
    """The dtype to calculate in: half precision is too narrow for sums."""
    return jnp.promote_types(dtype, jnp.float32)


def widened(tree: Any) -> Any:
    """A tree in at least single precision; its leaves may be only shapes."""

    def widen(x: Any) -> Any:
        if isinstance(x, jax.ShapeDtypeStruct):
            return jax.ShapeDtypeStruct(x.shape, wide(x.dtype), sharding=x.sharding)  # type: ignore[no-untyped-call]
        x = jnp.asarray(x)
        return x.astype(wide(x.dtype))

    return jax.tree.map(widen, tree)
