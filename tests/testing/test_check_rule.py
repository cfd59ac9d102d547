"""`check_rule`: it finds nothing wrong with the rules of the package, and says what is wrong with others."""

import re
from dataclasses import dataclass, field
from itertools import cycle

import numpy as np
import pytest

from adagrad_diff import AdaGrad, AdaGradDiff, Rule, check_rule
from looping import looped
from rule_zoo import KINDS, made, usual

PARAMETERS = [
    {"eta": 0.1},
    {"eta": 1e-6},
    {"eta": 1e6, "eps": 1e-3},
    {"eta": [0.1, 1.0, 10.0]},
    {"eta": lambda n: 1.0 / np.sqrt(n)},
    {"eta": 0.5, "blocks": "all"},
    {"eta": 0.5, "blocks": "row"},
    {"eta": 0.5, "blocks": [0, 1, 1, 2]},
    {"eta": 0.5, "blocks": np.array([[0, 1], [1, 0]])},
    {"eta": 0.5, "scale": np.geomspace(1e-3, 1e3, 5)},
    {"eta": [0.5, 2.0], "blocks": [0, 0, 1], "scale": [1.0, 2.0, 3.0]},
]


@looped(("kind", "parameters"), zip(cycle([AdaGradDiff, AdaGrad]), PARAMETERS, strict=False))
def test_every_kind_of_parameter_passes(kind, parameters):
    assert check_rule(kind(**parameters))


@pytest.mark.parametrize("kind", KINDS)
def test_every_rule_passes(kind):
    assert check_rule(made(kind)), check_rule(made(kind))
    if usual(kind) is not None:
        assert check_rule(made(kind, [0.1, 1.0]), seed=1)


@dataclass(frozen=True, eq=False)
class Mine(Rule):
    """AdaGrad, in pieces that the rules below change."""

    def init(self, x, g):
        return {"total": self.block_sums(np.zeros_like(g))}

    def total(self, total, g):
        return total + self.block_sums(g**2)

    def update(self, memory, n, x, g):
        total = self.total(memory["total"], g)
        step = self.step_size(n) / (self.eps + self.spread(np.sqrt(total)))
        return {"total": total}, x - step * g, step


@dataclass(frozen=True, eq=False)
class Shrinking(Mine):
    """A mean that forgets: sums need not grow."""

    def total(self, total, g):
        return 0.9 * total + self.block_sums(g**2)


@dataclass(frozen=True, eq=False)
class WithMore(Mine):
    """More parameters than a rule has."""

    power: float = 1.0

    def total(self, total, g):
        return total + self.block_sums(np.abs(g) ** (2 * self.power))


@looped("kind", [Mine, Shrinking, WithMore])
def test_rules_of_ones_own(kind):
    assert check_rule(kind(0.5))
    assert check_rule(kind([0.5, 1.0]))


@dataclass(frozen=True, eq=False)
class NaNs(Mine):
    def total(self, total, g):
        return np.nan * total


@dataclass(frozen=True, eq=False)
class Negative(Mine):
    def total(self, total, g):
        return total - 1.0


@dataclass(frozen=True, eq=False)
class Infinite(Mine):
    def total(self, total, g):
        return total + np.inf


@dataclass(frozen=True, eq=False)
class ChangesG(Mine):
    def total(self, total, g):
        total = super().total(total, g)
        g *= 0.5
        return total


@dataclass(frozen=True, eq=False)
class ChangesMemory(Mine):
    def total(self, total, g):
        total += self.block_sums(g**2)
        return total


@dataclass(frozen=True, eq=False)
class Remembers(Mine):
    """Keeps a sum of its own, which no state knows of."""

    own: list = field(default_factory=lambda: [0.0])

    def total(self, total, g):
        self.own[0] += 1.0
        return self.own[0] + 0.0 * total


@dataclass(frozen=True, eq=False)
class NoBlocks(Mine):
    def total(self, total, g):
        return total + g**2


@dataclass(frozen=True, eq=False)
class MixesColumns(Mine):
    def total(self, total, g):
        return np.full_like(total, (total + self.block_sums(g**2)).max())


@dataclass(frozen=True, eq=False)
class SelectsNothing(Mine):
    def select(self, columns):
        return self


@dataclass(frozen=True, eq=False)
class SelectsAnother(Mine):
    def select(self, columns):
        return AdaGrad(self.eta[columns])


@dataclass(frozen=True, eq=False)
class Uphill(Mine):
    def update(self, memory, n, x, g):
        memory, _, step = super().update(memory, n, x, g)
        return memory, x + step * g, step


@dataclass(frozen=True, eq=False)
class NegativeSteps(Mine):
    def update(self, memory, n, x, g):
        memory, point, step = super().update(memory, n, x, g)
        return memory, point, -step


@dataclass(frozen=True, eq=False)
class ChangesX(Mine):
    def update(self, memory, n, x, g):
        memory, point, step = super().update(memory, n, x, g)
        x[:] = point
        return memory, x, step


@dataclass(frozen=True, eq=False)
class MovesToNowhere(Mine):
    def update(self, memory, n, x, g):
        memory, point, step = super().update(memory, n, x, g)
        return memory, np.full_like(point, np.inf), step


@dataclass(frozen=True, eq=False)
class Forgets(Mine):
    def update(self, memory, n, x, g):
        _, point, step = super().update(memory, n, x, g)
        return {}, point, step


@dataclass(frozen=True, eq=False)
class WithoutColumns(Mine):
    def init(self, x, g):
        return super().init(x, g) | {"count": np.zeros(3)}


@dataclass(frozen=True, eq=False)
class Raises(Mine):
    def total(self, total, g):
        raise RuntimeError("not written yet")


WRONG = {
    NaNs: "'total'.* is .*nan",
    Negative: "'total'.* negative",
    Infinite: "'total'.* is .*inf",
    ChangesG: "update changes its argument g:",
    ChangesMemory: r"update changes its argument memory\['total'\]:",
    Remembers: "run that is repeated gives another result.*memory",
    NoBlocks: "blocks=",
    MixesColumns: "side by side",
    SelectsNothing: "select",
    SelectsAnother: "select",
    Uphill: "does not go down",
    NegativeSteps: "step must be positive",
    ChangesX: "update changes its argument x:",
    MovesToNowhere: "must be finite",
    Forgets: r"The method update must return a memory with the names of init, \['total'\]\. It has \[\]",
    WithoutColumns: "'count' must end in the axis of trajectories",
    Raises: "RuntimeError: not written yet",
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_said(kind):
    report = check_rule(kind([0.5, 2.0]))
    assert not report
    assert any(re.search(WRONG[kind], sentence) for sentence in report.failures), report
    assert all(re.fullmatch(r"[A-Z'].*\.", sentence) for sentence in report.failures), report


def test_reports_read_well():
    report = check_rule(AdaGrad(0.1))
    assert (
        str(report).splitlines()[0]
        == f"AdaGrad: {len(report.findings)} statements, all of them true as far as tried."
    )
    assert check_rule(Mine(0.1), seed=2).findings == check_rule(Mine(0.1), seed=2).findings


def test_what_cannot_be_checked():
    with pytest.raises(
        TypeError, match=r"'rule' is the class AdaGrad. Did you mean AdaGrad\(...\)"
    ):
        check_rule(AdaGrad)
    with pytest.raises(TypeError, match="'rule' must be a rule"):
        check_rule(0.1)


@looped(
    ("schedule", "said"),
    [
        (lambda n: 1 / (5 - n), "ZeroDivisionError: division by zero"),
        (lambda n: "a", r"'eta\(1\)' parameter .* must be a positive number. Got 'a' instead"),
        (lambda n: 3.0 - n, r"'eta\(3\)' parameter"),
    ],
)
def test_schedules_that_fail(schedule, said):
    report = check_rule(AdaGrad(schedule))
    assert len(report.failures) == 1
    assert re.search(said, report.failures[0])
