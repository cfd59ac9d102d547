"""Folds on a cluster, and an estimator that knows one."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, _clone_parametrized

from ..sweeps.workers import run_tasks
from ._folds import along_fold


class WithClient(BaseEstimator):
    """A connection is neither copied nor written down: clones share it, pickles do without."""

    client: Any

    def __sklearn_clone__(self) -> Any:
        bare = copy(self)
        bare.client = None
        twin = _clone_parametrized(bare)
        twin.client = self.client
        return twin

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}


def on_cluster(
    client: Any,
    owner: str,
    estimator: Any,
    X: Any,
    y: Any,
    weight: Any,
    folds: list[Any],
    alphas: np.ndarray,
    scorer: Any,
) -> list[tuple[np.ndarray, list[str]]]:
    """`along_fold` of every fold, by a client; in order."""
    tasks = {k: (estimator, *fold, alphas, scorer) for k, fold in enumerate(folds)}
    finished = run_tasks(client, owner, (X, y, weight), _fold, tasks, len(tasks))
    found = dict(pair for pair in finished if pair is not None)
    return [found[k] for k in range(len(folds))]


def _fold(X: Any, y: Any, weight: Any, estimator: Any, *rest: Any) -> tuple[np.ndarray, list[str]]:
    """`along_fold`, with what all folds share in front."""
    return along_fold(estimator, X, y, weight, *rest)
