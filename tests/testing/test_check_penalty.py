"""`check_penalty` accepts the penalties of the package, and says what is wrong with others."""

import re

import numpy as np
import pytest

from adagrad_diff import L1, PSD, SLOPE, Box, GroupL2, L2Ball, Penalty, Ridge, check_penalty
from looping import looped
from prox_cases import CASES

FIRST = {type(case.sample).__name__: case for case in reversed(CASES)}


@pytest.mark.parametrize("case", FIRST.values(), ids=str)
def test_every_penalty_passes(case):
    """One case of each class."""
    size = case.size(5)
    report = check_penalty(case.make(size, np.random.default_rng(0)), size)
    assert report, report


class Toward:
    """An object with two methods, for vectors of one size, without saying so."""

    def value(self, x):
        return float(np.abs(x - np.arange(4)).sum())

    def prox(self, z, step):
        d = z - np.arange(4)
        return np.arange(4) + np.sign(d) * np.maximum(np.abs(d) - step, 0)


@looped(
    "penalty",
    [None, L1(0.5), L1([0.1, 0.2, 0.3]), GroupL2(1.0, [0, 0, 1, 1, 2]), PSD(3), Toward()],
)
def test_the_size_is_found(penalty):
    assert check_penalty(penalty)


def lasso(z, step):
    """The prox of the L1 norm."""
    step = np.reshape(step, (-1, 1)) if np.ndim(step) == 1 and np.ndim(z) == 2 else step
    return np.sign(z) * np.maximum(np.abs(z) - step, 0.0)


def norm(x):
    return np.sum(np.abs(x), axis=0)


def own(prox=lasso, value=norm, base=Penalty, **attributes):
    """Return a penalty of a user: the L1 norm, or something else."""
    methods = {
        "value": lambda self, x: value(x),
        "prox": lambda self, z, step, out=None: prox(z, step),
    }
    return type("Own", (base,), methods | attributes)()


def changes_z(z, step):
    z[:] = lasso(z, step)
    return z


def hard_threshold(z, step):
    return np.where(z**2 > 2 * (step if np.ndim(z) == 1 else np.reshape(step, (-1, 1))), z, 0.0)


def projection(z, step):
    """The Euclidean projection onto a ball: wrong in a metric with unequal steps."""
    return z / np.maximum(1.0, np.sqrt(np.sum(np.square(z), axis=0)))


def ball(x):
    return np.where(np.sqrt(np.sum(np.square(x), axis=0)) <= 1 + 1e-6, 0.0, np.inf)[()]


def fails(z, step):
    raise RuntimeError("not written yet")


def off(kind, method, factor):
    """Return a penalty whose conjugate or polar is off by a factor."""
    change = {method: lambda self, y: factor * getattr(kind, method)(self, y)}
    return type("Off", (kind,), change)(1.0)


CONDITION = "prox is not the minimizer"
UNEQUAL = rf"{CONDITION}.*steps that differ.*accepts = .scalar."
WRONG = {
    "no step": (own(lambda z, step: lasso(z, 1.0)), CONDITION),
    "twice the step": (own(lambda z, step: lasso(z, 2 * step)), CONDITION),
    "twice the value": (own(value=lambda x: 2 * norm(x)), CONDITION),
    "ball": (own(projection, ball, properties=frozenset({"set"})), UNEQUAL),
    "not convex": (
        own(hard_threshold, lambda x: np.sum(x != 0, axis=0) * 1.0),
        "not convex|minimizer",
    ),
    "changes z": (own(changes_z), "changes its argument z"),
    "one value": (own(value=lambda x: np.sum(np.abs(x))), r"the value of 3 columns .* shape \(\)"),
    "value shape": (own(value=np.abs), "one number"),
    "mixes columns": (
        own(lambda z, step: lasso(z, step)[..., ::-1] if z.ndim == 2 else lasso(z, step)),
        "side by side .* differ",
    ),
    "raises": (own(fails), "RuntimeError: not written yet"),
    "bad accepts": (own(accepts="everything"), "'accepts' parameter of Own must be one of"),
    "small conjugate": (off(Ridge, "conjugate", 0.5), "conjugate is too small"),
    "large conjugate": (off(Ridge, "conjugate", 2.0), "conjugate is too large"),
    "small polar": (off(L1, "polar", 0.5), "polar is too small"),
    "no set": (own(properties=frozenset({"set"})), "properties.*'set'"),
    "no norm": (type("NoNorm", (Ridge,), {"properties": {"norm"}})(1.0), "properties.*'norm'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case):
    penalty, words = WRONG[case]
    report = check_penalty(penalty, 6)
    assert not report
    assert any(re.search(words, sentence) for sentence in report.failures), report
    assert all(re.fullmatch(r"[A-Z'].*\.", sentence) for sentence in report.failures), report


def test_what_is_right_beside_it():
    assert check_penalty(own(), 6)
    assert check_penalty(own(projection, ball, accepts="scalar"), 6)


class Foreign:
    """Nothing but the two methods, for vectors."""

    def __init__(self, penalty):
        self.penalty = penalty

    def value(self, x):
        assert x.ndim == 1
        return self.penalty.value(x)

    def prox(self, z, step):
        assert z.ndim == 1
        return self.penalty.prox(z, step)


def test_objects_with_two_methods():
    for penalty in (L1(0.5), Box(0.0, 1.0), L2Ball(2.0)):
        assert check_penalty(Foreign(penalty), 5)
    for penalty in (own(projection, ball), SLOPE([3.0, 2.0, 1.0])):  # formulas for one step
        undeclared, declared = Foreign(penalty), Foreign(penalty)
        declared.accepts = "scalar"
        assert check_penalty(declared, 3)
        report = check_penalty(undeclared, 3)
        assert not report or any("one step" in finding.sentence for finding in report.findings)


@looped(
    ("penalty", "size", "words"),
    [
        (3.0, None, "'penalty' must be None or have methods"),
        (L1([1.0, 2.0, 3.0]), 4, r"3 strengths, but"),
        (L1(1.0), 0, "'size' parameter of check_penalty must be an integer >= 1"),
    ],
)
def test_what_cannot_be_checked(penalty, size, words):
    with pytest.raises((TypeError, ValueError), match=words):
        check_penalty(penalty, size)
