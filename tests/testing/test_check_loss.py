"""`check_loss` accepts the losses of the package, and says what is wrong with others."""

import re

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import Huber, Loss, Squared, check_loss
from looping import looped
from loss_zoo import EVERY, TERMS, make, named, problem
from user_losses import Barrier, Bowl

A = np.random.default_rng(0).standard_normal((20, 4))
B = np.arange(20.0) % 5 - 2


@pytest.mark.parametrize("kind", EVERY, ids=named)
def test_every_loss_passes(kind):
    for seed, options in enumerate(TERMS[::4]):
        loss, rng = problem(kind, **options)
        report = check_loss(loss, seed=seed)
        assert report, report
    single = make(kind, rng.standard_normal((12, 4)).astype(np.float32), np.arange(12))
    assert single.dtype == np.float32
    assert check_loss(single)


FUNCTIONS = [
    (Bowl(), np.zeros(3)),
    (lambda x: (np.abs(x).sum(), np.sign(x)), [1.0, 0.0, -1.0]),
    (Barrier(), [2.0, 3.0]),  # defined for x > 0 only
    (lambda x: (0.5 * np.sum(x**2), x), np.ones((2, 3))),
    (lambda x: (0.5 * np.sum((x - 1e6) ** 2), x - 1e6), np.full(3, 1e6)),
]


@looped(("function", "x"), FUNCTIONS)
def test_functions_that_are_right(function, x):
    before = np.array(x)
    for seed in range(3):
        report = check_loss(function, x, seed=seed)
        assert report, report
        assert any(one.ok is None and "one x at a time" in one.sentence for one in report.findings)
    assert np.array_equal(before, x)


def squares(x):
    return 0.5 * np.sum(x**2, axis=0)


def mine(base=Squared, **change):
    """Return a loss of the package with some attributes replaced."""
    change = {k: staticmethod(v) if callable(v) else v for k, v in change.items()}
    return type("Mine", (base,), change)(sparse.csr_array(A), B)


class Own(Loss):
    """x.x / 2 for any number of trajectories, with the gradient that `write` leaves in `out`."""

    shape, dtype = (3,), np.dtype(float)

    def __init__(self, write, value=squares):
        self.write, self.value = write, value

    def oracle(self, x):
        return self.evaluate

    def evaluate(self, x, out):
        value = self.value(x)
        self.write(x, out)
        return value


def right(x, out):
    out[:] = x


def changes_x(x, out):
    out[:] = x
    x[0] += 1e-3


def mixes_columns(x, out):
    out[:] = x if x.ndim == 1 else x[:, ::-1]


NOISE = np.random.default_rng(0)
NARROW = {"slopes": lambda b, theta: (-0.1, 0.1)}
LINES = {"piecewise_linear": True, "slopes": lambda b, theta: (-1.0, 1.0)}
SMALL = {"conjugate": lambda u, b, theta: 0.25 * u * u + b * u}
LARGE = {"conjugate": lambda u, b, theta: u * u + b * u}
SLOPE = r"gradient is not the slope .* coordinate \d .*"
WRONG = {
    "twice the gradient": (lambda x: (squares(x), 2 * x), SLOPE),
    "one wrong coordinate": (lambda x: (squares(x), x * [1, 1, 1.001]), SLOPE),
    "not convex": (lambda x: (np.sum(np.cos(x)), -np.sin(x)), "not convex"),
    "random": (
        lambda x: (squares(x) + 0.1 * NOISE.standard_normal(), x),
        "same x gives different answers",
    ),
    "text": (lambda x: ("a", x), "check raised InputError: The value that the loss returns must"),
    "NaN": (lambda x: (np.nan, x), "must be one finite number.* are nan and"),
    "infinite gradient": (lambda x: (squares(x), x / 0.0), "gradient finite .* and .*inf"),
    "raises": (lambda x: 1 / 0, "ZeroDivisionError: division by zero"),
    "changes x": (Own(changes_x), "changes its argument x"),
    "forgets out": (Own(lambda x, out: None), "gradient"),
    "mixes columns": (Own(mixes_columns), "side by side .* differ"),
    "one value for all": (
        Own(right, lambda x: float(np.sum(x**2) / 2)),
        r"one value each, shape \(3,\)",
    ),
    "a conjugate that is too small": (mine(**SMALL), "conjugate is too small"),
    "a conjugate that is too large": (mine(**LARGE), "conjugate is too large"),
    "a smoothness that is too small": (mine(smoothness=0.5), "'smoothness' 0.5 is too small"),
    "slopes that are too narrow": (mine(**NARROW), "outside its 'slopes'"),
    "two lines that are none": (mine(**LINES), "outside its 'slopes'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case):
    loss, words = WRONG[case]
    report = check_loss(loss, None if isinstance(loss, Loss) else [0.3, -0.1, 0.2])
    assert not report, case
    assert any(re.search(words, sentence) for sentence in report.failures), report
    assert all(re.fullmatch(r"[A-Z'].*\.", sentence) for sentence in report.failures), report


def test_what_is_right_beside_it():
    """The same classes without the fault."""
    assert check_loss(Own(right))
    assert check_loss(mine(smoothness=1.0, conjugate=lambda u, b, theta: 0.5 * u * u + b * u))


def test_reports_read_well():
    report = check_loss(Huber(A, B))
    lines = str(report).splitlines()
    count = len(report.findings)
    assert lines[0] == f"Huber: {count} statements, all of them true as far as tried."
    assert len(lines) == 1 + count
    bad = [str(check_loss(lambda x: (squares(x), 2 * x), [1.0, 2.0], seed=3)) for _ in range(2)]
    assert bad[0] == bad[1]
    assert re.match(r"<lambda>: \d of 5 statements false", bad[0])
    assert "\n  NO  The gradient is not" in bad[0]


@looped(
    ("loss", "x", "words"),
    [
        (3.0, None, "'loss' must be a loss"),
        (lambda x: (0.0, x), None, "'x' is needed: the loss is a function"),
        (lambda x: (0.0, x), 5.0, r"'x' must have shape \(d,\)"),
        (Squared(A, B), np.ones(3), r"'x' must have shape \(4,\)"),
        (Squared(A, B), [1.0, np.nan, 0.0, 0.0], "x contains nan"),
    ],
)
def test_what_cannot_be_checked(loss, x, words):
    with pytest.raises((TypeError, ValueError), match=words):
        check_loss(loss, x)
