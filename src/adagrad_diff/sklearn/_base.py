"""What all linear estimators share: from checked data to solved problems, and back to attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .. import _check
from .._messages import warn
from ..losses import LinearModel
from ..penalties import Penalty
from . import _ends
from ._choices import kind_of, model_of, penalty_of
from ._data import products, validated
from ._keeping import kept_in
from ._null import null_point
from ._options import step_size, verbosity
from ._path import Path
from ._solve import Solution, solve
from ._stream import Stream


class Estimator(BaseEstimator):
    """The solver's parameters, and what is reported about its answers."""

    alpha: Any
    eta: Any
    tol: Any
    max_iter: Any
    fit_intercept: Any
    warm_start: Any
    verbose: Any
    checkpoint: Any = None
    checkpoint_every: Any = 60.0
    batch_size: Any = None

    def _keep(self, given: dict[str, Any]) -> None:
        """Each parameter under its own name, as scikit-learn wants it; `given` are the locals() of an __init__."""
        for name, value in given.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def _label(self, k: int, problems: int) -> str:
        """What to call the k-th problem when there is something to say about it."""
        return type(self).__name__ + (f" (problem {k + 1} of {problems})" if problems > 1 else "")

    def _options(self) -> dict[str, Any]:
        """The parameters of the solver, checked; the flags are, too."""
        owner = type(self).__name__
        _check.flag(self.fit_intercept, "fit_intercept", owner)
        _check.flag(self.warm_start, "warm_start", owner)
        _check.nonnegative(0.0 if self.alpha is None else self.alpha, "alpha", owner)
        return {
            "eta": step_size(self.eta, owner),
            "tol": _check.nonnegative(self.tol, "tol", owner),
            "max_iter": _check.count(self.max_iter, "max_iter", owner, least=1),
            "verbose": verbosity(self.verbose, owner),
            "kept": kept_in(self.checkpoint, self.checkpoint_every, owner),
            "batch_size": None
            if self.batch_size is None
            else _check.count(self.batch_size, "batch_size", owner, least=1),
        }

    def _strength(self, total: float) -> float:
        """alpha, or what it follows from: C = 1 / (total weight of the samples * alpha)."""
        if self.alpha is not None or not hasattr(self, "C"):
            return _check.nonnegative(self.alpha, "alpha", type(self).__name__)
        product = _check.positive(self.C, "C", type(self).__name__) * total
        alpha = 1.0 / product if product > 0 else np.inf
        if not 0 < alpha < np.inf:
            raise ValueError(
                f"{type(self).__name__}: 1 / (C * sum of the weights of the samples) is {alpha}, which is no strength of a "
                f"penalty. C is {self.C}, the sum {total}: choose others, or give 'alpha' instead of C."
            )
        return alpha

    def _report(self, solutions: list[Solution], listed: bool = False) -> None:
        """n_iter_, dual_gap_, objective_ (numbers, or one per problem), stop_reason_ (the worst), converged_ (all)."""
        several = listed or len(solutions) > 1
        self.n_iter_ = np.array([s.nit for s in solutions]) if several else solutions[0].nit
        self.dual_gap_ = np.array([s.gap for s in solutions]) if several else solutions[0].gap
        self.objective_ = np.array([s.fun for s in solutions]) if several else solutions[0].fun
        self.stop_reason_ = _worst(solutions).reason
        self.converged_ = _ends.is_converged(self.stop_reason_)

    def _warn(self, solutions: list[Solution]) -> None:
        """Say so if a problem is not solved."""
        if not self.converged_:
            worst = _worst(solutions)
            number = sum(s.reason == worst.reason for s in solutions)
            where = f" in {number} of its {len(solutions)} problems" if len(solutions) > 1 else ""
            easier = (
                "a smaller C"
                if self.alpha is None
                else "a larger alpha"
                if self.alpha
                else "a penalty (alpha > 0)"
            )
            message = _ends.unconverged(
                type(self).__name__, worst, where, self.tol, self.max_iter, easier
            )
            warn(message, ConvergenceWarning)


def _worst(solutions: list[Solution]) -> Solution:
    return max(solutions, key=lambda s: (_ends.severity(s.reason), s.gap))


@dataclass
class Problems:
    """What there is to solve, whatever the strength of the penalty: of data that are checked, sorted and encoded."""

    model: Any  # what made the first of the losses
    losses: list[LinearModel]  # one per problem
    total: float  # the weight of all samples
    columns: int  # of coefficients in each problem: the classes of the multinomial loss
    listed: bool  # whether the user gave a list of them: results are arrays, and each starts from the one before
    options: dict[str, Any]  # of the solver


class LinearEstimator(Path, Estimator):
    """A linear model: predictions are functions of X coef_ + intercept_.

    Its loss and its penalty are parameters, or else attributes of the class, by the same names.
    """

    _losses: ClassVar[dict[str, type[LinearModel]]]  # those that have a name
    loss: Any
    penalty: Any
    l1_ratio: Any = 0.5
    groups: Any = None
    weights: Any = None
    coef_: Any
    intercept_: Any

    def _model(self) -> Any:
        """What makes the loss."""
        return model_of(self.loss, self._losses, type(self).__name__)

    def _kind(self) -> Any:
        """The class of the loss: that of the last fit, or of the next one if there was none."""
        return kind_of(self._fitted if hasattr(self, "_fitted") else self._model())

    def _problems(
        self,
        models: list[Any],
        X: Any,
        targets: list[np.ndarray],
        weight: np.ndarray | None,
        columns: int = 1,
        listed: bool = False,
    ) -> Problems:
        """One problem per model and vector of targets."""
        options = self._options()
        losses: list[LinearModel] = []
        extra = {"classes": columns} if columns > 1 else {}
        for model, b in zip(models, targets, strict=True):
            loss = model(X, b, sample_weight=weight, intercept=bool(self.fit_intercept), **extra)
            if losses:  # the same numbers, in one place
                loss.A, loss.weight = losses[0].A, losses[0].weight
            losses.append(loss)
        total = float(len(targets[0]) if weight is None else weight.sum())
        return Problems(models[0], losses, total, columns, listed, options)

    def _complete(self, problems: Problems) -> Self:
        """The rest of `fit`."""
        self._warn(self._solve(problems, self._strength(problems.total)))
        return self

    def _penalty(self, problems: Problems, alpha: float) -> Penalty:
        """That of all the problems."""
        shape, owner = (problems.losses[0].A.shape[1], problems.columns), type(self).__name__
        return penalty_of(
            self.penalty, alpha, shape, owner, self.l1_ratio, self.groups, self.weights
        )

    def _solve(self, problems: Problems, alpha: float) -> list[Solution]:
        """Solve them for one strength of the penalty. Sets coef_, intercept_, and what is known about them."""
        losses, columns = problems.losses, problems.columns
        penalty = self._penalty(problems, alpha)
        starts = self._starts(len(losses), columns, losses[0].A.shape[1])
        solutions: list[Solution] = []
        self._fitted, self._streams, self._weight_seen = (
            problems.model,
            list[Stream](),
            problems.total,
        )
        self.__dict__.pop("n_samples_seen_", None)
        for k, (loss, start) in enumerate(zip(losses, starts, strict=True)):
            x0 = solutions[-1].x if start is None and problems.listed and solutions else start
            solutions.append(
                solve(loss, penalty, x0, label=self._label(k, len(losses)), **problems.options)
            )
        self._adopt(problems, [solution.x for solution in solutions])
        self._report(solutions, problems.listed)
        return solutions

    def _adopt(self, problems: Problems, points: list[np.ndarray]) -> None:
        """Take coefficients and intercepts from the solutions of the problems."""
        (features, intercept), columns = (
            (problems.losses[0].A.shape[1], problems.losses[0].intercept),
            problems.columns,
        )
        rows = np.concatenate([x.reshape(features + intercept, columns).T for x in points])
        coef = np.ascontiguousarray(rows[:, :features]) + rows.dtype.type(
            0
        )  # without negative zeros
        self._set(
            coef,
            rows[:, features].copy() if intercept else np.zeros(len(rows), rows.dtype),
            problems.listed,
        )

    def _see(self, problems: Problems) -> Self:
        """The rest of `partial_fit`: these samples once, from where the last call, or a fit, has ended."""
        losses, columns, options = problems.losses, problems.columns, problems.options
        weight = getattr(self, "_weight_seen", 0.0) + problems.total
        penalty, streams = (
            self._penalty(problems, self._strength(weight)),
            getattr(self, "_streams", []),
        )
        if len(streams) != len(losses) or not all(
            map(Stream.continues, streams, losses, [penalty] * len(losses))
        ):
            known = (
                self._last(len(losses), columns, losses[0].A.shape[1])
                if hasattr(self, "coef_")
                else []
            )
            starts = known or map(null_point, losses)
            streams = [
                Stream(np.array(x, loss.dtype), loss, penalty)
                for x, loss in zip(starts, losses, strict=True)
            ]
        seen = (options["eta"], options["batch_size"], problems.total)
        with np.errstate(all="ignore"):  # what overflows is seen in the coefficients
            after = [s.see(loss, penalty, *seen) for s, loss in zip(streams, losses, strict=True)]
        if not all(np.isfinite(stream.x).all() for stream in after):
            raise ValueError(
                f"These samples would make a coefficient of {type(self).__name__} infinite: nothing was changed. Look for "
                "values that are far too large, or give a smaller 'eta'."
            )
        self._streams, self._fitted, self._weight_seen = after, problems.model, weight
        self._adopt(problems, [stream.x for stream in after])
        self.n_iter_, self.n_samples_seen_ = (
            1,
            getattr(self, "n_samples_seen_", 0) + problems.losses[0].A.shape[0],
        )
        self.objective_, self.dual_gap_, self.converged_, self.stop_reason_ = (
            np.nan,
            np.inf,
            False,
            "partial_fit",
        )
        return self

    def _set(self, coef: np.ndarray, intercept: np.ndarray, listed: bool) -> None:
        """coef_ (problems or columns, features) and intercept_."""
        self.coef_, self.intercept_ = coef, intercept

    def _starts(self, problems: int, columns: int, features: int) -> list[Any]:
        """Where to start: the last solution with warm_start, if there is one of the same shape."""
        known = (
            self._last(problems, columns, features)
            if self.warm_start and hasattr(self, "coef_")
            else []
        )
        return known or [None] * problems

    def _last(self, problems: int, columns: int, features: int) -> list[Any]:
        """The last solution; nothing, if it is of another shape."""
        rows = np.atleast_2d(self.coef_)
        if rows.shape != (problems * columns, features):
            return []
        if self.fit_intercept:
            rows = np.column_stack([rows, np.atleast_1d(self.intercept_)])
        return list(rows) if columns == 1 else [rows.T]

    def _decision(self, X: Any) -> np.ndarray:
        """X coef_' + intercept_."""
        check_is_fitted(self, "coef_")
        return self._scores(validated(self, X, reset=False))

    def _scores(self, X: Any) -> np.ndarray:
        """The same of an X that is checked."""
        return np.asarray(products(X, np.asarray(self.coef_).T) + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
