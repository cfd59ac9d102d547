"""AdaGrad-Diff for JAX: optax transformations with exact proximal steps.

They replace `optax.adagrad`, `adam` and `adamw`.

>>> import jax.numpy as jnp
>>> import optax
>>> from adagrad_diff.optax import L1, adagraddiff
>>> optimizer = adagraddiff(learning_rate=0.1, penalty=L1(0.01))
>>> params = {"w": jnp.ones(3)}
>>> state = optimizer.init(params)
>>> updates, state = optimizer.update({"w": jnp.ones(3)}, state, params)
>>> params = optax.apply_updates(params, updates)
"""

from .._messages import require

require("optax", "optax")

from ._aliases import adagraddiff, adamdiff, adamwdiff  # noqa: E402
from ._proximal import ProximalState, proximal  # noqa: E402
from ._scalings import (  # noqa: E402
    AdamDiffState,
    DecayingDifferencesState,
    DiagonalTransformation,
    DifferencesState,
    scale_by_adamdiff,
    scale_by_gradient_differences,
)
from .penalties import L1, Box, ElasticNet, GroupL2, NonNegative, Penalty, Ridge  # noqa: E402

adagrad_diff = adagraddiff  # as it was called once

__all__ = [
    "L1",
    "AdamDiffState",
    "Box",
    "DecayingDifferencesState",
    "DiagonalTransformation",
    "DifferencesState",
    "ElasticNet",
    "GroupL2",
    "NonNegative",
    "Penalty",
    "ProximalState",
    "Ridge",
    "adagraddiff",
    "adamdiff",
    "adamwdiff",
    "proximal",
    "scale_by_adamdiff",
    "scale_by_gradient_differences",
]
