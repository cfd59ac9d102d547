"""What every rule shares: it remembers, learns from each gradient, and moves.

Unless a rule says otherwise it remembers one total per block, and moves by the metric w = eps + sqrt(total).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from .. import kernels
from ..common import check
from ..common.showing import call
from .blocks import block_labels
from .memory import BLOCK, NUMBER, POINT, Memory, View


@dataclass(frozen=True, eq=False)
class Rule(ABC):
    """How gradients become steps.

    A rule names what it remembers (`memory`), says how a gradient changes that (`learn`) and how it makes a step (`move`).
    Both are written for arrays whose first axis are coordinates, and whose last are trajectories if there are several; see
    `View` for what they find. By default a rule moves in the metric w = eps + sqrt(total), with the parameters of
    `AdaGradDiff`; one that does not need some of these declares them with ``field(default=..., init=False)``. One whose
    answer is an average of its own remembers that as ``"average": POINT``: it is then `x_avg` of states and results.

    Examples
    --------
    Gradient descent with momentum remembers the last move:

    >>> from dataclasses import dataclass
    >>> from adagrad_diff import Rule, minimize
    >>> from adagrad_diff.rules import POINT
    >>> @dataclass(frozen=True, eq=False)
    ... class HeavyBall(Rule):
    ...     beta: float = 0.9
    ...     memory = {"last": POINT}
    ...     def learn(self, memory, now):
    ...         memory.last = now.x - now.x_prev
    ...     def move(self, memory, now):
    ...         now.step[:] = now.eta
    ...         now.point[:] = now.x - now.step * now.g + self.beta * memory.last
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=HeavyBall(0.1), max_iter=300)
    >>> bool(result.fun < 1e-9)
    True
    """

    memory: ClassVar[dict[str, str]] = {"total": BLOCK}  # names, and for each of them POINT, BLOCK or NUMBER
    published: ClassVar[float | None] = None  # the step size of its authors, if they name one
    along_gradient: ClassVar[bool] = False  # whether a `move` of its own leads to x - step * g, too

    eta: float | Sequence[float] | np.ndarray | Callable[[int], float]
    eps: float = 1e-8
    blocks: Any = None
    scale: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):  # dataclasses give each class another one
            cls.__repr__ = Rule.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """As it was made, without what is as usual."""
        usual = {field.name: field.default for field in fields(self) if field.init}
        own = {name: getattr(self, name) for name in usual}
        return call(self, **{name: value for name, value in own.items() if np.ndim(value) or value != usual[name]})

    def __post_init__(self) -> None:
        name, own = type(self).__name__, {field.name for field in fields(self) if field.init}
        if callable(self.eta):
            pass  # checked each time it is called
        elif self.eta is None and "eta" not in own:
            pass  # a rule that has none
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
        if "eps" in own:
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

    def view(self, x: np.ndarray, batched: bool = False, intercept: bool = False) -> View:
        """What this rule will see of a run with iterates like x: shape (...,), or (..., trajectories) when batched."""
        shape, batch = (x.shape[:-1], x.shape[-1:]) if batched else (x.shape, ())
        size = int(np.prod(shape))
        if self.trajectories not in (None, *batch):
            raise ValueError(
                f"'eta' has {self.trajectories} values, one per trajectory, but x has "
                f"{batch[0] if batch else 1} trajectories. Give x0 one column per value."
            )
        labels = None if self.blocks is None else block_labels(self.blocks, shape, intercept)
        scale = np.ones(1, x.dtype)
        if self.scale is not None:
            last = size // shape[0] if intercept else 0  # an intercept that `scale` leaves out has scale 1
            if self.scale.size not in (size, size - last):
                raise ValueError(f"'scale' must hold one value per coordinate: {size}. Got {self.scale.size} instead.")
            scale = np.ones(size, x.dtype)
            scale[: self.scale.size] = self._cast(self.scale, x.dtype, "scale")
        eta = np.ones(batch or 1, x.dtype)
        if self.eta is not None and not callable(self.eta):
            eta[:] = self._cast_eta(self.eta, x.dtype, "eta")
        return View(labels, scale, eta)

    def remember(self, x: np.ndarray, batched: bool, labels: np.ndarray | None) -> dict[str, np.ndarray]:
        """Its memory for iterates like x, in double precision, before it has learned anything."""
        batch = x.shape[-1:] if batched else ()
        size = x[..., 0].size if batched else x.size
        if not isinstance(self.memory, dict):
            raise TypeError(
                f"The memory of {type(self).__name__} must be a dict of names and kinds. Got {self.memory!r} instead."
            )
        sizes = {POINT: (size,), BLOCK: (size if labels is None else int(labels.max()) + 1,), NUMBER: ()}
        for name, kind in self.memory.items():
            if kind not in sizes:
                raise ValueError(f"The memory {name!r} of {type(self).__name__} must be POINT, BLOCK or NUMBER. Got {kind!r}.")
        return {name: np.zeros((*sizes[kind], *batch)) for name, kind in self.memory.items()}

    def begin(self, memory: Memory, now: View) -> None:  # noqa: B027
        """What is remembered before the first gradient, if it is not zero: `now` has x^1 and g^1."""

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
        return np.asarray(result)

    def _cast_eta(self, eta: Any, dtype: np.dtype, name: str) -> np.ndarray:
        """The same for step sizes, with the longest step they lead to: the one of a coordinate whose gradient is zero."""
        result, (weight, least) = self._cast(eta, dtype, name), self.least_weight
        if float(result.max()) > float(np.finfo(dtype).max) * least:
            raise ValueError(
                f"{name} / {weight}, the longest step of {type(self).__name__}, is too large for {dtype}: {name} is "
                f"{float(result.max()):g} and {weight} is {least:g}. Use a smaller eta, or a larger {weight}."
            )
        return result

    @property
    def least_weight(self) -> tuple[str, float]:
        """The parameter that the smallest weight is made of, and that weight."""
        return "eps", self.eps

    @abstractmethod
    def learn(self, memory: Memory, now: View) -> None:
        """Take in the gradient g^n, which comes after g^{n-1}."""

    def move(self, memory: Memory, now: View) -> None:
        """step = eta_n * scale / (eps + sqrt(total));  point = x - step * g"""
        if now.labels is None:
            kernels.forward(memory.total, self.eps, now.eta, now.scale, now.x, now.g, now.step, now.point)
        else:
            arrays = (memory.total, now.x, now.g, now.step, now.point)
            total, x, g, step, point = (array.reshape(-1, now.eta.size) for array in arrays)
            kernels.block_forward(total, now.labels, self.eps, now.eta, now.scale, x, g, step, point)

    def accepts(self, memory: Memory, now: View) -> Any:
        """Whether to go to x_next; if not, x stays where it is, and the next iteration tries again."""
        return True

    def schedule(self, now: View) -> None:
        """eta_n, if eta is a function of n."""
        if callable(self.eta):
            values = [check.positive(self.eta(int(k)), f"eta({k})", type(self).__name__) for k in np.atleast_1d(now.n)]
            now.eta[:] = self._cast_eta(values, now.eta.dtype, "eta" if np.ndim(now.n) else f"eta({now.n})")


def has_eta(kind: type[Rule]) -> bool:
    """Whether rules of this class have a step size."""
    return any(field.name == "eta" and field.init for field in fields(kind))


def as_rule(rule: Any) -> Rule:
    """The rule, or a sentence if it is none."""
    if isinstance(rule, Rule):
        return rule
    if isinstance(rule, type) and issubclass(rule, Rule):
        raise TypeError(
            f"'rule' is the class {rule.__name__}. Did you mean {rule.__name__}({'eta=0.1' if has_eta(rule) else ''})?"
        )
    raise TypeError(f"'rule' must be a rule such as AdaGradDiff(eta=0.1). Got {rule!r} instead.")
