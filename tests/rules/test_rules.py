"""Rules and blocks: the metric w = eps + sqrt(total) per block and the step eta * scale / w, against plain formulas."""

from dataclasses import FrozenInstanceError, dataclass
from itertools import islice

import numpy as np
import pytest

from adagrad_diff import (
    AdaGrad,
    AdaGradDiff,
    Logistic,
    Multinomial,
    Rule,
    Squared,
    iterate,
    minimize,
)
from looping import looped
from pairwise import pairwise
from user_losses import Bowl, data

A, REAL, LABELS, CLASSES = data()
RULES = [AdaGradDiff, AdaGrad]


def two_steps(blocks, shape, intercept):
    """Return the steps of AdaGrad after two iterations, which are equal exactly where coordinates share a block."""
    slope = np.arange(1.0, np.prod(shape) + 1).reshape(shape)
    loss, x0 = (lambda x: (np.sum(slope * x), slope)), np.zeros(shape)
    if intercept:
        features = A[:, : shape[0] - 1]
        loss = (
            Multinomial(features, CLASSES, intercept=True)
            if len(shape) > 1
            else Squared(features, REAL, intercept=True)
        )
    return next(islice(iterate(loss, x0, None, AdaGrad(0.3, blocks=blocks)), 1, None)).step.ravel()


@looped(
    ("blocks", "shape", "intercept", "expected"),
    [
        (None, (3,), False, [0, 1, 2]),
        ("all", (3,), True, [0, 0, 0]),
        ("element", (2, 3), False, [0, 1, 2, 3, 4, 5]),
        ("row", (3, 3), True, [0, 0, 0, 1, 1, 1, 2, 2, 2]),
        ([-1, 5, -1], (3,), False, [0, 1, 0]),
        ([[0, 1], [1, 0]], (2, 2), False, [0, 1, 1, 0]),
        (
            [4, 4],
            (3,),
            True,
            [0, 0, 1],
        ),  # the labels leave out the intercept, which gets a block of its own
        ([4, 4, 4], (3,), True, [0, 0, 0]),
        ([0, 1, 1, 0, 2, 2], (3, 3), True, [0, 1, 1, 0, 2, 2, 3, 3, 3]),
        (np.array([0, 255], np.uint8), (3,), True, [0, 1, 2]),  # 255 + 1 is 0 there
        (np.array([2**64 - 1, 0], np.uint64), (3,), True, [1, 0, 2]),
    ],
)
def test_coordinates_of_a_block_share_a_step(blocks, shape, intercept, expected):
    steps, labels = two_steps(blocks, shape, intercept), np.array(expected)
    np.testing.assert_array_equal(steps[:, None] == steps, labels[:, None] == labels)


@looped(
    ("blocks", "shape", "intercept", "words"),
    [
        ("rows", (3,), False, "'blocks' parameter must be .* Got 'rows'"),
        ("row", (3,), False, r"two-dimensional x. Got x of shape \(3,\)"),
        ([0.0, 1.0, 1.0], (3,), False, "integer labels"),
        (
            [0, 1],
            (3,),
            False,
            r"one label per coordinate: 3 for x of shape \(3,\). Got labels of shape \(2,\)",
        ),
        ([0, 1, 1, 1], (3,), True, r"one label per coordinate: 3"),
        ([], (3,), False, "blocks"),
        (
            [[0, 1, 1]],
            (3,),
            False,
            r"one label per coordinate: 3 for x of shape \(3,\). Got labels of shape \(1, 3\)",
        ),
        (7, (3,), False, r"Got labels of shape \(\)"),
    ],
)
def test_bad_blocks(blocks, shape, intercept, words):
    with pytest.raises(ValueError, match=words):
        two_steps(blocks, shape, intercept)


def expected_weights(gradients, rule, labels, eps):
    """w = eps + sqrt(sum over k and over the block of (g^k - g^{k-1})^2), or of (g^k)^2, as written."""
    before = np.vstack([np.zeros_like(gradients[:1]), gradients[:-1]])
    squares = ((gradients - before if rule is AdaGradDiff else gradients) ** 2).sum(axis=0)
    return eps + np.sqrt(np.array([squares[labels == label].sum() for label in labels]))


@pairwise(
    rule=RULES,
    blocks=[None, "all", [0, 0, 1, 2, 1, 0]],
    scale=[None, np.linspace(0.5, 3.0, 6)],
    eta=[0.3, lambda n: 1.0 / n],
)
def test_steps(rule, blocks, scale, eta):
    labels = {"None": np.arange(6), "all": np.zeros(6)}.get(str(blocks), np.array(blocks))
    factor = np.ones(6) if scale is None else scale
    f = Logistic(A, LABELS)
    x, g = np.zeros(6), f.value_and_grad(np.zeros(6))[1]
    gradients = [g]
    for state in islice(iterate(f, x, None, rule(eta, eps=0.01, blocks=blocks, scale=scale)), 25):
        weights = expected_weights(np.array(gradients), rule, labels, 0.01)
        step = (eta(state.n) if callable(eta) else eta) * factor / weights
        np.testing.assert_allclose(state.step, step, rtol=1e-12)
        np.testing.assert_allclose(state.mean_step, step.mean(), rtol=1e-12)
        np.testing.assert_allclose(state.x, x - step * g, rtol=1e-9, atol=1e-13)
        x, g = state.x.copy(), state.g.copy()
        gradients.append(g)
        assert state.memory["total"].shape == (len(np.unique(labels)),)


def test_scale_may_leave_out_the_intercept():
    f, scale = Logistic(A, LABELS, intercept=True), np.linspace(0.5, 2.0, 6)
    short, full = (
        minimize(f, rule=AdaGradDiff(0.3, scale=s), max_iter=30).x
        for s in (scale, np.append(scale, 1.0))
    )
    assert np.array_equal(short, full)


def test_callable_eta_is_called_with_n_from_one():
    seen = []
    minimize(Bowl(), np.zeros(3), eta=lambda n: seen.append(n) or 0.5, max_iter=5)
    assert seen == [1, 2, 3, 4, 5]
    assert all(type(n) is int for n in seen)


def test_rules_are_frozen_values():
    rule = AdaGradDiff(np.float32(0.5), blocks="all")
    assert (rule.eta, rule.eps, rule.blocks, rule.scale, rule.trajectories) == (
        0.5,
        1e-8,
        "all",
        None,
        None,
    )
    with pytest.raises(FrozenInstanceError):
        rule.eta = 1.0
    assert rule.select(np.array([0])) is rule


def test_one_eta_per_trajectory():
    rule = AdaGrad([0.1, 0.2, 0.4], eps=0.5)
    assert rule.trajectories == 3
    part = rule.select(np.array([0, 2]))
    assert (type(part), part.eta.tolist(), part.eps) == (AdaGrad, [0.1, 0.4], 0.5)
    values = np.array([0.1, 0.2])
    rule = AdaGradDiff(values)
    values[:] = -1.0
    assert rule.eta.tolist() == [0.1, 0.2]


@looped("parameter", ["eta", "eps"])
@looped("value", [0, -1.0, np.nan, np.inf, "a", "0.1", None, True, 1j, {}])
@looped("rule", RULES)
def test_bad_numbers(rule, parameter, value):
    with pytest.raises(
        ValueError,
        match=f"The '{parameter}' parameter of {rule.__name__} must be a positive number. Got",
    ):
        rule(**{"eta": 0.1, parameter: value})


@looped(
    ("parameters", "words"),
    [
        ({"eta": [0.1, -0.2]}, "'eta' parameter of AdaGrad must be a positive number. Got .*-0.2"),
        ({"eta": [0.1, np.nan]}, "'eta' parameter of AdaGrad must be a positive number. Got .*nan"),
        ({"eta": []}, r"'eta' parameter of AdaGrad must be .* shape \(0,\)"),
        ({"eta": [[0.1, 0.2]]}, r"'eta' parameter of AdaGrad must be .* shape \(1, 2\)"),
        ({"eta": 0.1, "scale": [1.0, 0.0]}, "'scale' parameter of AdaGrad must be .* positive"),
        ({"eta": 0.1, "scale": [1.0, np.nan]}, "'scale' parameter of AdaGrad must be .* positive"),
        (
            {"eta": 0.1, "scale": [[1.0, 1.0]]},
            "'scale' parameter of AdaGrad must be a one-dimensional array",
        ),
        (
            {"eta": 0.1, "scale": 2.0},
            "'scale' parameter of AdaGrad must be a one-dimensional array",
        ),
        ({"eta": 0.1, "scale": ["a"]}, "scale must be real numbers"),
    ],
)
def test_bad_parameters(parameters, words):
    with pytest.raises(ValueError, match=words):
        AdaGrad(**parameters)


@looped(
    ("rule", "words"),
    [
        (
            AdaGradDiff(0.1, scale=[1.0, 1.0]),
            "'scale' must hold one value per coordinate: 3. Got 2",
        ),
        (
            AdaGradDiff(0.1, blocks=[0, 1]),
            r"'blocks' must hold one label per coordinate: 3 for x of shape \(3,\). Got .*2",
        ),
        (AdaGradDiff(0.1, blocks="row"), "blocks='row' needs a two-dimensional x"),
        (
            AdaGradDiff(lambda n: 2.0 - n),
            r"'eta\(2\)' parameter of AdaGradDiff must be a positive number. Got 0.0",
        ),
        (
            AdaGradDiff(lambda n: np.nan),
            r"'eta\(1\)' parameter of AdaGradDiff must be a positive number. Got nan",
        ),
        (
            AdaGradDiff(lambda n: None),
            r"'eta\(1\)' parameter of AdaGradDiff must be a positive number. Got None",
        ),
    ],
)
def test_rules_that_do_not_fit_the_problem(rule, words):
    with pytest.raises(ValueError, match=words):
        minimize(Bowl(), np.zeros(3), rule=rule)


def test_rule_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Rule(0.1)


EXTREMES = [
    ({"eta": 1e300}, np.float32),
    ({"eta": 1e-320}, np.float32),
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
    """Steps overflow or vanish: the run ends with a status and a finite x, and is no success."""
    A_zero = np.column_stack([A[:, 0], np.zeros(len(A))]).astype(dtype)
    for loss in (Squared(A[:, :2].astype(dtype), REAL), Squared(A_zero, REAL)):
        rule = AdaGradDiff(**parameters, blocks=blocks)
        x0 = np.zeros((2, rule.trajectories)) if rule.trajectories else None
        result = minimize(loss, x0, None, rule, max_iter=3, tol=1e-3, on_failure="ignore")
        assert np.isfinite(result.x).all()
        assert not np.any(result.success)


def variant(update):
    """A rule with an update of its own."""
    methods = {"init": lambda self, x, g: {"total": 0.0 * g}, "update": update}
    return dataclass(frozen=True, eq=False)(type("Mine", (Rule,), methods))(0.1)


@looped(
    ("update", "words"),
    [
        (lambda self, memory, n, x, g: x - g, "update of Mine must return memory, point and step"),
        (lambda self, memory, n, x, g: None, "update of Mine must return memory, point and step"),
        (
            lambda self, memory, n, x, g: (None, x - g, 1.0),
            "update of Mine must return memory, point and step",
        ),
        (
            lambda self, memory, n, x, g: ({}, (x - g)[:2], 1.0),
            r"update of Mine must return a point of shape \(3,\)",
        ),
    ],
)
def test_rules_that_break_the_contract(update, words):
    with pytest.raises((TypeError, ValueError), match=words):
        minimize(Bowl(), np.zeros(3), rule=variant(update), max_iter=3)


def test_rules_written_for_older_versions():
    with pytest.raises(
        TypeError,
        match=r"Old defines learn, move or accepts, as rules did before version 0\.3\. A rule now defines init",
    ):

        class Old(AdaGradDiff):
            def learn(self, memory, now):
                """total += ..."""

            def move(self, memory, now):
                """step = ..."""
