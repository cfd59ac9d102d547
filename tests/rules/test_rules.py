"""Rules and blocks: the metric w = eps + sqrt(total) per block and the step eta * scale / w."""

from dataclasses import FrozenInstanceError, dataclass
from itertools import islice

import numpy as np
import pytest

import naive
from adagrad_diff import AdaGrad, AdaGradDiff, Logistic, Rule, Squared, iterate, minimize
from adagrad_diff.rules import block_labels
from looping import looped
from pairwise import pairwise
from user_losses import Bowl, data

A, REAL, LABELS, _ = data()
RULES = [AdaGradDiff, AdaGrad]


@looped(
    ("blocks", "shape", "intercept", "expected"),
    [
        (None, (3,), False, None),
        ("element", (2, 3), False, None),
        ("all", (3,), True, [0, 0, 0]),
        ("row", (3, 3), True, [0, 0, 0, 1, 1, 1, 2, 2, 2]),
        ([-1, 5, -1], (3,), False, [0, 1, 0]),
        ([[0, 1], [1, 0]], (2, 2), False, [0, 1, 1, 0]),
        ([4, 4], (3,), True, [0, 0, 1]),  # the intercept is left out, and gets its own block
        ([4, 4, 4], (3,), True, [0, 0, 0]),
        ([0, 1, 1, 0, 2, 2], (3, 3), True, [0, 1, 1, 0, 2, 2, 3, 3, 3]),
        (np.array([0, 255], np.uint8), (3,), True, [0, 1, 2]),  # 255 + 1 is 0 there
        (np.array([2**64 - 1, 0], np.uint64), (3,), True, [1, 0, 2]),
    ],
)
def test_labels_of_blocks(blocks, shape, intercept, expected):
    labels = block_labels(blocks, shape, intercept)
    assert labels is None if expected is None else labels.tolist() == expected


@looped(
    ("blocks", "words"),
    [
        ("rows", "'blocks' parameter must be .* Got 'rows'"),
        ("row", r"two-dimensional x. Got x of shape \(3,\)"),
        ([0.0, 1.0, 1.0], "integer labels"),
        ([], "blocks"),
        ([0, 1], r"one label per coordinate: 3 for x of shape \(3,\). Got labels of shape \(2,\)"),
        ([[0, 1, 1]], r"Got labels of shape \(1, 3\)"),
        (7, r"Got labels of shape \(\)"),
    ],
)
def test_bad_blocks(blocks, words):
    with pytest.raises(ValueError, match=words):
        minimize(Bowl(), np.zeros(3), rule=AdaGrad(0.1, blocks=blocks))


@pairwise(
    rule=RULES,
    blocks=[None, "all", [0, 0, 1, 2, 1, 0]],
    scale=[None, np.linspace(0.5, 3.0, 6)],
    eta=[0.3, lambda n: 1.0 / n],
)
def test_steps(rule, blocks, scale, eta):
    loss, options = naive.Logistic(A, LABELS), {"eps": 0.01, "blocks": blocks, "scale": scale}
    plain = naive.run(loss, np.zeros(6), naive.Zero(), rule.__name__, eta, 25, **options)
    states = iterate(Logistic(A, LABELS), np.zeros(6), None, rule(eta, **options))
    for n, state in enumerate(islice(states, 25)):
        np.testing.assert_allclose(state.step, plain.steps[n], rtol=1e-9)
        np.testing.assert_allclose(state.mean_step, plain.mean_step[n], rtol=1e-9)
        np.testing.assert_allclose(state.x, plain.x[n + 1], rtol=1e-9, atol=1e-13)


def test_scale_may_leave_out_the_intercept():
    f, scale = Logistic(A, LABELS, intercept=True), np.linspace(0.5, 2.0, 6)
    rules = (AdaGradDiff(0.3, scale=s) for s in (scale, np.append(scale, 1.0)))
    short, full = (minimize(f, rule=rule, max_iter=30).x for rule in rules)
    assert np.array_equal(short, full)


def test_callable_eta_is_called_with_n_from_one():
    seen = []
    minimize(Bowl(), np.zeros(3), eta=lambda n: seen.append(n) or 0.5, max_iter=5)
    assert seen == [1, 2, 3, 4, 5]
    assert all(type(n) is int for n in seen)


def test_rules_are_frozen_values():
    rule = AdaGradDiff(np.float32(0.5), blocks="all")
    values = rule.eta, rule.eps, rule.blocks, rule.scale, rule.trajectories
    assert values == (0.5, 1e-8, "all", None, None)
    with pytest.raises(FrozenInstanceError):
        rule.eta = 1.0
    assert rule.select(np.array([0])) is rule
    with pytest.raises(TypeError, match="abstract"):
        Rule(0.1)


def test_one_eta_per_trajectory():
    values = np.array([0.1, 0.2, 0.4])
    rule = AdaGrad(values, eps=0.5)
    values[:] = -1.0
    assert rule.trajectories == 3
    part = rule.select(np.array([0, 2]))
    assert (type(part), part.eta.tolist(), part.eps) == (AdaGrad, [0.1, 0.4], 0.5)


@looped("parameter", ["eta", "eps"])
@looped("value", [0, -1.0, np.nan, np.inf, "0.1", None, True, 1j, {}])
@looped("rule", RULES)
def test_bad_numbers(rule, parameter, value):
    words = f"The '{parameter}' parameter of {rule.__name__} must be a positive number. Got"
    with pytest.raises(ValueError, match=words):
        rule(**{"eta": 0.1, parameter: value})


SCALE = "'scale' parameter of AdaGrad must be a one-dimensional array of positive"


@looped(
    ("parameters", "words"),
    [
        ({"eta": [0.1, -0.2]}, "'eta' parameter of AdaGrad must be a positive number. Got .*-0.2"),
        ({"eta": []}, r"'eta' parameter of AdaGrad must be .* shape \(0,\)"),
        ({"eta": [[0.1, 0.2]]}, r"'eta' parameter of AdaGrad must be .* shape \(1, 2\)"),
        ({"eta": 0.1, "scale": [1.0, 0.0]}, SCALE),
        ({"eta": 0.1, "scale": [1.0, np.nan]}, SCALE),
        ({"eta": 0.1, "scale": 2.0}, SCALE),
        ({"eta": 0.1, "scale": ["a"]}, "scale must be real numbers"),
        ({"eta": 0.1, "scale": [1.0, 1.0]}, "'scale' must hold one value per coordinate: 3. Got 2"),
        ({"eta": lambda n: 2.0 - n}, r"'eta\(2\)' parameter of AdaGrad must be .* Got 0.0"),
        ({"eta": lambda n: None}, r"'eta\(1\)' parameter of AdaGrad must be .* Got None"),
    ],
)
def test_bad_parameters(parameters, words):
    with pytest.raises(ValueError, match=words):
        minimize(Bowl(), np.zeros(3), rule=AdaGrad(**parameters))


EXTREMES = [
    ({"eta": 1e300}, np.float32),
    ({"eta": [0.1, 1e-320]}, np.float32),
    ({"eta": lambda n: 1e300}, np.float32),
    ({"eta": 0.1, "scale": [1.0, 1e300]}, np.float32),
    ({"eta": 0.1, "scale": [1e-320, 1.0]}, np.float32),
    ({"eta": 1.0, "eps": 1e-320}, np.float64),
    ({"eta": 1e305}, np.float64),
]


@looped(("parameters", "dtype"), EXTREMES)
@looped("blocks", [None, "all"])
def test_numbers_that_x_cannot_hold(parameters, dtype, blocks):
    """Steps overflow or vanish: the run ends with a status and a finite x, without success."""
    A_zero = np.column_stack([A[:, 0], np.zeros(len(A))]).astype(dtype)
    for loss in (Squared(A[:, :2].astype(dtype), REAL), Squared(A_zero, REAL)):
        rule = AdaGradDiff(**parameters, blocks=blocks)
        x0 = np.zeros((2, rule.trajectories)) if rule.trajectories else None
        result = minimize(loss, x0, None, rule, max_iter=3, tol=1e-3, on_failure="ignore")
        assert np.isfinite(result.x).all()
        assert not np.any(result.success)


RETURNS = "update of Mine must return memory, point and step"


@looped(
    ("update", "words"),
    [
        (lambda self, memory, n, x, g: x - g, RETURNS),
        (lambda self, memory, n, x, g: None, RETURNS),
        (lambda self, memory, n, x, g: (None, x - g, 1.0), RETURNS),
        (
            lambda self, memory, n, x, g: ({}, (x - g)[:2], 1.0),
            r"update of Mine must return a point of shape \(3,\)",
        ),
    ],
)
def test_rules_that_break_the_contract(update, words):
    methods = {"init": lambda self, x, g: {"total": 0.0 * g}, "update": update}
    kind = dataclass(frozen=True, eq=False)(type("Mine", (Rule,), methods))
    with pytest.raises((TypeError, ValueError), match=words):
        minimize(Bowl(), np.zeros(3), rule=kind(0.1), max_iter=3)


def test_rules_written_for_older_versions():
    words = r"Old defines learn, move or accepts, as rules did before version 0\.3\. A rule now def"
    with pytest.raises(TypeError, match=words):
        type("Old", (AdaGradDiff,), {"learn": None, "move": None})
