"""One fold of a cross-validation: a path on its samples, scored on those left out."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import _safe_split


def along_fold(
    estimator: Any,
    X: Any,
    y: Any,
    weight: Any,
    train: Any,
    test: Any,
    alphas: np.ndarray,
    scorer: Any,
) -> tuple[np.ndarray, list[str]]:
    """Scores on the samples left out, and how the fits ended, for each strength."""
    X_train, y_train = _safe_split(estimator, X, y, train)
    X_test, y_test = _safe_split(estimator, X, y, test, train)
    left_out = None if weight is None else weight[test]
    walker = estimator._walker()
    problems = walker._prepare(X_train, y_train, None if weight is None else weight[train])
    if scorer is None:
        judge = walker._judge(X_test, y_test, left_out)
    else:
        judge = lambda: scorer(walker, X_test, y_test, **weights_for(scorer, left_out))
    scores, reasons = np.empty(len(alphas)), []
    for k, _ in enumerate(walker._along(problems, alphas)):
        scores[k] = judge()
        reasons.append(walker.stop_reason_)
    return scores, reasons


def weights_for(scorer: Any, weight: Any) -> dict[str, Any]:
    """The weights as an argument, if there are any and the scorer takes them."""
    if weight is None:
        return {}
    known = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters.values()
    takes = any(p.name == "sample_weight" or p.kind == p.VAR_KEYWORD for p in known)
    return {"sample_weight": weight} if takes else {}
