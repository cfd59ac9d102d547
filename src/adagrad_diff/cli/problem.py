"""The problem that a file and some options make: mean loss + alpha x penalty, with an intercept that nothing touches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _check
from ..certificates import critical_lam
from ..datasets.tables import Table, read_table
from ..losses import LinearModel
from ..penalties import L1, Penalty
from .choices import PenaltyChoice, penalty_of
from .task import Task, task_of

CRITICAL_SHARE = 0.01  # of the strength at which every coefficient is zero, if no strength is given


@dataclass(frozen=True, eq=False)
class Problem:
    """What `fit` solves and `compare` compares rules on."""

    table: Table
    task: Task
    penalty: PenaltyChoice
    alpha: float
    how: str  # where alpha comes from
    intercept: bool

    @property
    def title(self) -> str:
        strength = f", alpha {self.alpha:.3g}" if self.penalty.has_strength else ""
        return (
            f"{self.table.name}: {self.task.loss.name} loss, {self.penalty.name} penalty{strength}"
        )

    @property
    def groups(self) -> np.ndarray:
        """Of each feature the number of the column it comes from."""
        numbers: dict[str, int] = {}
        return np.array(
            [numbers.setdefault(feature.column, len(numbers)) for feature in self.table.features]
        )

    def loss_object(self) -> LinearModel:
        """The loss over all samples."""
        return _loss(self.table, self.task, self.intercept)

    def penalty_object(self) -> Penalty:
        """The penalty of all coefficients: of several classes, each feature has one for each."""
        columns = len(self.task.classes) if self.task.loss.of_many else 1
        return self.penalty.make(self.alpha, np.repeat(self.groups, columns))

    @property
    def description(self) -> dict[str, Any]:
        """All that the solution depends on, for telling problems apart."""
        table, task = self.table, self.task
        return {
            "sha256": table.sha256,
            "features": [[f.column, f.category, f.shift, f.scale] for f in table.features],
            "target": table.target,
            "classes": task.classes,
            "loss": task.loss.name,
            "penalty": [self.penalty.name, self.penalty.l1_ratio],
            "alpha": self.alpha,
            "intercept": self.intercept,
        }

    @property
    def about(self) -> list[list[str]]:
        """What the data and the problem are, for the page: labels and texts."""
        table, task = self.table, self.task
        samples, features = table.A.shape
        stored = (
            "" if isinstance(table.A, np.ndarray) else f", {table.A.nnz} entries that are not zero"
        )
        categories = len(
            {feature.column for feature in table.features if feature.category is not None}
        )
        standard = any(feature.scale != 1.0 or feature.shift for feature in table.features)
        rows = [
            ["Data", f"{table.name} ({table.kind})"],
            ["Samples", str(samples)],
            ["Features", f"{features}{stored}"],
            [
                "Columns",
                f"{table.columns} beside the target, {categories} of them words"
                if table.kind != "svmlight"
                else "",
            ],
            ["Left out", ", ".join(table.left_out) and f"{', '.join(table.left_out)} (constant)"],
            ["Standardised", "columns of numbers" if standard else ""],
            ["Target", task.sentence],
            [
                "Loss",
                f"{task.loss.name}, mean over samples{', with an intercept' if self.intercept else ''}",
            ],
            ["Penalty", self.penalty.name],
            ["Strength", f"{self.alpha:.6g} ({self.how})" if self.penalty.has_strength else ""],
            ["sha256", table.sha256],
        ]
        return [row for row in rows if row[1]]


def problem_of(
    data: str,
    target: str | None,
    loss: str | None,
    positive: str | None,
    penalty: str,
    alpha: float | None,
    intercept: bool,
    directory: str | None,
    **reading: Any,
) -> Problem:
    """The problem of the options that `problem_options` adds."""
    chosen = penalty_of(penalty)
    table = read_table(data, target, directory=directory, **reading)
    task = task_of(table, loss, positive)
    how = "as given"
    if alpha is None:
        alpha, how = _strength(_loss(table, task, intercept), chosen)
    return Problem(
        table, task, chosen, _check.nonnegative(alpha, "alpha", "the penalty"), how, intercept
    )


def _loss(table: Table, task: Task, intercept: bool) -> LinearModel:
    classes = {"classes": len(task.classes)} if task.loss.of_many else {}
    return task.loss.make(table.A, task.b, intercept=intercept, **classes)


def _strength(loss: LinearModel, penalty: PenaltyChoice) -> tuple[float, str]:
    """A strength for those who name none."""
    if not penalty.has_strength:
        return 0.0, "none"
    if penalty.name == "l2":
        return 1.0 / len(loss.b), "one over the number of samples"
    critical = critical_lam(loss, L1(1.0))
    if not 0 < critical < np.inf:
        return CRITICAL_SHARE, "the features explain nothing"
    return (
        CRITICAL_SHARE * critical,
        "a hundredth of the strength at which an L1 penalty makes every coefficient zero",
    )
