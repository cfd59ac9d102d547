"""What people say on the command line, and what it means: losses, penalties, rules, budgets."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .. import _check, losses, rules
from ..losses import LinearModel, Multinomial
from ..losses.linear import BinaryModel
from ..penalties import L1, ElasticNet, GroupL2, NonNegative, Penalty, Ridge, Zero

WITH_NUMBER = {
    "quantile": "tau",
    "huber": "delta",
}  # losses with a number of their own, as in quantile:0.9
PENALTIES = ("l1", "l2", "elasticnet", "group", "nonnegative", "none")
TIMES = {
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "min": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
}
TIMES |= {"h": 3600.0, "hour": 3600.0, "hours": 3600.0}


def _loss_names() -> dict[str, type[LinearModel]]:
    """The linear models by what they are called: SquaredHinge is squared_hinge, LAD also absolute."""
    kinds = [
        kind for name in losses.__all__ if issubclass(kind := getattr(losses, name), LinearModel)
    ]
    names = {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower(): kind
        for kind in kinds
        if kind is not LinearModel
    }
    return names | {"absolute": names["lad"]}


LOSSES = _loss_names()


@dataclass(frozen=True)
class LossChoice:
    """A loss by its name."""

    name: str
    kind: type[LinearModel]
    make: Callable[..., LinearModel]  # of (A, b, intercept=...)

    @property
    def of_classes(self) -> bool:
        """Whether it takes classes, not numbers."""
        return issubclass(self.kind, BinaryModel | Multinomial)

    @property
    def of_many(self) -> bool:
        """Whether it takes more than two of them."""
        return issubclass(self.kind, Multinomial)


def loss_of(text: str) -> LossChoice:
    """A loss such as logistic, hinge or quantile:0.9."""
    name, _, number = text.strip().lower().replace("-", "_").partition(":")
    if name not in LOSSES:
        raise _check.InputError(f"There is no loss {text!r}. The losses are: {', '.join(LOSSES)}.")
    make: Callable[..., LinearModel] = LOSSES[name]
    if number:
        if name not in WITH_NUMBER:
            raise _check.InputError(
                f"The loss {name} has no number, as in {text!r}. Those that have one are quantile:0.9 and huber:1.5."
            )
        value = _number(number, f"The number of the loss {text!r}")
        if value <= 0 or (name == "quantile" and value >= 1):
            raise _check.InputError(
                f"The loss {text!r} needs a number above 0{' and below 1' if name == 'quantile' else ''}."
            )
        options: dict[str, Any] = {WITH_NUMBER[name]: value}
        make = partial(LOSSES[name], **options)
    return LossChoice(f"{name}:{number}" if number else name, LOSSES[name], make)


@dataclass(frozen=True)
class PenaltyChoice:
    """A penalty by its name: alpha times the norm, half the square, or what lies between them."""

    name: str
    l1_ratio: float = 0.5

    @property
    def has_strength(self) -> bool:
        return self.name not in ("nonnegative", "none")

    def make(self, alpha: float, groups: np.ndarray) -> Penalty:
        """The penalty; `groups` has the label of each coefficient's group."""
        made: dict[str, Callable[[], Penalty]] = {
            "l1": lambda: L1(alpha),
            "l2": lambda: Ridge(alpha),
            "elasticnet": lambda: ElasticNet(alpha * self.l1_ratio, alpha * (1.0 - self.l1_ratio)),
            "group": lambda: GroupL2(alpha, groups),
            "nonnegative": NonNegative,
            "none": Zero,
        }
        return made[self.name]() if alpha or not self.has_strength else Zero()


def penalty_of(text: str) -> PenaltyChoice:
    """A penalty such as l1 or elasticnet:0.9, where the number is the share of the L1 norm."""
    name, _, number = text.strip().lower().replace("_", "").partition(":")
    if name not in PENALTIES:
        raise _check.InputError(
            f"There is no penalty {text!r}. The penalties are: {', '.join(PENALTIES)}."
        )
    if not number:
        return PenaltyChoice(name)
    if name != "elasticnet":
        raise _check.InputError(
            f"The penalty {name} has no number, as in {text!r}: its strength is --alpha."
        )
    share = _number(number, f"The number of the penalty {text!r}")
    if not 0 <= share <= 1:
        raise _check.InputError(
            f"The number of the penalty {text!r} is the share of the L1 norm, between 0 and 1."
        )
    return PenaltyChoice(name, share)


def rules_of(texts: tuple[str, ...]) -> list[type[rules.Rule]] | None:
    """Rules by their names, several in one word with commas; None if there are no words. Case and hyphens do not matter."""
    known = {name.lower(): getattr(rules, name) for name in rules.__all__ if name != "Rule"}
    chosen: dict[str, type[rules.Rule]] = {}
    for text in ",".join(texts).split(","):
        if word := text.strip():
            key = word.lower().replace("-", "").replace("_", "")
            if key not in known:
                raise _check.InputError(
                    f"There is no rule {word!r}. The rules are: {', '.join(sorted(set(rules.__all__) - {'Rule'}))}."
                )
            chosen[key] = known[key]
    return list(chosen.values()) or None


def budget_of(text: str) -> tuple[int | None, float | None]:
    """(iterations, None) of "500" or "500 iterations", (None, seconds) of "30s", "5 min" or "1h"."""
    match = re.fullmatch(r"\s*([\d.]+(?:e\d+)?)\s*([a-z]*)\s*", text.lower())
    unit = match[2] if match else "?"
    value = _number(match[1], "--budget") if match else 0.0
    if unit in ("", "it", "iteration", "iterations") and value >= 1 and value == int(value):
        return int(value), None
    if unit in TIMES and value > 0:
        return None, value * TIMES[unit]
    raise _check.InputError(
        f"--budget must be a number of iterations, such as 500, or a time, such as 60s or 5min. Got {text!r}."
    )


def etas_of(text: str) -> np.ndarray:
    """Step sizes: "0.01,0.1,1", or from:to:number on a logarithmic scale, as "1e-4:1e3:15"."""
    if ":" in text:
        parts = text.split(":")
        if len(parts) != 3 or not parts[2].strip().isdigit() or int(parts[2]) < 1:
            raise _check.InputError(
                f"--etas must be numbers with commas, or from:to:number such as 1e-4:1e3:15. Got {text!r}."
            )
        low, high = (
            _check.positive(_number(part, "--etas"), "etas", "compare") for part in parts[:2]
        )
        values = np.geomspace(low, high, int(parts[2]))
    else:
        values = np.array(
            [
                _check.positive(_number(part, "--etas"), "etas", "compare")
                for part in text.split(",")
            ]
        )
    return np.unique(values)


def _number(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise _check.InputError(f"{what} must be a number. Got {text!r} instead.")
    return value
