"""What step-size rules share: parameters, schedules, blocks, scales and exponential averages."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, dataclass_transform

import numpy as np

from .. import _check
from .._messages import call

Arrays = dict[str, np.ndarray]
Update = tuple[Arrays, Any, Any]  # the new memory, the point for the prox, the step of the prox

# How far one step may go, in learning rates, where differences of gradients are averaged.
#
# The sum of AdaGrad-Diff never shrinks, so its steps never grow. An exponential average v does
# shrink while a gradient m stays the same, and m / (sqrt(v) + eps) would grow without end.
# `RMSDiff`, `AdamDiff` and the optimizers for PyTorch and optax therefore have weights of at least
# ||m|| / MAX_MOVE, with the norm over the block that shares the weight. This value keeps nearly all
# that small learning rates gain: docs/learning_rates.md has the study.
MAX_MOVE = 30.0


def fixed(value: Any) -> Any:
    """Return a field for a parameter that a rule does not have, with the value it always has."""
    return field(default=value, init=False)


@dataclass_transform(eq_default=False, frozen_default=True)
def frozen(cls: type) -> Any:
    """Return a class as a dataclass whose instances cannot be changed and equal only themselves."""
    return dataclass(frozen=True, eq=False)(cls)


@frozen
class Rule(ABC):
    """A step-size rule: how gradients become steps.

    A rule is frozen and remembers nothing itself. `init` returns its memory at the start, a dict of
    arrays, and `update` returns a new memory, the point that the prox is applied to, and the step
    of the prox. So a state that holds the memory can be saved and resumed without knowing the rule.

    Arrays are float64. Iterates and gradients have shape (coordinates,), or (coordinates,
    trajectories) if there are several trajectories; then every array of a memory also ends in the
    axis of trajectories. `n` = 1, 2, ... counts iterations, and is an array for several
    trajectories. Nothing that is passed in may be changed.

    A rule uses the parameters below as far as it needs them. One that has no step size, for
    example, declares ``eta: Any = field(default=None, init=False)``. `step_size` returns eta_n,
    `block_sums` and `spread` convert between coordinates and blocks. A rule whose answer is the
    average of its iterates, with weights that grow like a power of n, defines `average_power`.

    Examples
    --------
    Gradient descent with momentum remembers the last iterate:

    >>> from dataclasses import dataclass
    >>> from adagrad_diff import Rule, minimize
    >>> @dataclass(frozen=True, eq=False)
    ... class HeavyBall(Rule):
    ...     beta: float = 0.9
    ...     def init(self, x, g):
    ...         return {"last": x}
    ...     def update(self, memory, n, x, g):
    ...         step = self.step_size(n)
    ...         return {"last": x}, x - step * g + self.beta * (x - memory["last"]), step
    >>> f = lambda x: (0.5 * x @ x, x)
    >>> result = minimize(f, [3.0, -4.0], rule=HeavyBall(0.1), max_iter=300)
    >>> bool(result.fun < 1e-9)
    True
    """

    published: ClassVar[float | None] = None  # the step size that its authors recommend, if any
    # Checks of parameters that a rule has in addition to eta, eps, blocks and scale.
    _constraints: ClassVar[Mapping[str, Callable[[Any, str, str], float]]] = {}
    # Set by `prepared`. These values mean single coordinates without a scale.
    _labels: ClassVar[np.ndarray | None] = None
    _scale: ClassVar[Any] = 1.0

    eta: float | Sequence[float] | np.ndarray | Callable[[int], float]
    eps: float = 1e-8
    blocks: Any = None
    scale: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if {"learn", "move", "accepts"} & vars(cls).keys():
            raise TypeError(
                f"{cls.__name__} defines learn, move or accepts, as rules did before version 0.3. "
                "A rule now defines init(self, x, g), which returns its memory (a dict of arrays), "
                "and update(self, memory, n, x, g), which returns the new memory, the point for the "
                "prox and its step: see help(adagrad_diff.Rule) for an example."
            )
        if "__repr__" not in vars(cls):  # `dataclass` would add another one
            cls.__repr__ = Rule.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """Return the call that makes this rule, without parameters at their defaults."""
        values = {f.name: (getattr(self, f.name), f.default) for f in fields(self) if f.init}
        return call(self, **{k: v for k, (v, usual) in values.items() if np.ndim(v) or v != usual})

    def __post_init__(self) -> None:
        owner, values = type(self).__name__, vars(self)
        if has_eta(self) and not callable(self.eta):  # a schedule is checked whenever it is called
            eta = [_check.positive(value, "eta", owner) for value in np.ravel(self.eta).tolist()]
            if np.ndim(self.eta) > 1 or not eta:
                raise ValueError(
                    f"The 'eta' parameter of {owner} must be a number, a function of n, or a "
                    "one-dimensional array with one value per trajectory. Got an array of shape "
                    f"{np.shape(self.eta)} instead."
                )
            values["eta"] = np.array(eta) if np.ndim(self.eta) else eta[0]
        if self.scale is not None:
            scale = values["scale"] = _check.real_array(self.scale, "scale")
            if scale.ndim != 1 or not (np.isfinite(scale) & (scale > 0)).all():
                raise ValueError(
                    f"The 'scale' parameter of {owner} must be a one-dimensional array of positive "
                    "numbers, one per coordinate."
                )
        for name, check in {"eps": _check.positive, **self._constraints}.items():
            values[name] = check(getattr(self, name), name, owner)

    # ------------------------------------------------------------------ what a rule defines

    @abstractmethod
    def init(self, x: np.ndarray, g: np.ndarray) -> Arrays:
        """Return the memory before the first iteration, given x^1 and g^1."""

    @abstractmethod
    def update(self, memory: Arrays, n: Any, x: Any, g: Any) -> Update:
        """Return the memory with g^n, the point that the prox is applied to, and its step.

        The step is a number, or an array that broadcasts to the shape of x.
        """

    @property
    def average_power(self) -> float:
        """Weights of x_avg grow like this power of n. If it is positive, x_avg is the answer."""
        return 0.0

    def accumulated(self, memory: Arrays) -> Any:
        """Return sums of squared gradients, or of squared differences, if the memory has them.

        A stopping criterion measures gradients by them where the first gradient vanishes.
        """
        return None

    # ------------------------------------------------------------------ what a rule can use

    def step_size(self, n: Any) -> Any:
        """Return eta_n, times the scale of the coordinates if there is one."""
        eta: Any = self.eta
        if callable(eta):
            owner = type(self).__name__
            values = [_check.positive(eta(int(k)), f"eta({k})", owner) for k in np.ravel(n)]
            eta = np.reshape(values, np.shape(n))
        return self._scale * eta

    def block_sums(self, values: Any) -> Any:
        """Return the sums of the rows (coordinates) over each block."""
        if self._labels is None:
            return values
        if not self._labels.any():
            return values.sum(axis=0, keepdims=True)
        total = np.zeros((self._labels.max() + 1, *values.shape[1:]))
        np.add.at(total, self._labels, values)
        return total

    def spread(self, values: Any) -> Any:
        """Return the value of its block for each coordinate."""
        if self._labels is None or len(values) == 1:  # one row broadcasts
            return values
        return values[self._labels]

    # ------------------------------------------------------------------ what solvers use

    @property
    def trajectories(self) -> int | None:
        """The number of step sizes in `eta`; None if it is the same for all trajectories."""
        return len(self.eta) if isinstance(self.eta, np.ndarray) else None

    def select(self, columns: np.ndarray) -> Rule:
        """Return the same rule for some of the trajectories."""
        if not isinstance(self.eta, np.ndarray):
            return self
        chosen = copy.copy(self)
        vars(chosen)["eta"] = self.eta[columns]
        return chosen

    def prepared(
        self, shape: tuple[int, ...], trajectories: int | None, intercept: bool = False
    ) -> Rule:
        """Return this rule for iterates of a shape (without trajectories), or raise.

        `trajectories` is None if iterates have no axis of trajectories. The last coordinate of x,
        or its last row, is an intercept if `intercept` is true. Blocks and scales may leave it out.
        """
        if self.trajectories not in (None, trajectories):
            raise ValueError(
                f"'eta' has {self.trajectories} values, one per trajectory, but x has "
                f"{trajectories or 1} trajectories. Give x0 one column per value."
            )
        rule = copy.copy(self)
        vars(rule)["_labels"] = block_labels(self.blocks, shape, intercept)
        if self.scale is not None:
            size = np.prod(shape)
            last = size // shape[0] if intercept else 0  # an intercept that is left out has scale 1
            if self.scale.size not in (size, size - last):
                raise ValueError(
                    f"'scale' must hold one value per coordinate: {size}. Got {self.scale.size}."
                )
            scale = np.append(self.scale, np.ones(size - self.scale.size))
            vars(rule)["_scale"] = scale if trajectories is None else scale[:, None]
        return rule

    def scales(self) -> np.ndarray:
        """Return the scale of every coordinate, or one number for all."""
        return np.reshape(self._scale, -1)

    def metric(self, size: int) -> tuple[np.ndarray | None, bool]:
        """Return the blocks of the first coordinates, and whether these share one step."""
        if self._labels is None:
            return None, size == 1 and self.scale is None
        labels = self._labels[:size]
        return labels, bool((labels == labels[:1]).all()) and self.scale is None


@frozen
class UnscaledRule(Rule):
    """A rule without the parameter `scale`."""

    scale: Any = fixed(None)


@frozen
class OneStepRule(UnscaledRule):
    """A rule with one step for all coordinates."""

    eps: float = fixed(1e-8)
    blocks: Any = fixed("all")


@frozen
class StepSizeFreeRule(UnscaledRule):
    """A rule without a step size."""

    eta: Any = fixed(None)


@frozen
class AveragingRule(UnscaledRule):
    """A rule whose gradients are taken at averages of proximal points.

    `solvers.proximal_gradient.Averaging` applies the prox to the point that `update` returns, and
    `mix` makes the next iterate of the result. A memory with a "loss" is given the loss at x before
    each update.
    """

    @abstractmethod
    def mix(self, memory: Arrays, n: Any, x: Any, z: Any) -> tuple[Arrays, Any]:
        """Return the memory and x^{n+1}, given x^n and the proximal point z."""


def has_eta(rule: Any) -> bool:
    """Return whether a rule, or rules of a class, have a step size."""
    return bool(rule.__dataclass_fields__["eta"].init)


def as_rule(rule: Any) -> Rule:
    """Return the rule, or raise with a hint."""
    if isinstance(rule, Rule):
        return rule
    if isinstance(rule, type) and issubclass(rule, Rule):
        name = rule.__name__
        raise TypeError(f"'rule' is the class {name}. Did you mean {name}(...)?")
    raise TypeError(f"'rule' must be a rule such as AdaGradDiff(eta=0.1). Got {rule!r} instead.")


def squared_norm(values):
    """Return ||values||^2, of each trajectory."""
    return np.sum(values**2, axis=0)


def moving_average(average, values, decay):
    """Return an exponential average with new values; `decay` is how much of the old one stays."""
    return decay * average + (1 - decay) * values


def unbiased(average, decay, n):
    """Return an exponential average of n values, corrected for its start at zero."""
    return average / (1 - decay**n)


def block_labels(blocks: Any, shape: tuple[int, ...], intercept: bool = False) -> np.ndarray | None:
    """Return the labels 0, 1, ... of the blocks of all coordinates of an x of the given shape.

    The space of the paper is X = X_1 + ... + X_d, and the metric has one weight w_i per block X_i.

    Parameters
    ----------
    blocks : None or "element", "all", "row", or an array of integers
        Single coordinates; one block; the rows of a two-dimensional x; or any partition, as one
        label per coordinate.
    shape : tuple
        Shape of x, without the trajectory axis.
    intercept : bool
        Whether the last coordinate (or row) of x is an intercept. If labels leave it out, it is
        another block.

    Returns
    -------
    labels : array of integers or None
        One label per coordinate of x, read row by row. None stands for blocks of single
        coordinates.

    Examples
    --------
    >>> block_labels([7, 7, 3], (3,)).tolist()
    [1, 1, 0]
    >>> block_labels("row", (2, 3)).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    size, labels = int(np.prod(shape)), np.asarray(blocks)
    if blocks is None or np.array_equal(labels, "element"):
        return None
    if np.array_equal(labels, "all"):
        return np.zeros(size, np.int64)
    if np.array_equal(labels, "row"):
        if len(shape) != 2:
            raise ValueError(
                f"blocks='row' needs a two-dimensional x. Got x of shape {shape} instead."
            )
        return np.repeat(np.arange(shape[0]), shape[1])
    _check.refuse_masked(blocks, "'blocks'")
    if labels.dtype.kind not in "iu":
        raise ValueError(
            "The 'blocks' parameter must be None, 'element', 'all', 'row' or an array of integer "
            f"labels. Got {_check.shown(blocks)} instead."
        )
    rest = (shape[0] - intercept, *shape[1:])  # without the intercept
    if labels.shape not in (shape, (size,), rest, (np.prod(rest),)):
        raise ValueError(
            f"'blocks' must hold one label per coordinate: {size} for x of shape {shape}. Got "
            f"labels of shape {labels.shape}."
        )
    codes = np.unique(labels, return_inverse=True)[1]
    return np.append(codes, np.full(size - codes.size, codes.max(initial=-1) + 1))
