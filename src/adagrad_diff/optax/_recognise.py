"""Which transformations `proximal` takes: those that tell their weights, and optax's own that are known here.

optax's transformations are pairs of functions, and keep their hyperparameters to themselves. Those of `_known` are recognised
by the name of the function that made them, and their hyperparameters read from where the update function keeps them. Then a
few steps show whether update = direction / weights is what happens: an optax that does something else one day is refused in a
sentence, never followed by wrong steps.
"""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .. import _check
from ._diagonal import DiagonalTransformation, of_part
from ._known import BEFORE, BEHIND, MOMENTUM, SCALINGS, Known

PROBES = np.array(
    [[0.5, -2.0, 0.0, 1e-3], [0.25, 1.0, 0.0, 0.0], [-3.0, 1.0, 2.0, 1e-3]], np.float32
)  # gradients
AGREEMENT = 1e-4  # relative: single precision has seven digits

RATE = "it has a learning rate already, so pass the scaling alone: optax.scale_by_adam() for optax.adam(...), and so on"
AROUND = ("masked", "partition", "inject_hyperparams", "apply_if_finite", "MultiSteps", "flatten")
REMEDY_OF = {"scale": RATE, "scale_by_schedule": RATE} | {
    name: f"put {name} around proximal, not inside it" for name in AROUND
}
ELSE = (
    f"pass a scaling of this package or of optax ({', '.join((*SCALINGS, *MOMENTUM))}), or tell the weights with "
    "DiagonalTransformation(init, update, weights)"
)


def diagonal(scaling: Any) -> DiagonalTransformation:
    """The transformation with its weights, or a sentence: what it is, that its weights cannot be known, what to do."""
    found = _read(scaling)
    if (
        isinstance(found, str) and found in BEFORE
    ):  # plain steps, with momentum or clipping or without
        return DiagonalTransformation(scaling.init, scaling.update, lambda state: 1.0)
    if isinstance(found, str):
        raise TypeError(
            "The 'scaling' parameter of proximal must be a transformation that divides by weights which can be known, and "
            f"those of {found} cannot: {REMEDY_OF.get(found, ELSE)}."
        )
    return found


def _read(transformation: Any) -> DiagonalTransformation | str:
    """The transformation with its weights, or the name of what has none or is not known."""
    if isinstance(transformation, DiagonalTransformation):
        return transformation
    name, inside = _maker(transformation)
    if name == "with_extra_args_support":
        return _read(inside["tx"])
    if name == "masked":
        inner = _read(inside["inner"])
        return inner if isinstance(inner, str) and inner in BEFORE else name
    if name == "chain":
        inits = inspect.getclosurevars(transformation.init).nonlocals["init_fns"]
        parts = zip(inits, inside["update_fns"], strict=True)
        return _read_chain(
            transformation,
            [(k, optax.GradientTransformation(*part)) for k, part in enumerate(parts)],
        )
    if name == "named_chain":
        return _read_chain(transformation, inside["transforms"])
    if name in SCALINGS and _is_as_known(SCALINGS[name], name, transformation, inside):
        return _with_weights(SCALINGS[name], transformation, inside)
    return name


def _maker(transformation: Any) -> tuple[str, dict[str, Any]]:
    """The name of optax's function that made a transformation, and what its update function keeps; else a description."""
    update = getattr(transformation, "update", None)
    if not (inspect.isfunction(update) or inspect.ismethod(update)) or not hasattr(
        transformation, "init"
    ):
        return _check.shown(transformation), {}
    name = update.__qualname__.split(".")[0]
    if update.__module__.split(".")[0] != "optax":
        return f"{update.__module__}.{name}", {}
    return name, dict(inspect.getclosurevars(update).nonlocals)


def _read_chain(chain: Any, parts: list[tuple[Any, Any]]) -> DiagonalTransformation | str:
    """A chain by its parts and their places in its state."""
    found = [(place, _read(part)) for place, part in parts]
    scaled, last = (
        None,
        "identity",
    )  # if nothing scales: the name of a part that says where the chain may stand
    for place, part in found:
        if isinstance(part, DiagonalTransformation):
            if scaled is not None:
                return "a chain of several scalings"
            scaled = of_part(chain, place, part)
        elif part not in BEFORE:
            return part
        elif scaled is not None and part not in BEHIND:
            return f"a chain with {part} behind the scaling"
        elif part not in BEHIND:
            last = part
    return scaled or last


def _with_weights(
    known: Known, transformation: Any, inside: dict[str, Any]
) -> DiagonalTransformation:
    h = SimpleNamespace(**inside)

    def coordinates(
        w: jax.Array,
    ) -> jax.Array:  # optax has one weight for the two parts of a complex entry
        return jnp.real(w)[..., None] if jnp.iscomplexobj(w) else w

    return DiagonalTransformation(
        transformation.init,
        transformation.update,
        lambda s: jax.tree.map(coordinates, known.weights(h, s)),
        lambda s: jax.tree.map(lambda total: coordinates(total) != 0, known.total(s)),
    )


def _is_as_known(known: Known, name: str, transformation: Any, inside: dict[str, Any]) -> bool:
    """Whether the updates of a few steps, times the weights, are the directions."""
    if any(
        isinstance(value, jax.core.Tracer) for value in inside.values()
    ):  # numbers that are not known yet: try others
        transformation = getattr(optax, name)()
        inside = _maker(transformation)[1]
    h = SimpleNamespace(**inside)
    try:
        with jax.ensure_compile_time_eval():
            state = transformation.init(jnp.zeros_like(PROBES[0]))
            for g in PROBES:
                update, state = transformation.update(jnp.asarray(g), state)
                product, direction = (
                    update * known.weights(h, state),
                    known.direction(h, state, jnp.asarray(g)),
                )
                if not np.allclose(product, direction, rtol=AGREEMENT, atol=0, equal_nan=True):
                    return False
    except (
        AttributeError,
        KeyError,
        TypeError,
    ):  # other names than those of the optax that is known
        return False
    return True
