"""Losses and penalties by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .. import _check, losses
from ..losses import LinearModel, Logistic, Multinomial
from ..losses.linear import BinaryModel
from ..penalties import L1, ElasticNet, GroupL2, Penalty, Ridge, Scaled, Zero, as_penalty

SPOKEN = {"LAD": "absolute"}  # where the name of a loss is not its class's


def _by_name(of_classes: bool) -> dict[str, type[LinearModel]]:
    """The linear models among the losses, those of classes or those of numbers: SquaredHinge is "squared_hinge"."""
    kinds = [
        kind for name in losses.__all__ if issubclass(kind := getattr(losses, name), LinearModel)
    ]
    chosen = [
        kind
        for kind in kinds
        if kind is not LinearModel and issubclass(kind, BinaryModel | Multinomial) == of_classes
    ]
    names = {
        SPOKEN.get(kind.__name__, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()): kind
        for kind in chosen
    }
    return dict(sorted(names.items()))


REGRESSION, CLASSIFICATION = _by_name(of_classes=False), _by_name(of_classes=True)


def model_of(loss: Any, names: dict[str, type[LinearModel]], owner: str) -> Any:
    """What makes a loss of (A, b, sample_weight=, intercept=): a subclass of `LinearModel`, or a partial of one."""
    if isinstance(loss, str) and loss in names:
        return names[loss]
    kind = kind_of(loss)
    if isinstance(kind, type) and issubclass(kind, LinearModel):
        if names is REGRESSION and is_multinomial(kind):
            raise ValueError(
                f"The 'loss' parameter of {owner} is multinomial, which is for classes: use LogisticRegression."
            )
        return loss
    options = ", ".join(repr(name) for name in names)
    raise ValueError(
        f"The 'loss' parameter of {owner} must be one of {options}, a subclass of LinearModel, or a functools.partial of one "
        f"such as partial(Quantile, tau=0.9). Got {_check.shown(loss)} instead."
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
    options = {
        key: value for key, value in getattr(model, "keywords", {}).items() if key != "classes"
    }
    return partial(Logistic, **options)


def penalty_of(
    penalty: Any,
    alpha: float,
    shape: tuple[int, int],
    owner: str,
    l1_ratio: Any,
    groups: Any,
    weights: Any,
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
    named: dict[str, Callable[[], Penalty]] = {
        "l1": lambda: L1(alpha),
        "l2": lambda: Ridge(alpha),
        "elasticnet": lambda: ElasticNet(
            alpha * (share := _share(l1_ratio, owner)), alpha * (1.0 - share)
        ),
        "group": lambda: GroupL2(alpha, _labels(groups, shape, owner), weights),
        "none": Zero,
    }
    _check.one_of(penalty, tuple(named), "penalty", owner)
    made = named[penalty]()
    return made if alpha else Zero()


def _share(l1_ratio: Any, owner: str) -> float:
    share = _check.nonnegative(l1_ratio, "l1_ratio", owner)
    if share > 1:
        raise ValueError(
            f"The 'l1_ratio' parameter of {owner} must lie between 0 and 1. Got {l1_ratio!r} instead."
        )
    return share


def _labels(groups: Any, shape: tuple[int, int], owner: str) -> np.ndarray:
    """One label per coefficient."""
    features, columns = shape
    labels = np.arange(features) if groups is None else np.asarray(groups)
    if labels.shape != (features,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"The 'groups' parameter of {owner} must hold one integer per feature, the label of its group: {features} here. "
            f"Got {_check.shown(groups)} instead."
        )
    return np.repeat(labels, columns)
