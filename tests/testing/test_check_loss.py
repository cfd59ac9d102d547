"""`check_loss`: it finds nothing wrong with the losses of the package, and says what is wrong with others."""

import re
from itertools import cycle

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import LAD, Huber, Loss, Quadratic, Squared, check_loss
from adagrad_diff.losses import Oracle
from looping import looped
from loss_zoo import EVERY, TERMS, named, problem
from user_losses import Barrier, Bowl

A = np.random.default_rng(0).standard_normal((20, 4))
B = np.arange(20.0) % 5 - 2


@pytest.mark.parametrize("kind", EVERY, ids=named)
def test_every_loss_passes(kind):
    for seed, options in enumerate(TERMS[::4]):
        report = check_loss(problem(kind, **options)[0], seed=seed)
        assert report
        assert report.failures == []


@pytest.mark.parametrize(
    ("kind", "layout"), list(zip(EVERY, cycle([np.asarray, sparse.csr_array]), strict=False))
)
def test_every_loss_passes_in_single_precision(kind, layout):
    loss, rng = problem(kind)
    single = np.abs(rng.standard_normal((12, 4))).astype(np.float32)
    if hasattr(loss, "Q"):
        single = single @ single.T
        loss = kind(layout(single), loss.c, **({"lam": 0.5} if hasattr(loss, "lam") else {}))
    else:
        loss = type(loss)(
            layout(single), loss.b, **({"classes": 3} if hasattr(loss, "classes") else {})
        )
    assert loss.dtype == np.float32
    assert check_loss(loss)


FUNCTIONS = [
    (Bowl(), np.zeros(3)),
    (lambda x: (np.abs(x).sum(), np.sign(x)), [1.0, 0.0, -1.0]),
    (
        lambda x: (float(np.maximum(x, 0).max()), np.eye(3)[np.argmax(x)] * (x.max() > 0)),
        np.zeros(3),
    ),
    (Barrier(), [2.0, 3.0]),  # defined for x > 0 only
    (lambda x: (0.5 * np.sum(x**2), x), np.ones((2, 3))),
    (lambda x: (1e12 * np.sum(x**2) / 2, 1e12 * x), 1e-6 * np.ones(4)),
    (lambda x: (0.5 * np.sum((x - 1e6) ** 2), x - 1e6), np.full(3, 1e6)),
    (lambda x: (0.0, np.zeros(2)), [1.0, 2.0]),
]


@looped(("function", "x"), FUNCTIONS)
def test_functions_that_are_right(function, x):
    before = np.array(x)
    for seed in range(3):
        assert check_loss(function, x, seed=seed)
    assert np.array_equal(before, x)


def squares(x):
    return 0.5 * np.sum(x**2, axis=0)


def mine(base=Squared, **change):
    """Return a loss of the package with some attributes replaced. A scalar of its own is compiled, which takes long."""
    change = {k: staticmethod(v) if callable(v) else v for k, v in change.items()}
    return type("Mine", (base,), change)(sparse.csr_array(A), B)


def wavy(z, b, theta):
    return np.cos(z), -np.sin(z)


class Own(Loss):
    """x.x / 2 for any number of trajectories, with something wrong."""

    shape, dtype = (3,), np.dtype(float)

    def __init__(self, call):
        self.call = call

    def oracle(self, x):
        return OwnOracle(self.call)


class OwnOracle(Oracle):
    def __init__(self, call):
        self.call = call

    def __call__(self, x, out):
        return self.call(x, out)


def right(x, out):
    out[:] = x
    return squares(x)


def changes_x(x, out):
    out[:] = x
    x[0] += 1e-3
    return squares(out)


def forgets_out(x, out):
    return squares(x)


def adds_to_out(x, out):
    out += x
    return squares(x)


def mixes_columns(x, out):
    out[:] = x if x.ndim == 1 else x[:, ::-1]
    return squares(x)


def one_value(x, out):
    out[:] = x
    return float(np.sum(x**2) / 2)


class Noisy:
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, x):
        noise = 1 + 0.1 * self.rng.standard_normal()
        return noise * squares(x), noise * x


def changes_its_argument(x):
    answer = squares(x), x.copy()
    x += 1
    return answer


WRONG = {
    "twice the gradient": (
        lambda x: (squares(x), 2 * x),
        r"gradient is not the slope .* coordinate \d .*",
    ),
    "a wrong sign": (lambda x: (squares(x), -x), "gradient is not the slope"),
    "one wrong coordinate": (
        lambda x: (squares(x), x * [1, 1, 1.001]),
        "gradient is not the slope .* coordinate 2 ",
    ),
    "no gradient": (lambda x: (squares(x), 0 * x), "gradient is not the slope"),
    "not convex": (lambda x: (np.sum(np.cos(x)), -np.sin(x)), "not convex"),
    "concave": (lambda x: (-squares(x), -x), "not convex"),
    "a subgradient of nothing": (
        lambda x: (np.abs(x).sum(), 2 * np.sign(x)),
        "gradient is not the slope",
    ),
    "a wrong value": (lambda x: (3 * squares(x), x), "gradient is not the slope"),
    "random": (Noisy(), "same x gives different answers"),
    "gradient too short": (
        lambda x: (squares(x), x[:2]),
        r"gradient of the shape of x, \(3,\). Got \(2,\)",
    ),
    "no pair": (squares, r"must return a pair \(value, gradient\)"),
    "text": (lambda x: ("a", x), "value that the loss returns must be"),
    "complex": (lambda x: (squares(x), x + 1j), "gradient that the loss returns must be"),
    "NaN": (lambda x: (np.nan, x), "must be one finite number.* are nan and"),
    "NaN elsewhere": (
        lambda x: (np.nan if x.ravel()[0] != 0.3 else 1.0, x),
        "not finite at points around",
    ),
    "infinite gradient": (lambda x: (squares(x), x / 0.0), "gradient finite .* and .*inf"),
    "raises": (lambda x: 1 / 0, "ZeroDivisionError: division by zero"),
    "changes x": (changes_its_argument, "changes its argument x"),
    "a loss that changes x": (Own(changes_x), "changes its argument x"),
    "a loss that forgets out": (Own(forgets_out), "gradient"),
    "a loss that adds to out": (Own(adds_to_out), "gradient"),
    "a loss that mixes columns": (Own(mixes_columns), "side by side .* differ"),
    "a loss with one value for all": (
        Own(one_value),
        r"side by side .* one value each, shape \(3,\)",
    ),
    "a scalar that is not convex": (mine(scalar=wavy), "not convex"),
    "a scalar that is none": (mine(scalar=lambda z, b, theta: z), "must return two numbers"),
    "a conjugate that is too small": (
        mine(conjugate=lambda u, b, theta: 0.25 * u * u + b * u),
        "conjugate is too small",
    ),
    "a conjugate that is too large": (
        mine(conjugate=lambda u, b, theta: u * u + b * u),
        "conjugate is too large",
    ),
    "a conjugate without b": (mine(conjugate=lambda u, b, theta: 0.5 * u * u), "conjugate is too"),
    "a conjugate of the wrong domain": (
        mine(conjugate=lambda u, b, theta: np.where(np.abs(u) <= 0.1, 0.5 * u * u + b * u, np.inf)),
        "conjugate is too large",
    ),
    "a conjugate for numbers only": (
        mine(conjugate=lambda u, b, theta: 0.0 if u > 0 else 1.0),
        "conjugate",
    ),
    "a smoothness that is too small": (mine(smoothness=0.5), "'smoothness' 0.5 is too small"),
    "a smoothness of a kink": (mine(LAD, smoothness=1.0), "'smoothness' 1.0 is too small"),
    "slopes that are too narrow": (
        mine(slopes=lambda b, theta: (-0.1, 0.1)),
        "outside its 'slopes'",
    ),
    "two lines that are none": (
        mine(piecewise_linear=True, slopes=lambda b, theta: (-1.0, 1.0)),
        "outside its 'slopes'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said(case):
    loss, words = WRONG[case]
    x = None if isinstance(loss, Loss) else [0.3, -0.7, 1.1]
    report = check_loss(loss, x)
    assert not report, case
    assert any(re.search(words, sentence) for sentence in report.failures), report
    assert all(re.fullmatch(r"[A-Z'].*\.", sentence) for sentence in report.failures), report


def test_what_is_right_beside_it():
    """The same classes without the fault."""
    assert check_loss(Own(right))
    assert check_loss(mine(smoothness=1.0, conjugate=lambda u, b, theta: 0.5 * u * u + b * u))


class WrongLipschitz(Quadratic):
    def lipschitz(self):
        return 0.1 * super().lipschitz()


def test_a_lipschitz_constant_that_is_too_small():
    report = check_loss(WrongLipschitz(A.T @ A, np.ones(4)))
    assert any("lipschitz() is too small" in sentence for sentence in report.failures)
    assert check_loss(Quadratic(A.T @ A, np.ones(4)))


def test_reports_read_well():
    report = check_loss(Squared(A, B))
    text = str(report)
    assert text == repr(report)
    assert (
        text.splitlines()[0]
        == f"Squared: {len(report.findings)} statements, all of them true as far as tried."
    )
    assert len(text.splitlines()) == 1 + len(report.findings)
    assert all(finding.ok is True for finding in report.findings)
    bad = str(check_loss(lambda x: (squares(x), 2 * x), [1.0, 2.0]))
    assert "1 of " in bad.splitlines()[0] or "2 of " in bad.splitlines()[0]
    assert any(line.startswith("  NO ") for line in bad.splitlines())


def test_one_x_at_a_time_is_said_and_no_fault():
    """A function of a vector need not know of trajectories."""
    report = check_loss(lambda x: (0.5 * x @ x, x), np.ones(3))
    assert report
    assert any(
        finding.ok is None and "one x at a time" in finding.sentence for finding in report.findings
    )


def test_the_same_seed_gives_the_same_report():
    loss = Huber(A, B)
    first, second = (
        str(check_loss(lambda x: (squares(x), 1.5 * x), [1.0, 2.0], seed=3)) for _ in range(2)
    )
    assert first == second
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    check_loss(loss)
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002


def test_what_cannot_be_checked():
    with pytest.raises(TypeError, match="'loss' must be a loss"):
        check_loss(3.0)
    with pytest.raises(ValueError, match="'x' is needed: the loss is a function"):
        check_loss(lambda x: (0.0, x))
    with pytest.raises(ValueError, match=r"'x' must have shape \(d,\)"):
        check_loss(lambda x: (0.0, x), 5.0)
    with pytest.raises(ValueError, match=r"'x' must have shape \(4,\)"):
        check_loss(Squared(A, B), np.ones(3))
    with pytest.raises(ValueError, match="x contains nan"):
        check_loss(Squared(A, B), [1.0, np.nan, 0.0, 0.0])
