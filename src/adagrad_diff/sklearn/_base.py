"""What all estimators share: parameters of the solver, problems to solve, and fitted attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from .. import _check
from .._files import as_path
from .._messages import warn
from ..losses import LinearModel
from ..penalties import Penalty
from ._choices import kind_of, model_of, penalty_of
from ._data import dependent_columns, products, validated
from ._docs import documentation_link, with_shared_text
from ._partial_fit import Stream
from ._path import Path
from ._solve import Solution, null_point, solve, unconverged, worst


class Documented(BaseEstimator):
    """Docstrings with shared text, and links to the documentation in HTML representations."""

    _doc_link_module = "adagrad_diff"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__doc__ = with_shared_text(cls.__doc__)

    @property
    def _doc_link_template(self) -> str:
        return documentation_link()


@dataclass(kw_only=True, eq=False, repr=False)
class SolverParameters(Documented):
    """The parameters that all estimators have. Subclasses are dataclasses with further ones."""

    fit_intercept: bool = True
    tol: float = 1e-4
    max_iter: int = 10000
    eta: Any = "auto"
    warm_start: bool = False
    verbose: int = 0
    checkpoint: Any = None
    checkpoint_every: float = 60.0
    batch_size: int | None = None


class Estimator(SolverParameters):
    """Checks of the parameters, and reports about the solutions."""

    alpha: Any

    def _label(self, k: int, problems: int) -> str:
        """Return the name of the k-th problem in messages."""
        return type(self).__name__ + (f" (problem {k + 1} of {problems})" if problems > 1 else "")

    def _options(self) -> dict[str, Any]:
        """Check the parameters, and return those of `solve`."""
        owner = type(self).__name__
        _check.flag(self.fit_intercept, "fit_intercept", owner)
        _check.flag(self.warm_start, "warm_start", owner)
        if self.alpha is not None:
            _check.nonnegative(self.alpha, "alpha", owner)
        if not (isinstance(self.eta, str) and self.eta == "auto"):
            wanted = "'auto' or a positive number"
            _check.number(self.eta, "eta", owner, wanted, lambda eta: eta > 0)
        if self.batch_size is not None:
            _check.count(self.batch_size, "batch_size", owner, least=1)
        verbose = int(self.verbose) if isinstance(self.verbose, bool | np.bool_) else self.verbose
        seconds = _check.nonnegative(self.checkpoint_every, "checkpoint_every", owner)
        path = None if self.checkpoint is None else as_path(self.checkpoint, "checkpoint")
        return {
            "eta": self.eta,
            "tol": _check.nonnegative(self.tol, "tol", owner),
            "max_iter": _check.count(self.max_iter, "max_iter", owner, least=1),
            "verbose": _check.count(verbose, "verbose", owner) > 0,
            "checkpoint": path,
            "checkpoint_every": seconds,
            "batch_size": self.batch_size,
        }

    def _strength(self, total: float) -> float:
        """Return alpha, or what follows from C and the total weight of the samples."""
        owner = type(self).__name__
        if self.alpha is not None or not hasattr(self, "C"):
            return _check.nonnegative(self.alpha, "alpha", owner)
        product = _check.positive(self.C, "C", owner) * total
        alpha = 1.0 / product if product > 0 else np.inf
        if not 0 < alpha < np.inf:
            raise ValueError(
                f"{owner}: C={self.C} and the sum of the sample weights, {total}, mean "
                f"alpha = {alpha}. Choose another C, or give 'alpha' instead."
            )
        return alpha

    def _report(self, solutions: list[Solution], listed: bool = False) -> None:
        """Set the attributes that describe how good the solutions are."""
        several = listed or len(solutions) > 1
        for name, attribute in (("nit", "n_iter_"), ("gap", "dual_gap_"), ("fun", "objective_")):
            values = [getattr(solution, name) for solution in solutions]
            setattr(self, attribute, np.array(values) if several else values[0])
        found = worst(solutions)
        self.stop_reason_, self.converged_ = found.reason, found.converged

    def _warn(self, solutions: list[Solution], advice: str = "") -> None:
        """Warn if a problem is not solved."""
        if not self.converged_:
            owner = type(self).__name__
            message = unconverged(owner, solutions, self.tol, self.max_iter, self.alpha)
            warn(message + advice, ConvergenceWarning)


@dataclass
class Problems:
    """What a fit has to solve, for any strength of the penalty."""

    model: Any  # what creates the first loss
    losses: list[LinearModel]  # one per problem
    total: float  # the weight of all samples
    columns: int  # of coefficients in each problem: the classes of the multinomial loss
    listed: (
        bool  # the user gave a list: attributes are arrays, and each starts from the previous one
    )
    options: dict[str, Any]  # of `solve`

    @property
    def features(self) -> int:
        """The number of columns of X."""
        return self.losses[0].A.shape[1]


class LinearEstimator(Path, Estimator):
    """A linear model: predictions are functions of X coef_ + intercept_.

    Its loss and its penalty are parameters, or else attributes of the class by the same names.
    """

    _losses: ClassVar[dict[str, type[LinearModel]]]  # by name
    loss: Any
    penalty: Any
    l1_ratio: Any = 0.5
    groups: Any = None
    weights: Any = None
    coef_: Any
    intercept_: Any

    def _model(self) -> Any:
        """Return what creates the loss."""
        return model_of(self.loss, self._losses, type(self).__name__)

    def _kind(self) -> Any:
        """Return the class of the loss: of the last fit, or of the next one if there was none."""
        return kind_of(self._fitted if hasattr(self, "_fitted") else self._model())

    def _problems(
        self,
        models: list[Any],
        X: Any,
        targets: list[np.ndarray] | np.ndarray,
        weight: np.ndarray | None,
        columns: int = 1,
        listed: bool = False,
    ) -> Problems:
        """Return one problem per model. `targets` has one vector for each, or is one for all."""
        options = self._options()
        losses: list[LinearModel] = []
        extra = {"classes": columns} if columns > 1 else {}
        for k, model in enumerate(models):
            b = targets[k] if isinstance(targets, list) else targets
            loss = model(X, b, sample_weight=weight, intercept=bool(self.fit_intercept), **extra)
            if losses:  # share the data
                loss.A, loss.weight = losses[0].A, losses[0].weight
            losses.append(loss)
        total = float(losses[0].A.shape[0] if weight is None else weight.sum())
        return Problems(models[0], losses, total, columns, listed, options)

    def _complete(self, problems: Problems) -> Self:
        """Finish `fit`."""
        solutions = self._solve(problems, self._strength(problems.total))
        if not self.converged_:
            names = getattr(self, "feature_names_in_", range(problems.features))
            loss = problems.losses[0]
            self._warn(solutions, dependent_columns(loss.A, loss.intercept, names))
        return self

    def _penalty(self, problems: Problems, alpha: float) -> Penalty:
        """Return the penalty of each problem."""
        shape, owner = (problems.features, problems.columns), type(self).__name__
        return penalty_of(
            self.penalty, alpha, shape, owner, self.l1_ratio, self.groups, self.weights
        )

    def _solve(self, problems: Problems, alpha: float) -> list[Solution]:
        """Solve the problems for one strength of the penalty, and set the fitted attributes."""
        losses, penalty = problems.losses, self._penalty(problems, alpha)
        starts = self._last(problems) if self.warm_start else []
        self._fitted, self._weight_seen = problems.model, problems.total
        self._streams = list[Stream]()
        self.__dict__.pop("n_samples_seen_", None)
        solutions: list[Solution] = []
        for k, loss in enumerate(losses):
            previous = solutions[-1].x if problems.listed and solutions else None
            x0, label = starts[k] if starts else previous, self._label(k, len(losses))
            solutions.append(solve(loss, penalty, x0, label=label, **problems.options))
        self._adopt(problems, [solution.x for solution in solutions])
        self._report(solutions, problems.listed)
        return solutions

    def _update(self, problems: Problems) -> Self:
        """Finish `partial_fit`: one pass over the samples, from where the last call has ended."""
        losses, eta, size = problems.losses, problems.options["eta"], problems.options["batch_size"]
        weight = getattr(self, "_weight_seen", 0.0) + problems.total
        penalty = self._penalty(problems, self._strength(weight))
        streams: list[Stream] = getattr(self, "_streams", [])
        if [s.settings for s in streams] != [Stream.settings_of(f, penalty) for f in losses]:
            starts = self._last(problems) or [null_point(loss) for loss in losses]
            pairs = zip(starts, losses, strict=True)
            streams = [Stream(np.array(x, f.dtype), f, penalty) for x, f in pairs]
        with np.errstate(all="ignore"):  # an overflow shows in the coefficients
            pairs = zip(streams, losses, strict=True)
            after = [s.after(f, penalty, eta, size, problems.total) for s, f in pairs]
        if not all(np.isfinite(stream.x).all() for stream in after):
            raise ValueError(
                f"These samples would make a coefficient of {type(self).__name__} infinite: nothing "
                "was changed. Look for values that are far too large, or give a smaller 'eta'."
            )
        self._streams, self._fitted, self._weight_seen = after, problems.model, weight
        self._adopt(problems, [stream.x for stream in after])
        seen = getattr(self, "n_samples_seen_", 0)
        self.n_iter_, self.n_samples_seen_ = 1, seen + losses[0].A.shape[0]
        self.objective_, self.dual_gap_ = np.nan, np.inf
        self.converged_, self.stop_reason_ = False, "partial_fit"
        return self

    def _adopt(self, problems: Problems, points: list[np.ndarray]) -> None:
        """Set coef_ and intercept_ from the solutions of the problems."""
        features, columns = problems.features, problems.columns
        rows = np.concatenate([x.reshape(-1, columns).T for x in points])
        coef = np.ascontiguousarray(rows[:, :features]) + rows.dtype.type(0)  # no negative zeros
        has_intercept = rows.shape[1] > features
        intercept = rows[:, features].copy() if has_intercept else np.zeros(len(rows), rows.dtype)
        self._set(coef, intercept, problems.listed)

    def _set(self, coef: np.ndarray, intercept: np.ndarray, listed: bool) -> None:
        """Set coef_ from (problems or columns, features), and intercept_."""
        self.coef_, self.intercept_ = coef, intercept

    def _last(self, problems: Problems) -> list[Any]:
        """Return the last solution, or nothing if there is none or it has another shape."""
        if not hasattr(self, "coef_"):
            return []
        rows, columns = np.atleast_2d(self.coef_), problems.columns
        if rows.shape != (len(problems.losses) * columns, problems.features):
            return []
        if self.fit_intercept:
            rows = np.column_stack([rows, np.atleast_1d(self.intercept_)])
        return list(rows) if columns == 1 else [rows.T]

    def _decision(self, X: Any) -> np.ndarray:
        """Return X coef_' + intercept_."""
        check_is_fitted(self, "coef_")
        return self._scores(validated(self, X, reset=False))

    def _scores(self, X: Any) -> np.ndarray:
        """Return decision values for validated X."""
        return np.asarray(products(X, np.asarray(self.coef_).T) + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
