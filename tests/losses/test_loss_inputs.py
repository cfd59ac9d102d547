"""Bad data and parameters of losses: the error names the argument, what is wrong with it and where."""

import re

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from adagrad_diff import minimize
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


def put(array, place, value):
    """A copy with one entry replaced."""
    array = np.array(array, dtype=complex if isinstance(value, complex) else float)
    array[place] = value
    return array


MATRICES = {
    "NaN": (put(A, (2, 1), np.nan), r"A contains nan at index \(2, 1\)"),
    "inf": (put(A, (0, 2), -np.inf), r"A contains -inf at index \(0, 2\)"),
    "NaN in float32": (
        put(A, (3, 0), np.nan).astype(np.float32),
        r"A contains nan at index \(3, 0\)",
    ),
    "NaN in Fortran order": (
        np.asfortranarray(put(A, (1, 2), np.nan)),
        r"A contains nan at index \(1, 2\)",
    ),
    "NaN in CSR": (sparse.csr_array(put(A, (2, 1), np.nan)), r"A.*contains nan at index"),
    "inf in CSC": (sparse.csc_array(put(A, (2, 1), np.inf)), r"A.*contains inf at index"),
    "NaN in COO": (sparse.coo_array(put(A, (2, 1), np.nan)), r"A.*contains nan at index"),
    "no samples": (np.ones((0, 3)), r"A is empty: it has shape \(0, 3\)"),
    "no features": (np.ones((4, 0)), r"A is empty: it has shape \(4, 0\)"),
    "no samples, sparse": (sparse.csr_array((0, 3)), r"A is empty: it has shape \(0, 3\)"),
    "no features, sparse": (sparse.csc_array((4, 0)), r"A is empty: it has shape \(4, 0\)"),
    "complex": (A + 1j, r"A must be real.*complex128"),
    "complex, sparse": (sparse.csr_array(A + 1j), r"A.* must be real.*complex128"),
    "complex operator": (aslinearoperator(A + 1j), r"A must be real.*complex128"),
    "strings": ([["a", "b"]] * 4, r"A must be real numbers. Got text, such as 'a'"),
    "dates": (np.full((4, 3), "2020-01-01", dtype="M8[D]"), r"A must be real.*datetime64"),
    "objects": (
        np.array([[{}, 1.0]] * 4, dtype=object),
        r"A must be an array of real numbers|A must be real numbers",
    ),
    "ragged": ([[1.0, 2.0], [3.0]], r"\bA must be"),
    "one dimension": (np.ones(4), r"A must be a matrix \(samples, features\). Got shape \(4,\)"),
    "three dimensions": (np.ones((4, 3, 1)), r"A must be a matrix .* Got shape \(4, 3, 1\)"),
    "a number": (3.0, r"A must be a matrix .* Got shape \(\)"),
    "one dimension, sparse": (
        sparse.coo_array(np.ones(4)),
        r"A must be a matrix .* Got shape \(4,\)",
    ),
}

TARGETS = {
    "NaN": (put(B, 2, np.nan), r"b contains nan at index 2"),
    "inf": (put(B, 1, np.inf), r"b contains inf at index 1"),
    "too short": (B[:3], r"b must have shape \(4,\), one value per row of A. Got shape \(3,\)"),
    "too long": ([*B, 1.0], r"b must have shape \(4,\), .* Got shape \(5,\)"),
    "a column": (np.ones((4, 1)), r"b must have shape \(4,\), .* Got shape \(4, 1\)"),
    "a number": (1.0, r"b must have shape \(4,\), .* Got shape \(\)"),
    "strings": (list("abcd"), "b must be real numbers. Got text, such as 'a'"),
    "complex": (put(B, 0, 1j), r"b must be real.*complex128"),
}

WEIGHTS = {
    "NaN": (put(np.ones(4), 3, np.nan), r"sample_weight contains nan at index 3"),
    "inf": (put(np.ones(4), 0, np.inf), r"sample_weight contains inf at index 0"),
    "negative": (
        [1.0, 1.0, -0.5, 1.0],
        r"sample_weight\[2\] is -0.5. Weights must not be negative",
    ),
    "zero": (np.zeros(4), r"sample_weight is zero for every sample: at least one must be positive"),
    "too short": (
        np.ones(3),
        r"sample_weight must have shape \(4,\), one value per row of A. Got shape \(3,\)",
    ),
    "a number": (1.0, r"sample_weight must have shape \(4,\), .* Got shape \(\)"),
    "complex": (np.ones(4) + 1j, r"sample_weight must be real.*complex128"),
}


@looped("kind", [Logistic, Squared, Multinomial])
@pytest.mark.parametrize("case", MATRICES)
def test_matrix(kind, case):
    bad, sentence = MATRICES[case]
    with pytest.raises(ValueError, match=sentence):
        make(kind, bad, np.arange(4))


@looped("kind", LINEAR)
@pytest.mark.parametrize("case", TARGETS)
def test_targets(kind, case):
    bad, sentence = TARGETS[case]
    with pytest.raises(ValueError, match=sentence):
        kind(A, bad)


@looped("kind", [Hinge, Huber, Multinomial])
@pytest.mark.parametrize("case", WEIGHTS)
def test_weights(kind, case):
    bad, sentence = WEIGHTS[case]
    with pytest.raises(ValueError, match=sentence):
        make(kind, A, np.arange(4), sample_weight=bad)


@looped("kind", LINEAR)
@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, "strong", None, [0.1, 0.2], True], ids=repr)
def test_l2(kind, bad):
    with pytest.raises(
        ValueError,
        match=rf"The 'l2' parameter of {kind.__name__} must be a number >= 0. Got .* instead",
    ):
        make(kind, A, np.arange(4), l2=bad)


POSITIVE = [0.0, -1.0, np.nan, np.inf, "wide", None]
CASES = [
    (lambda: Poisson(A, [0, 1, -2, -3]), r"b\[2\] is -2.0. Poisson needs targets >= 0."),
    (
        lambda: Multinomial(A, [0, 1, -1, 2]),
        r"b\[2\] is -1.0. Multinomial needs classes 0, 1, \.\.\.,",
    ),
    (
        lambda: Multinomial(A, [0, 1, 1, 0.5]),
        r"b\[3\] is 0.5. Multinomial needs classes 0, 1, \.\.\.,",
    ),
    (
        lambda: Multinomial(A, [0, 1, 2, 3], classes=3),
        r"The 'classes' parameter of Multinomial must be an integer from 4 to \d+. Got 3",
    ),
    (
        lambda: Multinomial(A, [0, 0, 0, 0], classes=1),
        r"The 'classes' parameter of Multinomial must be an integer from 2 to \d+. Got 1",
    ),
    (
        lambda: Multinomial(A, [0, 1, 0, 1], classes=-2),
        r"The 'classes' parameter of Multinomial must be an integer from 2 to \d+. Got -2",
    ),
    (
        lambda: Multinomial(A, [0, 1, 0, 1], classes=2.5),
        r"'classes' parameter of Multinomial must be .* Got 2.5",
    ),
    (
        lambda: Multinomial(A, [0, 1, 0, 1], classes=np.nan),
        r"'classes' parameter of Multinomial must be .* Got nan",
    ),
    *(
        (lambda t=t: Quantile(A, B, tau=t), rf"'tau' parameter of Quantile must .* Got {t!r}")
        for t in (0.0, 1.0, 1.5, -0.5)
    ),
    *(
        (lambda t=t: Quantile(A, B, tau=t), rf"'tau' parameter of Quantile must .* Got {t!r}")
        for t in (np.nan, np.inf, "half")
    ),
    *(
        (
            lambda t=t: Huber(A, B, delta=t),
            rf"'delta' parameter of Huber must be a positive number. Got {t!r}",
        )
        for t in POSITIVE
    ),
    *(
        (
            lambda t=t: KernelSVMDual(Q, LABELS, lam=t),
            rf"'lam' parameter of KernelSVMDual must be a positive number. Got {t!r}",
        )
        for t in POSITIVE
    ),
    (
        lambda: KernelSVMDual(Q, [1, 0, 1], 1.0),
        r"b\[1\] is 0.0. KernelSVMDual needs labels -1 and \+1, such as np.where\(y == 1, 1, -1\)",
    ),
    (lambda: KernelSVMDual(Q, [1, -1], 1.0), r"\bb must have shape \(3,\), .* Got shape \(2,\)"),
    (lambda: KernelSVMDual(Q, [1, -1, np.nan], 1.0), r"\bb contains nan at index 2"),
    (
        lambda: KernelSVMDual(put(Q, (1, 1), np.nan), LABELS, 1.0),
        r"\bK contains nan at index \(1, 1\)",
    ),
    (lambda: KernelSVMDual(np.ones(3), LABELS, 1.0), r"\bK must be a matrix"),
    (
        lambda: KernelSVMDual(put(Q, (0, 1), 1.0), LABELS, 1.0),
        r"matrix of KernelSVMDual must be symmetric",
    ),
    (
        lambda: Quadratic(np.ones((2, 3)), [1, 1]),
        r"The matrix of Quadratic must be square. Got shape \(2, 3\)",
    ),
    (
        lambda: Quadratic(sparse.csr_array(np.ones((2, 3))), [1, 1]),
        r"The matrix of Quadratic must be square",
    ),
    (
        lambda: Quadratic(put(Q, (0, 1), 1.0), LABELS),
        r"The matrix of Quadratic must be symmetric. Use \(Q \+ Q.T\) / 2",
    ),
    (
        lambda: Quadratic(sparse.csr_array(put(Q, (0, 1), 1.0)), LABELS),
        r"The matrix of Quadratic must be symmetric",
    ),
    (
        lambda: Quadratic(sparse.csc_array(put(Q, (0, 1), 1.0)), LABELS),
        r"The matrix of Quadratic must be symmetric",
    ),
    (
        lambda: Quadratic(put(Q, (1, 1), -1.0), LABELS),
        r"The matrix of Quadratic has a negative diagonal entry: .* not convex",
    ),
    (
        lambda: Quadratic(sparse.csr_array(put(Q, (1, 1), -1.0)), LABELS),
        r"Quadratic has a negative diagonal entry",
    ),
    (
        lambda: Quadratic(put(put(Q, (0, 1), 5.0), (1, 0), 5.0), LABELS),
        r"Quadratic has a negative eigenvalue \(-3.5\): f is not",
    ),
    (
        lambda: KernelSVMDual(np.eye(900) - 0.01, np.ones(900), 1.0),
        r"KernelSVMDual has a negative eigenvalue \(-8\): f is not",
    ),
    (
        lambda: Quadratic(
            sparse.eye_array(900) * 1.0 - sparse.csr_array(np.eye(900)[::-1] * 1.1), np.ones(900)
        ),
        "negative eigen",
    ),
    (lambda: Quadratic(put(Q, (2, 1), np.inf), LABELS), r"Q contains inf at index \(2, 1\)"),
    (
        lambda: Quadratic(sparse.csr_array(put(Q, (2, 1), np.nan)), LABELS),
        r"Q.*contains nan at index",
    ),
    (lambda: Quadratic(np.ones((0, 0)), []), r"Q is empty: it has shape \(0, 0\)"),
    (lambda: Quadratic(Q + 1j, LABELS), r"Q must be real.*complex128"),
    (lambda: Quadratic(Q, [1.0, 2.0]), r"c must have shape \(3,\), .* Got shape \(2,\)"),
    (lambda: Quadratic(Q, [1.0, 2.0, np.nan]), r"c contains nan at index 2"),
    (
        lambda: Squared(A.astype(np.float32), [0.0, 1e300, 0.0, 0.0]),
        r"\bb\b.*1e\+300.*float32|\bb contains inf at index 1",
    ),
    (
        lambda: Squared(A, B).value_and_grad(np.zeros(4)),
        r"x must have 3 coordinates. Got shape \(4,\)",
    ),
    (
        lambda: Squared(A, B, intercept=True).value_and_grad(np.zeros(3)),
        r"x must have 4 coordinates \(features and intercept\)",
    ),
    (
        lambda: Squared(A, B).value_and_grad(np.zeros((3, 1, 1))),
        r"x must have 3 coordinates. Got shape \(3, 1, 1\)",
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
def test_parameters_and_places(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize("bad", [None, 3.0, dict], ids=repr)
def test_what_is_no_loss(bad):
    with pytest.raises(
        TypeError, match=r"'loss' must be a loss, or a function x -> \(value, gradient\)"
    ):
        minimize(bad, [1.0])


class Mine:
    def value_and_grad(self, x):
        return 0.0, x


@looped(
    ("kind", "call"),
    [
        (LAD, "LAD(...)"),
        (Huber, "Huber(...)"),
        (Quadratic, "Quadratic(...)"),
        (KernelSVMDual, "KernelSVMDual(...)"),
        (Mine, "Mine(...)"),
    ],
)
def test_a_class_instead_of_a_loss(kind, call):
    with pytest.raises(
        TypeError, match=re.escape(f"'loss' is the class {kind.__name__}. Did you mean {call}?")
    ):
        minimize(kind, [1.0])


FUNCTIONS = [
    (lambda x: 1.0, TypeError, r"must return a pair \(value, gradient\). Got float"),
    (lambda x: (1.0, x, x), TypeError, r"must return a pair \(value, gradient\). Got tuple"),
    (lambda x: (1.0, x[:1]), ValueError, r"gradient of the shape of x, \(2,\). Got \(1,\)"),
    (
        lambda x: (np.ones(3), x),
        ValueError,
        r"one value, or one per trajectory \(column of x\). Got shape \(3,\)",
    ),
]


@looped(("function", "error", "sentence"), FUNCTIONS)
def test_what_a_function_must_return(function, error, sentence):
    with pytest.raises(error, match=sentence):
        minimize(function, [1.0, 2.0], eta=0.1)


def test_almost_symmetric_is_symmetric():
    """Rounding, as in a kernel matrix computed in single precision, is no reason to refuse."""
    K = np.random.default_rng(0).standard_normal((30, 5)).astype(np.float32)
    K = K @ K.T
    K[0, 1] = np.nextafter(K[0, 1], np.inf)
    assert (
        Quadratic(K, np.ones(30)).dtype
        == KernelSVMDual(sparse.csr_array(K), np.ones(30), 1.0).dtype
        == np.float32
    )
