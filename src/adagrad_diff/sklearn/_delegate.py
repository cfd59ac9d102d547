"""What an estimator with a better one inside leaves to that one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted


def _delegated(name: str) -> Callable[[Any], bool]:
    """Whether the estimator inside has this method."""
    return lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), name)


def _of_best(name: str) -> Any:
    """An attribute of `best_estimator_`."""

    def read(self: Any) -> Any:
        if "best_estimator_" not in vars(self):
            raise AttributeError(
                f"This {type(self).__name__} has no {name!r}: it is not fitted, or its 'refit' is False."
            )
        return getattr(self.best_estimator_, name)

    return property(read, doc=f"`{name}` of `best_estimator_`.")


class Delegate:
    """Predictions and attributes of `best_estimator_`."""

    estimator: Any
    best_estimator_: Any
    coef_, intercept_, classes_ = _of_best("coef_"), _of_best("intercept_"), _of_best("classes_")
    n_iter_, objective_, dual_gap_ = (
        _of_best("n_iter_"),
        _of_best("objective_"),
        _of_best("dual_gap_"),
    )
    converged_, stop_reason_ = _of_best("converged_"), _of_best("stop_reason_")
    n_features_in_, feature_names_in_ = _of_best("n_features_in_"), _of_best("feature_names_in_")

    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    @available_if(_delegated("predict"))
    def predict(self, X: Any) -> np.ndarray:
        """`predict` of `best_estimator_`."""
        return np.asarray(self._best().predict(X))

    @available_if(_delegated("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """`decision_function` of `best_estimator_`."""
        return np.asarray(self._best().decision_function(X))

    @available_if(_delegated("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """`predict_proba` of `best_estimator_`."""
        return np.asarray(self._best().predict_proba(X))

    @available_if(_delegated("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """`predict_log_proba` of `best_estimator_`."""
        return np.asarray(self._best().predict_log_proba(X))
