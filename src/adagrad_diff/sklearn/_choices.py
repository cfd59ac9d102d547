"""Losses and penalties by name."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..common import check
from ..losses import LAD, Hinge, Huber, LinearModel, Logistic, Multinomial, Poisson, Quantile, Squared, SquaredHinge
from ..penalties import L1, ElasticNet, GroupL2, Penalty, Ridge, Scaled, Zero, as_penalty

REGRESSION: dict[str, type[LinearModel]] = {
    "absolute": LAD,
    "huber": Huber,
    "poisson": Poisson,
    "quantile": Quantile,
    "squared": Squared,
}
CLASSIFICATION: dict[str, type[LinearModel]] = {
    "hinge": Hinge,
    "logistic": Logistic,
    "multinomial": Multinomial,
    "squared_hinge": SquaredHinge,
}
PENALTIES = ("l1", "l2", "elasticnet", "group", "none")


def model_of(loss: Any, names: dict[str, type[LinearModel]], owner: str) -> Any:
    """What makes a loss of (A, b, sample_weight=, intercept=): a subclass of `LinearModel`, or a partial of one."""
    if isinstance(loss, str) and loss in names:
        return names[loss]
    kind = kind_of(loss)
    if isinstance(kind, type) and issubclass(kind, LinearModel):
        if names is REGRESSION and is_multinomial(kind):
            raise ValueError(f"The 'loss' parameter of {owner} is multinomial, which is for classes: use LogisticRegression.")
        return loss
    options = ", ".join(repr(name) for name in names)
    raise ValueError(
        f"The 'loss' parameter of {owner} must be one of {options}, a subclass of LinearModel, or a functools.partial of one "
        f"such as partial(Quantile, tau=0.9). Got {check.shown(loss)} instead."
    )


def kind_of(model: Any) -> Any:
    """The class behind partials."""
    while isinstance(model, partial):
        model = model.func
    return model


def is_multinomial(model: Any) -> bool:
    """Whether the loss has one column of coefficients per class."""
    return issubclass(kind_of(model), Multinomial)


def for_two_classes(model: Any) -> Any:
    """The multinomial loss is the logistic loss then, with the same options; other losses stay what they are."""
    if not is_multinomial(model):
        return model
    options = {key: value for key, value in getattr(model, "keywords", {}).items() if key != "classes"}
    return partial(Logistic, **options)


def penalty_of(
    penalty: Any, alpha: float, shape: tuple[int, int], owner: str, l1_ratio: Any, groups: Any, weights: Any
) -> Penalty:
    """alpha times the penalty, for coefficients of this shape (features, columns), which it sees row by row.

    "l1" is the L1 norm, "l2" half the squared Euclidean norm, "elasticnet" l1_ratio of the first and 1 - l1_ratio of the
    second, "group" the sum of the norms of groups of features (with all their columns).
    """
    if penalty is None:
        return Zero()
    if not isinstance(penalty, str):
        inner = as_penalty(penalty)
        if alpha == 0 and not {"set", "norm", "seminorm"} & inner.properties:
            return Zero()
        return Scaled(inner, alpha)
    check.one_of(penalty, PENALTIES, "penalty", owner)
    named: Penalty = Zero()
    if penalty == "l1":
        named = L1(alpha)
    elif penalty == "l2":
        named = Ridge(alpha)
    elif penalty == "elasticnet":
        share = check.nonnegative(l1_ratio, "l1_ratio", owner)
        if share > 1:
            raise ValueError(f"The 'l1_ratio' parameter of {owner} must lie between 0 and 1. Got {l1_ratio!r} instead.")
        named = ElasticNet(alpha * share, alpha * (1.0 - share))
    elif penalty == "group":
        named = GroupL2(alpha, _labels(groups, shape, owner), weights)
    return named if alpha else Zero()


def _labels(groups: Any, shape: tuple[int, int], owner: str) -> np.ndarray:
    """One label per coefficient."""
    features, columns = shape
    labels = np.arange(features) if groups is None else np.asarray(groups)
    if labels.shape != (features,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"The 'groups' parameter of {owner} must hold one integer per feature, the label of its group: {features} here. "
            f"Got {check.shown(groups)} instead."
        )
    return np.repeat(labels, columns)
