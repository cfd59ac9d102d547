"""`check_penalty`: it finds nothing wrong with the penalties of the package, and says what is wrong with others."""

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
    assert check_penalty(case.make(size, np.random.default_rng(0)), size)


@looped("penalty", [None, L1(0.5), L1([0.1, 0.2, 0.3]), GroupL2(1.0, [0, 0, 1, 1, 2]), PSD(3)])
def test_the_size_is_found(penalty):
    assert check_penalty(penalty)


class Lasso(Penalty):
    """The L1 norm, to be spoilt."""

    def value(self, x):
        return np.sum(np.abs(x), axis=0)

    def prox(self, z, step, out=None):
        step = np.reshape(step, (-1, 1)) if np.ndim(step) == 1 and np.ndim(z) == 2 else step
        result = np.sign(z) * np.maximum(np.abs(z) - step, 0.0)
        if out is None:
            return result
        out[:] = result
        return out


class NoStep(Lasso):
    def prox(self, z, step, out=None):
        return super().prox(z, 1.0, out)


class MeanStep(Lasso):
    def prox(self, z, step, out=None):
        return super().prox(z, np.mean(step, axis=0), out)


class TwiceTheStep(Lasso):
    def prox(self, z, step, out=None):
        return super().prox(z, 2 * np.asarray(step), out)


class WrongSign(Lasso):
    def prox(self, z, step, out=None):
        return super().prox(-z, step, out)


class TwiceTheValue(Lasso):
    def value(self, x):
        return 2 * np.sum(np.abs(x), axis=0)


class NotConvex(Lasso):
    """The number of entries that are not zero, with its (hard-thresholding) prox."""

    def value(self, x):
        return np.sum(np.asarray(x) != 0, axis=0) * 1.0

    def prox(self, z, step, out=None):
        step = np.broadcast_to(
            np.reshape(step, (-1, 1)) if np.ndim(step) == 1 and np.ndim(z) == 2 else step,
            np.shape(z),
        )
        result = np.where(np.asarray(z) ** 2 > 2 * step, z, 0.0)
        if out is None:
            return result
        out[:] = result
        return out


class ChangesZ(Lasso):
    def prox(self, z, step, out=None):
        return super().prox(z, step, z if isinstance(z, np.ndarray) else None)


class ChangesStep(Lasso):
    def prox(self, z, step, out=None):
        result = super().prox(z, step, out)
        if isinstance(step, np.ndarray):
            step *= 2
        return result


class ForgetsOut(Lasso):
    def prox(self, z, step, out=None):
        return super().prox(z, step)


class ReturnsNothing(Lasso):
    def prox(self, z, step, out=None):
        result = super().prox(z, step, out)
        return None if out is not None else result


class OutBeforeZ(Lasso):
    """Writes to `out` before it has read z, which may be the same array."""

    def prox(self, z, step, out=None):
        out = np.empty_like(z) if out is None else out
        out[:] = 0.0
        return super().prox(z, step, out)


class OneValue(Lasso):
    def value(self, x):
        return np.sum(np.abs(x))


class ValueShape(Lasso):
    def value(self, x):
        return np.abs(x)


class NaNValue(Lasso):
    def value(self, x):
        return np.nan


class Outside(Lasso):
    """A box whose prox does not land in it."""

    def value(self, x):
        return np.where(np.all(np.abs(x) <= 0.1, axis=0), 0.0, np.inf)[()]


class MixesColumns(Lasso):
    def prox(self, z, step, out=None):
        result = super().prox(z, step, out)
        if np.ndim(z) == 2:
            result[:] = result[:, ::-1].copy()
        return result


class Single(Lasso):
    def prox(self, z, step, out=None):
        result = super().prox(z, step, out)
        return result.astype(np.float64) if out is None else result


class ShortProx(Lasso):
    def prox(self, z, step, out=None):
        return super().prox(z, step)[:-1]


class Raises(Lasso):
    def prox(self, z, step, out=None):
        raise RuntimeError("not written yet")


class Ball(Lasso):
    """The Euclidean projection: wrong in a metric with unequal steps."""

    properties = frozenset({"set"})

    def value(self, x):
        return np.where(np.sqrt(np.sum(np.square(x), axis=0)) <= 1 + 1e-6, 0.0, np.inf)[()]

    def prox(self, z, step, out=None):
        result = z / np.maximum(1.0, np.sqrt(np.sum(np.square(z), axis=0)))
        if out is None:
            return result
        out[:] = result
        return out


class ScalarBall(Ball):
    accepts = "scalar"


class BadAccepts(Lasso):
    accepts = "everything"


class SmallConjugate(Ridge):
    def conjugate(self, y):
        return 0.5 * super().conjugate(y)


class LargeConjugate(Ridge):
    def conjugate(self, y):
        return 2 * super().conjugate(y)


class SmallPolar(L1):
    def polar(self, y):
        return 0.5 * super().polar(y)


class LargePolar(L1):
    def polar(self, y):
        return 1.5 * super().polar(y)


class NoSet(Lasso):
    properties = frozenset({"set"})


class NoNorm(Ridge):
    properties = frozenset({"norm"})


CONDITION = "prox is not the minimizer"
WRONG = {
    NoStep: CONDITION,
    TwiceTheStep: CONDITION,
    WrongSign: CONDITION,
    TwiceTheValue: CONDITION,
    MeanStep: rf"{CONDITION}.*steps that differ.*accepts = .scalar.",
    Ball: rf"{CONDITION}.*steps that differ.*accepts = .scalar.",
    NotConvex: "not convex|minimizer",
    ChangesZ: "changes its argument z",
    ChangesStep: "changes its argument step",
    ForgetsOut: "`out`",
    ReturnsNothing: "`out`",
    OutBeforeZ: "in place",
    OneValue: r"one value for each of 3 columns, shape \(3,\)",
    ValueShape: "one number",
    NaNValue: "NaN",
    Outside: "value at the prox .* is inf",
    MixesColumns: "side by side .* differ",
    Single: "float32",
    ShortProx: r"shape \(6,\)",
    Raises: "RuntimeError: not written yet",
    BadAccepts: "'accepts' must be one of",
    SmallConjugate: "conjugate is too small",
    LargeConjugate: "conjugate is too large",
    SmallPolar: "polar is too small",
    LargePolar: "polar is too large",
    NoSet: "properties.*'set'",
    NoNorm: "properties.*'norm'",
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_said(kind):
    penalty = kind(1.0) if issubclass(kind, Ridge | L1) else kind()
    report = check_penalty(penalty, 6)
    assert not report
    assert any(re.search(WRONG[kind], sentence) for sentence in report.failures), report
    assert all(re.fullmatch(r"[A-Z'].*\.", sentence) for sentence in report.failures), report


def test_what_is_right_beside_it():
    assert check_penalty(Lasso(), 6)
    assert check_penalty(ScalarBall(), 6)


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


@looped("penalty", [L1(0.5), Box(0.0, 1.0), L2Ball(2.0)])
def test_objects_with_two_methods(penalty):
    assert check_penalty(Foreign(penalty), 5)


@pytest.mark.parametrize("penalty", [Ball(), SLOPE([3.0, 2.0, 1.0])], ids=["Ball", "SLOPE"])
def test_objects_with_a_formula_for_one_step(penalty):
    """They are told to say so."""
    report = check_penalty(Foreign(penalty), 3)
    declared = Foreign(penalty)
    declared.accepts = "scalar"
    assert check_penalty(declared, 3)
    assert not report or any("one step" in finding.sentence for finding in report.findings)


def test_reports_read_well():
    report = check_penalty(L1(1.0))
    assert (
        str(report).splitlines()[0]
        == f"L1: {len(report.findings)} statements, all of them true as far as tried."
    )
    assert str(check_penalty(NoStep())).splitlines()[0].startswith("NoStep: ")
    assert check_penalty(L1(1.0), seed=1).findings == check_penalty(L1(1.0), seed=1).findings


def test_what_cannot_be_checked():
    with pytest.raises(TypeError, match="'penalty' must be None or have methods"):
        check_penalty(3.0)
    with pytest.raises(ValueError, match=r"3 strengths, but"):
        check_penalty(L1([1.0, 2.0, 3.0]), 4)
    with pytest.raises(
        ValueError, match="'size' parameter of check_penalty must be an integer >= 1"
    ):
        check_penalty(L1(1.0), 0)


class Careless(L1):
    """Right but for what it says about itself."""

    properties = None


class Fussy(L1):
    def check_size(self, size):
        raise KeyError(size)


def test_faults_beside_value_and_prox_are_sentences():
    assert (
        "'properties' must be a set, such as {'norm'}. It is None."
        in check_penalty(Careless(1.0)).failures
    )
    for size in (None, 4):
        with pytest.raises(
            TypeError,
            match=r"Fussy.check_size\(.\) must do nothing, or raise a ValueError. It raised KeyError",
        ):
            check_penalty(Fussy(1.0), size)


def test_a_penalty_written_for_one_size_is_tried_there():
    class Toward:
        def value(self, x):
            return float(np.abs(x - np.arange(4)).sum())

        def prox(self, z, step):
            return np.arange(4) + np.sign(z - np.arange(4)) * np.maximum(
                np.abs(z - np.arange(4)) - step, 0
            )

    assert check_penalty(Toward())
