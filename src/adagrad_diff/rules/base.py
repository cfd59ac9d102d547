"""What every rule shares: w = eps + sqrt(total) per block, and the step eta * scale / w."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import kernels
from ..common import check
from .blocks import block_labels


@dataclass
class Metric:
    """The memory of a rule during one run; `total` is all that has to be kept to continue it."""

    total: np.ndarray  # one sum of squares per block, float64: shape (blocks,) or (blocks, trajectories)
    labels: np.ndarray | None  # the block of every coordinate; None for single coordinates
    scale: np.ndarray  # one factor per coordinate, or one for all
    eta: np.ndarray  # one step size per trajectory, that of the current iteration

    def restricted(self, size: int) -> tuple[np.ndarray | None, bool]:
        """The blocks of the first `size` coordinates, and whether these share one and the same step."""
        labels = None if self.labels is None else self.labels[:size]
        one = size == 1 or (labels is not None and bool((labels == labels[0]).all()))
        return labels, one and self.scale.size == 1


@dataclass(frozen=True, eq=False)
class Rule(ABC):
    """A diagonal metric w^n = eps + sqrt(total^n) per block, with step_i = eta_n scale_i / w_i.

    A rule is written by saying what `update` adds to `metric.total`; see `AdaGradDiff` for the parameters.
    """

    eta: float | Sequence[float] | np.ndarray | Callable[[int], float]
    eps: float = 1e-8
    blocks: Any = None
    scale: Any = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        if callable(self.eta):
            pass  # checked each time it is called
        elif np.ndim(self.eta) == 0:
            object.__setattr__(self, "eta", check.positive(self.eta, "eta", name))
        else:
            eta = [check.positive(e, "eta", name) for e in np.ravel(self.eta)]
            if np.ndim(self.eta) != 1 or not eta:
                raise ValueError(
                    f"The 'eta' parameter of {name} must be a number, a function of n, or a one-dimensional array with "
                    f"one value per trajectory. Got an array of shape {np.shape(self.eta)} instead."
                )
            object.__setattr__(self, "eta", np.array(eta))
        object.__setattr__(self, "eps", check.positive(self.eps, "eps", name))
        if self.scale is not None:
            scale = check.real_array(self.scale, "scale")
            if scale.ndim != 1 or not (np.isfinite(scale).all() and (scale > 0).all()):
                raise ValueError(
                    f"The 'scale' parameter of {name} must be a one-dimensional array of positive numbers, one per coordinate."
                )
            object.__setattr__(self, "scale", scale)

    @property
    def trajectories(self) -> int | None:
        """How many trajectories `eta` speaks of; None when it is the same for all."""
        return len(self.eta) if isinstance(self.eta, np.ndarray) else None

    def select(self, columns: np.ndarray) -> Rule:
        """The same rule for some of the trajectories."""
        return replace(self, eta=self.eta[columns]) if isinstance(self.eta, np.ndarray) else self

    def init(self, x: np.ndarray, batched: bool = False, intercept: bool = False) -> Metric:
        """An empty metric for iterates like x: shape (...,), or (..., trajectories) when batched."""
        shape, batch = (x.shape[:-1], x.shape[-1:]) if batched else (x.shape, ())
        size = int(np.prod(shape))
        if self.trajectories not in (None, *batch):
            raise ValueError(
                f"'eta' has {self.trajectories} values, one per trajectory, but x has "
                f"{batch[0] if batch else 1} trajectories. Give x0 one column per value."
            )
        labels = block_labels(self.blocks, shape, intercept)
        count = size if labels is None else int(labels.max()) + 1
        scale = np.ones(1, x.dtype)
        if self.scale is not None:
            last = size // shape[0] if intercept else 0  # an intercept that `scale` leaves out has scale 1
            if self.scale.size not in (size, size - last):
                raise ValueError(f"'scale' must hold one value per coordinate: {size}. Got {self.scale.size} instead.")
            scale = np.ones(size, x.dtype)
            scale[: self.scale.size] = self._cast(self.scale, x.dtype, "scale")
        eta = np.full(batch or 1, np.nan, x.dtype)
        if not callable(self.eta):
            eta[:] = self._cast_eta(self.eta, x.dtype, "eta")
        return Metric(np.zeros((count, *batch)), labels, scale, eta)

    def _cast(self, values: Any, dtype: np.dtype, name: str) -> np.ndarray:
        """Numbers in the precision of x, or a sentence if one of them turns zero or infinite there."""
        values = np.asarray(values)
        with np.errstate(over="ignore", under="ignore"):
            result = values.astype(dtype)
        bad = ~(np.isfinite(result) & (result > 0))
        if bad.any():
            raise ValueError(
                f"The {name!r} parameter of {type(self).__name__} must be a positive number of {dtype}. "
                f"Got {values[bad].flat[0].item()!r} instead."
            )
        return result

    def _cast_eta(self, eta: Any, dtype: np.dtype, name: str) -> np.ndarray:
        """The same for step sizes, with the longest step they lead to: the one of a coordinate whose gradient is zero."""
        result = self._cast(eta, dtype, name)
        if float(result.max()) > float(np.finfo(dtype).max) * self.eps:
            raise ValueError(
                f"{name} / eps, the longest step of {type(self).__name__}, is too large for {dtype}: {name} is "
                f"{float(result.max()):g} and eps is {self.eps:g}. Use a smaller eta, or a larger eps."
            )
        return result

    @abstractmethod
    def update(self, metric: Metric, g: np.ndarray, g_prev: np.ndarray) -> None:
        """Add to `metric.total` what the gradient g^n, coming after g^{n-1}, says about each block."""

    def forward(self, metric: Metric, n: int, x: np.ndarray, g: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        """step = eta_n * scale / (eps + sqrt(total)), then out = x - step * g.

        All have one axis of coordinates: shape (d,) or (d, trajectories).
        """
        if callable(self.eta):
            values = [check.positive(self.eta(int(k)), f"eta({k})", type(self).__name__) for k in np.atleast_1d(n)]
            metric.eta[:] = self._cast_eta(values, metric.eta.dtype, "eta" if np.ndim(n) else f"eta({n})")
        if metric.labels is None:
            kernels.forward(metric.total, self.eps, metric.eta, metric.scale, x, g, step, out)
        else:
            total, x, g, step, out = (a.reshape(-1, metric.eta.size) for a in (metric.total, x, g, step, out))
            kernels.block_forward(total, metric.labels, self.eps, metric.eta, metric.scale, x, g, step, out)


def as_rule(rule: Any) -> Rule:
    """The rule, or a sentence if it is none."""
    if isinstance(rule, Rule):
        return rule
    if isinstance(rule, type) and issubclass(rule, Rule):
        raise TypeError(f"'rule' is the class {rule.__name__}. Did you mean {rule.__name__}(eta=0.1)?")
    raise TypeError(f"'rule' must be a rule such as AdaGradDiff(eta=0.1). Got {rule!r} instead.")
