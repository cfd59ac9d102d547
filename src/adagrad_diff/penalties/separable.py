"""Different penalties on different coordinates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .arrays import indicator, point, quiet
from .base import Penalty, QuadraticTerms, known_at_zero
from .foreign import as_penalty

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Separable(Penalty):
    r"""A sum of penalties, each on coordinates of its own.

    .. math:: \varphi(x) = \sum_k \varphi_k(x_{I_k}), \qquad \text{prox}(z, s)_{I_k} = \text{prox}_k(z_{I_k}, s_{I_k})

    Coordinates that no part names are not penalized.

    Parameters
    ----------
    parts : list of (coordinates, penalty)
        Coordinates are a slice or integers; no two parts may share one. A part that needs one step for all its
        coordinates can be used if these lie in one block of the metric.

    Examples
    --------
    >>> from adagrad_diff.penalties import L1, NonNegative, Separable
    >>> penalty = Separable([(slice(0, 2), L1(1.0)), ([3], NonNegative())])
    >>> penalty.prox([3.0, 0.5, -7.0, -7.0], step=1.0).tolist()
    [2.0, 0.0, -7.0, 0.0]
    """

    def __init__(self, parts: Iterable[tuple[Any, Any]]):
        try:
            self.parts = [(where, as_penalty(penalty)) for where, penalty in parts]
        except (TypeError, ValueError) as error:
            raise type(error)(
                "The 'parts' parameter of Separable must be a list of pairs (coordinates, penalty), for example "
                f"[(slice(0, 3), L1(1.0)), ([5, 7], Ridge(1.0))]. {error}"
            ) from None
        self._where = [
            _coordinates(where, f"part {k} of Separable") for k, (where, _) in enumerate(self.parts)
        ]
        self._last: tuple[int, list[tuple[Any, Penalty]], np.ndarray] | None = None  # see `plan`

    @property
    def accepts(self) -> str:  # type: ignore[override]
        """Any diagonal metric, if the parts do; else one that is constant on the parts that need it."""
        return (
            "diagonal"
            if all(penalty.accepts == "diagonal" for _, penalty in self.parts)
            else "block"
        )

    @property
    def properties(self) -> frozenset[str]:  # type: ignore[override]
        """What all parts are; norms make a seminorm, as there may be coordinates without a penalty."""
        kinds = [
            {"seminorm" if kind == "norm" else kind for kind in penalty.properties}
            for _, penalty in self.parts
        ]
        return (
            frozenset(set.intersection(*kinds)) if kinds else frozenset({"separable", "seminorm"})
        )

    @quiet
    def value(self, x: ArrayLike) -> Any:
        x = point(self, x)
        _, pairs, _ = self.plan(len(x))
        return sum((penalty.value(x[where]) for where, penalty in pairs), np.zeros(x.shape[1:]))[()]

    def apply(self, z: np.ndarray, step: np.ndarray, out: np.ndarray) -> None:
        np.copyto(out, z)
        for where, penalty in self.plan(len(z))[1]:
            part, steps = out[where], step[where]
            if penalty.accepts == "scalar":
                if (steps != steps[:1]).any():
                    raise ValueError(
                        f"{penalty.name}, on the coordinates {_text(where)}, needs one step for all of them."
                    )
                steps = steps[:1]
            penalty.apply(part, steps, part)
            if not isinstance(where, slice):  # then it is a copy
                out[where] = part

    @quiet
    def conjugate(self, y: ArrayLike) -> Any:
        """The sum of the parts' conjugates; infinite unless y is zero where nothing is penalized."""
        y = point(self, y, "y")
        _, pairs, rest = self.plan(len(y))
        return sum(
            (penalty.conjugate(y[where]) for where, penalty in pairs),
            indicator((y[rest] == 0).all(axis=0)),
        )

    def _conjugate_near(self, y: np.ndarray, e: np.ndarray) -> tuple[Any, Any]:
        _, pairs, rest = self.plan(y.size)
        bounds = [penalty.conjugate_bound(y[where], e[where]) for where, penalty in pairs]
        bounds.append(known_at_zero(y[rest], e[rest])[0])
        return sum(bounds), sum(abs(bound) for bound in bounds)

    @property
    def accuracy(self) -> float:  # type: ignore[override]
        """That of the least accurate part."""
        return max((penalty.accuracy for _, penalty in self.parts), default=Penalty.accuracy)

    def quadratic_terms(self, size: int) -> QuadraticTerms | None:
        found, labels = QuadraticTerms.of(size), np.full(size, -1)
        strengths: list[float] = []
        for where, penalty in self.plan(size)[1]:
            terms = penalty.quadratic_terms(labels[where].size)
            if terms is None:
                return None
            for name in ("l1", "l2", "lower", "upper"):
                getattr(found, name)[where] = getattr(terms, name)
            found.rounding = max(found.rounding, terms.rounding)
            if terms.labels is not None and terms.strength is not None:
                labels[where] = terms.labels + len(strengths)
                strengths += terms.strength.tolist()
        if strengths:
            single = np.flatnonzero(labels < 0)  # the other coordinates are groups of strength 0
            labels[single] = len(strengths) + np.arange(single.size)
            found.labels, found.strength = labels, np.append(strengths, np.zeros(single.size))
        return found

    @quiet
    def polar(self, y: ArrayLike) -> Any:
        """The largest of the parts' polars; infinite unless y is zero where nothing is penalized."""
        y = point(self, y, "y")
        _, pairs, rest = self.plan(len(y))
        return np.max(
            [
                indicator((y[rest] == 0).all(axis=0)),
                *(penalty.polar(y[where]) for where, penalty in pairs),
            ],
            axis=0,
        )

    def check_size(self, size: int) -> None:
        self.plan(size)

    def check_metric(self, labels: np.ndarray | None, isotropic: bool) -> None:
        if isotropic or self.accepts == "diagonal":
            return
        size, pairs, _ = self._last or self.plan(
            self._least_size() if labels is None else len(labels)
        )
        labels = np.arange(size) if labels is None else labels
        for where, penalty in pairs:
            inner = labels[where]
            try:
                penalty.check_metric(inner, bool((inner == inner[0]).all()))
            except ValueError as error:
                raise ValueError(
                    f"The coordinates {_text(where)} have a penalty that does not fit the metric: {error} It is enough if "
                    "these coordinates are one block: give them one label in 'blocks'."
                ) from None

    def plan(self, size: int) -> tuple[int, list[tuple[Any, Penalty]], np.ndarray]:
        """Return the size, the coordinates of each part with its penalty, and those without any."""
        if self._last is None or self._last[0] != size:
            size = _check.count(size, "size", self.name)
            pairs, taken = [], np.zeros(size, bool)
            for k, (_, penalty) in enumerate(self.parts):
                index = self._indices(k, size)
                if taken[index].any() or np.unique(index).size < index.size:
                    raise ValueError(
                        f"Part {k} of {self.name} names coordinates a second time: parts must not overlap."
                    )
                taken[index] = True
                if index.size:
                    penalty.check_size(index.size)
                    pairs.append((_as_slice(index), penalty))
            self._last = size, pairs, np.flatnonzero(~taken)
        return self._last

    def _least_size(self) -> int:
        """Return a size that has all the coordinates that are named, and at least two where a slice has no end."""
        return 2 + max(
            (int(np.abs(_numbers(where)).max(initial=0)) for where in self._where), default=0
        )

    def _indices(self, k: int, size: int) -> np.ndarray:
        """Return the coordinates of a part as indices >= 0 of vectors of the given size."""
        where = self._where[k]
        numbers, last = _numbers(where), size if isinstance(where, slice) else size - 1
        if (beyond := numbers[(numbers > last) | (numbers < -size)]).size:
            raise ValueError(
                f"Part {k} of {self.name} names {beyond[0]}, but there are {size} penalized coordinates."
            )
        return np.asarray(np.arange(size)[where])


class Unpenalised(Separable):
    r"""A penalty that leaves some coordinates free.

    .. math:: \varphi(x) = \psi(x_I), \quad I = \text{all coordinates but the free ones}

    Parameters
    ----------
    penalty : Penalty
        The penalty on the others.
    free : slice or integers
        The coordinates without a penalty; negative ones count from the end.

    Examples
    --------
    >>> from adagrad_diff.penalties import L1, Unpenalised
    >>> Unpenalised(L1(1.0), free=-1).prox([3.0, 0.5, 0.5], step=1.0).tolist()
    [2.0, 0.0, 0.5]
    """

    def __init__(self, penalty: Any, free: Any):
        self.penalty, self.free = as_penalty(penalty), free
        super().__init__([(free, self.penalty)])

    def _indices(self, k: int, size: int) -> np.ndarray:
        return np.delete(np.arange(size), super()._indices(k, size))

    def __repr__(self) -> str:
        return f"Unpenalised(penalty={self.penalty!r}, free={self.free!r})"


def _coordinates(where: Any, owner: str) -> Any:
    """A slice, or an array of integers."""
    sentence = f"The coordinates of {owner} must be a slice or integers. Got {_check.shown(where)} instead."
    if isinstance(where, slice):
        try:
            where.indices(0)
            _numbers(where)
        except (TypeError, ValueError, OverflowError):  # no numbers, too large, or a step of zero
            raise ValueError(sentence) from None
        return where
    try:
        array = np.atleast_1d(np.asarray(where))
    except ValueError:  # lists of different lengths
        raise ValueError(sentence) from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(sentence)
    return array.astype(np.intp)


def _numbers(where: Any) -> np.ndarray:
    """All coordinates that are written down."""
    if isinstance(where, slice):
        return np.array([end for end in (where.start, where.stop) if end is not None], np.intp)
    return np.asarray(where)


def _as_slice(index: np.ndarray) -> Any:
    """The same coordinates as a slice if possible: slices are not copied."""
    first, last = int(index[0]), int(index[-1]) + 1
    return (
        slice(first, last) if last - first == index.size and (np.diff(index) == 1).all() else index
    )


def _text(where: Any) -> str:
    """Return coordinates as messages name them."""
    if not isinstance(where, slice):
        return _check.shown(where.tolist())
    return f"{where.start} to {where.stop - 1}"
