"""`check_rule` accepts the rules of the package, and says what is wrong with others."""

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
    report = check_rule(kind(**parameters))
    assert report, report


@pytest.mark.parametrize("kind", KINDS)
def test_every_rule_passes(kind):
    report = check_rule(made(kind))
    assert report, report
    if usual(kind) is not None:
        assert check_rule(made(kind, [0.1, 1.0]), seed=1)


@dataclass(frozen=True, eq=False)
class Mine(Rule):
    """AdaGrad, in pieces that are replaced below."""

    power: float = 1.0
    own: list = field(default_factory=lambda: [0.0])

    def init(self, x, g):
        return {"total": self.block_sums(np.zeros_like(g))}

    def total(self, total, g):
        return total + self.block_sums(np.abs(g) ** (2 * self.power))

    def update(self, memory, n, x, g):
        total = self.total(memory["total"], g)
        step = self.step_size(n) / (self.eps + self.spread(np.sqrt(total)))
        return {"total": total}, x - step * g, step


def variant(**methods):
    return dataclass(frozen=True, eq=False)(type("Variant", (Mine,), methods))


def with_update(change):
    """Return a rule whose update returns something else: change(x, g, memory, point, step)."""

    def update(self, memory, n, x, g):
        return change(x, g, *Mine.update(self, memory, n, x, g))

    return variant(update=update)


def test_rules_of_ones_own():
    for kind in (Mine, variant(total=lambda self, total, g: 0.9 * total + self.block_sums(g**2))):
        for eta in (0.5, [0.5, 1.0]):
            report = check_rule(kind(eta))
            assert report, report


def changes_g(self, total, g):
    total = Mine.total(self, total, g)
    g *= 0.5
    return total


def changes_memory(self, total, g):
    total += self.block_sums(g**2)
    return total


def remembers(self, total, g):
    self.own[0] += 1.0
    return self.own[0] + 0.0 * total


def not_written(self, total, g):
    raise RuntimeError("not written yet")


def changes_x(x, g, memory, point, step):
    x[:] = point
    return memory, x, step


WRONG = {
    "NaN": (variant(total=lambda self, total, g: np.nan * total), "'total'.* is .*nan"),
    "changes g": (variant(total=changes_g), "update changes its argument g:"),
    "changes memory": (
        variant(total=changes_memory),
        r"update changes its argument memory\['total'\]:",
    ),
    "remembers": (variant(total=remembers), "run that is repeated gives another result.*memory"),
    "no blocks": (variant(total=lambda self, total, g: total + g**2), "blocks="),
    "mixes columns": (
        variant(total=lambda self, total, g: np.full_like(total, (total + np.sum(g**2)).max())),
        "side by side",
    ),
    "raises": (variant(total=not_written), "RuntimeError: not written yet"),
    "uphill": (
        with_update(lambda x, g, memory, point, step: (memory, x + step * g, step)),
        "does not go down",
    ),
    "negative steps": (
        with_update(lambda x, g, memory, point, step: (memory, point, -step)),
        "step must be positive",
    ),
    "changes x": (with_update(changes_x), "update changes its argument x:"),
    "forgets": (
        with_update(lambda x, g, memory, point, step: ({}, point, step)),
        r"must be a dict with the names that init returns. It is \{\}",
    ),
    "without columns": (
        variant(init=lambda self, x, g: {"total": 0.0 * g, "count": np.zeros(3)}),
        "'count' .* end in the axis of trajectories",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case):
    kind, words = WRONG[case]
    report = check_rule(kind([0.5, 2.0]))
    assert not report
    assert any(re.search(words, sentence) for sentence in report.failures), report
    assert all(re.fullmatch(r"[A-Z'].*\.", sentence) for sentence in report.failures), report


def test_what_cannot_be_checked():
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
