"""Bad data and parameters of losses: the error names the argument, the fault and its place."""

import re

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import L1, minimize
from adagrad_diff.losses import (
    LAD,
    Hinge,
    Huber,
    KernelSVMDual,
    Logistic,
    Multinomial,
    Poisson,
    Quadratic,
    Quantile,
    Squared,
)
from looping import looped
from loss_zoo import LINEAR, make

A = np.arange(12.0).reshape(4, 3)
B = [1.0, -1.0, 1.0, -1.0]
Q = np.diag([1.0, 2.0, 3.0])
LABELS = [1, -1, 1]
ROWS = sparse.csr_array


def put(array, place, value):
    """A copy with one entry replaced."""
    array = np.array(array, dtype=complex if isinstance(value, complex) else float)
    array[place] = value
    return array


MATRICES = [
    (put(A, (0, 2), -np.inf), r"A contains -inf at index \(0, 2\)"),
    (np.asfortranarray(put(A, (1, 2), np.nan)), r"A contains nan at index \(1, 2\)"),
    (ROWS(put(A, (2, 1), np.nan)), r"A.*contains nan at index"),
    (np.ones((0, 3)), r"A is empty: it has shape \(0, 3\)"),
    (ROWS(A + 1j), r"A.* must be real.*complex128"),
    ([["a", "b"]] * 4, r"A must be real numbers. Got text, such as 'a': encode it"),
    ([[1.0, 2.0], [3.0]], r"\bA must be real numbers. Got list"),
    (np.ones(4), r"A must be a matrix \(samples, features\). Got shape \(4,\)"),
    (sparse.coo_array(np.ones(4)), r"A must be a matrix .* Got shape \(4,\)"),
]
TARGETS = [
    (put(B, 2, np.nan), r"b contains nan at index 2"),
    (B[:3], r"b must have shape \(4,\), one value per row of A. Got shape \(3,\)"),
    (list("abcd"), "b must be real numbers. Got text, such as 'a': encode it as numbers"),
]
WEIGHTS = [
    (put(np.ones(4), 0, np.inf), r"sample_weight contains inf at index 0"),
    ([1.0, 1.0, -0.5, 1.0], r"sample_weight\[2\] is -0.5. Weights must not be negative"),
    (np.zeros(4), r"sample_weight is zero for every sample: at least one must be positive"),
    (np.ones(3), r"sample_weight must have shape \(4,\), one value per row of A. Got shape \(3,\)"),
]


@looped(("bad", "sentence"), MATRICES)
def test_matrix(bad, sentence):
    for kind in (Logistic, Squared, Multinomial):
        with pytest.raises(ValueError, match=sentence):
            make(kind, bad, np.arange(4))


@pytest.mark.parametrize("kind", LINEAR)
def test_targets_weights_and_l2(kind):
    for bad, sentence in TARGETS:
        with pytest.raises(ValueError, match=sentence):
            kind(A, bad)
    for bad, sentence in WEIGHTS:
        with pytest.raises(ValueError, match=sentence):
            make(kind, A, np.arange(4), sample_weight=bad)
    words = rf"The 'l2' parameter of {kind.__name__} must be a number >= 0. Got .* instead"
    for bad in (-1.0, np.nan, "strong", None, [0.1, 0.2], True):
        with pytest.raises(ValueError, match=words):
            make(kind, A, np.arange(4), l2=bad)


PARAMETERS = [
    (Quantile, (A, B), "tau", [0.0, 1.0, -0.5, np.nan, "half"]),
    (Huber, (A, B), "delta", [0.0, -1.0, np.nan, np.inf, None]),
    (KernelSVMDual, (Q, LABELS), "lam", [0.0, -1.0, np.inf, "wide"]),
    (Multinomial, (A, [0, 1, 2, 3]), "classes", [3, 1, -2, 4.5, np.nan]),
]


@looped(("kind", "arguments", "name", "values"), PARAMETERS)
def test_parameters(kind, arguments, name, values):
    for value in values:
        words = rf"'{name}' parameter of {kind.__name__} must be .* Got {value!r} instead"
        with pytest.raises(ValueError, match=words):
            kind(*arguments, **{name: value})


UNSYMMETRIC = put(Q, (0, 1), 1.0)
SQUARE = [
    (np.ones((2, 3)), r"matrix of (\w+) must be square. Got shape \(2, 3\)"),
    (UNSYMMETRIC, r"matrix of (\w+) must be symmetric. Use \(Q \+ Q.T\) / 2"),
    (ROWS(put(Q, (1, 1), -1.0)), r"(\w+) has a negative diagonal entry: .* not convex"),
    (put(put(Q, (0, 1), 5.0), (1, 0), 5.0), r"(\w+) has a negative eigenvalue \(-3.5\): f is not"),
    (np.eye(900) - 0.01, r"(\w+) has a negative eigenvalue \(-8\): f is not"),
    (put(Q, (2, 1), np.inf), r"\b([KQ]) contains inf at index \(2, 1\)"),
    (np.ones((0, 0)), r"\b([KQ]) is empty: it has shape \(0, 0\)"),
]


@looped(("bad", "sentence"), SQUARE)
def test_quadratic_functions(bad, sentence):
    ones = np.ones(len(bad) if isinstance(bad, np.ndarray) else 3)
    for kind, options in ((Quadratic, {}), (KernelSVMDual, {"lam": 1.0})):
        with pytest.raises(ValueError, match=sentence) as caught:
            kind(bad, ones, **options)
        assert re.search(sentence, str(caught.value))[1] in (kind.__name__, "KQ"[kind is Quadratic])


CASES = [
    (lambda: Poisson(A, [0, 1, -2, -3]), r"b\[2\] is -2.0. Poisson needs targets >= 0."),
    (
        lambda: Multinomial(A, [0, 1, 1, 0.5]),
        r"b\[3\] is 0.5. Multinomial needs classes 0, 1, \.\.\.,",
    ),
    (
        lambda: KernelSVMDual(Q, [1, 0, 1], 1.0),
        r"b\[1\] is 0.0. KernelSVMDual needs labels -1 and \+1, such as np.where\(y == 1, 1, -1\)",
    ),
    (lambda: KernelSVMDual(Q, LABELS, 1e-320), "'lam' .* too small: 1 / 1e-320 is infinite"),
    (lambda: Quadratic(Q, [1.0, 2.0]), r"c must have shape \(3,\), .* Got shape \(2,\)"),
    (
        lambda: Squared(A.astype(np.float32), [0.0, 1e300, 0.0, 0.0]),
        r"b\[1\] is 1e\+300, too large for float32",
    ),
    (
        lambda: Squared(A, B).value_and_grad(np.zeros(4)),
        r"x must have 3 coordinates. Got shape \(4,\)",
    ),
    (
        lambda: Squared(A, B, intercept=True).value_and_grad(np.zeros((4, 1, 1))),
        r"x must have 4 coordinates \(features and intercept\). Got shape \(4, 1, 1\)",
    ),
    (
        lambda: Quadratic(Q, LABELS).value_and_grad(np.zeros(2)),
        r"x must have 3 coordinates. Got shape \(2,\)",
    ),
    (
        lambda: Multinomial(A, [0, 1, 2, 0]).value_and_grad(np.zeros((3, 2))),
        r"x must have shape \(3, 3\) .*Got shape \(3, 2\)",
    ),
]


@looped(("call", "sentence"), CASES)
def test_other_cases(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


class Mine:
    def value_and_grad(self, x):
        return 0.0, x


@looped("bad", [None, 3.0, dict, LAD, KernelSVMDual, Mine])
def test_what_is_no_loss(bad):
    words = r"'loss' must be a loss, or a function x -> \(value, gradient\)"
    if hasattr(bad, "value_and_grad"):
        words = rf"'loss' is the class {bad.__name__}. Did you mean {bad.__name__}\(\.\.\.\)\?"
    with pytest.raises(TypeError, match=words):
        minimize(bad, [1.0])


FUNCTIONS = [
    (lambda x: 1.0, r"must return a pair \(value, gradient\). Got float"),
    (lambda x: (1.0, x, x), r"must return a pair \(value, gradient\). Got tuple"),
    (lambda x: (1.0, x[:1]), r"gradient of the shape of x, \(2,\). Got \(1,\)"),
    (lambda x: (np.ones(3), x), r"one value, or one per trajectory .* Got shape \(3,\)"),
]


@looped(("function", "sentence"), FUNCTIONS)
def test_what_a_function_must_return(function, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        minimize(function, [1.0, 2.0], eta=0.1)


def test_almost_symmetric_is_symmetric():
    """Rounding, as in a kernel matrix computed in single precision, is no reason to refuse."""
    K = np.random.default_rng(0).standard_normal((30, 5)).astype(np.float32)
    K = K @ K.T
    K[0, 1] = np.nextafter(K[0, 1], np.inf)
    for loss in (Quadratic(K, np.ones(30)), KernelSVMDual(ROWS(K), np.ones(30), 1.0)):
        assert loss.dtype == np.float32


def test_weights_of_any_kind_of_loss():
    assert Hinge(A, B, sample_weight=[1e308] * 4).weight.tolist() == [0.25] * 4


@looped("size", [1e-155, 1e155])
def test_columns_of_extreme_size_are_named(size):
    """The message is about the data, not about a scale that was never passed."""
    A = np.diag([1.0, size, 1.0])
    with pytest.raises(ValueError, match=r"^Column 1 of A has entries whose squares .* rescale it"):
        minimize(LAD(A, np.ones(3)), penalty=L1(0.1 * size), tol=1e-3)
