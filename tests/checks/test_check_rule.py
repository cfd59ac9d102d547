"""`check_rule`: it finds nothing wrong with the rules of the package, and says what is wrong with others."""

import re
from dataclasses import dataclass, field

import numpy as np
import pytest

from adagrad_diff import AdaGrad, AdaGradDiff, Rule, check_rule

RULES = [AdaGradDiff, AdaGrad]
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


@pytest.mark.parametrize("parameters", PARAMETERS, ids=lambda p: " ".join(f"{k}={v}" for k, v in p.items() if not callable(v)))
@pytest.mark.parametrize("kind", RULES)
def test_every_rule_passes(kind, parameters):
    for seed in range(3):
        assert check_rule(kind(**parameters), seed=seed)


def squares(metric, g):
    """What AdaGrad adds, for any blocks."""
    g = g.reshape(-1, metric.eta.size).astype(np.float64)
    total = metric.total.reshape(len(metric.total), -1)
    np.add.at(total, np.arange(len(g)) if metric.labels is None else metric.labels, g**2)


@dataclass(frozen=True, eq=False)
class Mine(Rule):
    def update(self, metric, g, g_prev):
        squares(metric, g)


@dataclass(frozen=True, eq=False)
class Shrinking(Mine):
    """A mean that forgets: sums need not grow."""

    def update(self, metric, g, g_prev):
        metric.total *= 0.9
        squares(metric, g)


@dataclass(frozen=True, eq=False)
class WithMore(Mine):
    """More parameters than a rule has."""

    power: float = 1.0

    def update(self, metric, g, g_prev):
        squares(metric, np.abs(g) ** self.power)


@pytest.mark.parametrize("kind", [Mine, Shrinking, WithMore])
def test_rules_of_ones_own(kind):
    assert check_rule(kind(0.5))
    assert check_rule(kind([0.5, 1.0]))


@dataclass(frozen=True, eq=False)
class NaNs(Mine):
    def update(self, metric, g, g_prev):
        metric.total[:] = np.nan


@dataclass(frozen=True, eq=False)
class Negative(Mine):
    def update(self, metric, g, g_prev):
        metric.total -= 1.0


@dataclass(frozen=True, eq=False)
class Infinite(Mine):
    def update(self, metric, g, g_prev):
        metric.total[:] = np.inf


@dataclass(frozen=True, eq=False)
class ChangesG(Mine):
    def update(self, metric, g, g_prev):
        squares(metric, g)
        g *= 0.5


@dataclass(frozen=True, eq=False)
class ChangesPrevious(Mine):
    def update(self, metric, g, g_prev):
        squares(metric, g - g_prev)
        g_prev[:] = 0.0


@dataclass(frozen=True, eq=False)
class Remembers(Mine):
    """Keeps a sum of its own, which no state knows of."""

    memory: list = field(default_factory=lambda: [0.0])

    def update(self, metric, g, g_prev):
        self.memory[0] += 1.0
        metric.total[:] = self.memory[0]


@dataclass(frozen=True, eq=False)
class NoBlocks(Mine):
    def update(self, metric, g, g_prev):
        metric.total += g**2


@dataclass(frozen=True, eq=False)
class MixesColumns(Mine):
    def update(self, metric, g, g_prev):
        squares(metric, g)
        metric.total[:] = metric.total.max()


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
    def forward(self, metric, n, x, g, step, out):
        super().forward(metric, n, x, g, step, out)
        out[:] = x + step * g


@dataclass(frozen=True, eq=False)
class NegativeSteps(Mine):
    def forward(self, metric, n, x, g, step, out):
        super().forward(metric, n, x, g, step, out)
        step *= -1.0


@dataclass(frozen=True, eq=False)
class ChangesX(Mine):
    def forward(self, metric, n, x, g, step, out):
        super().forward(metric, n, x, g, step, out)
        x[:] = out


@dataclass(frozen=True, eq=False)
class StepsThatAreNotTaken(Mine):
    def forward(self, metric, n, x, g, step, out):
        super().forward(metric, n, x, g, step, out)
        step *= 2.0


@dataclass(frozen=True, eq=False)
class Raises(Mine):
    def update(self, metric, g, g_prev):
        raise RuntimeError("not written yet")


WRONG = {
    NaNs: "total .* NaN",
    Negative: "total .* negative",
    Infinite: "total .* infinite",
    ChangesG: "update changes its argument g",
    ChangesPrevious: "update changes its argument g_prev",
    Remembers: "(different answers|goes on differently).*metric.total",
    NoBlocks: "blocks=",
    MixesColumns: "side by side",
    SelectsNothing: "select",
    SelectsAnother: "select",
    Uphill: "out must be x - step \\* g",
    NegativeSteps: "step must be positive",
    ChangesX: "forward changes its argument x",
    StepsThatAreNotTaken: "out must be x - step \\* g",
    Raises: "RuntimeError: not written yet",
}


@pytest.mark.parametrize("eta", [0.5, [0.5, 2.0]], ids=str)
@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_said(kind, eta):
    report = check_rule(kind(eta))
    assert not report
    assert any(re.search(WRONG[kind], sentence) for sentence in report.failures), report
    assert all(re.fullmatch(r"[A-Z'].*\.", sentence) for sentence in report.failures), report


def test_reports_read_well():
    report = check_rule(AdaGrad(0.1))
    assert str(report).splitlines()[0] == f"AdaGrad: {len(report.findings)} statements, all of them true as far as tried."
    assert check_rule(Mine(0.1), seed=2).findings == check_rule(Mine(0.1), seed=2).findings


def test_what_cannot_be_checked():
    with pytest.raises(TypeError, match=r"'rule' is the class AdaGrad. Did you mean AdaGrad\(eta=0.1\)"):
        check_rule(AdaGrad)
    with pytest.raises(TypeError, match="'rule' must be a rule"):
        check_rule(0.1)


@pytest.mark.parametrize(
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
