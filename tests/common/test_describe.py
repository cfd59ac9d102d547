"""A description tells one problem from another: whatever a result depends on is in it, and nothing else."""

import hashlib
import inspect
import json
import tracemalloc
from pathlib import Path

import numpy as np
from scipy import sparse

import adagrad_diff as ad
from adagrad_diff import L1, AdaGrad, AdaGradDiff, Box, Logistic, Ridge, minimize
from adagrad_diff.common.describe import describe, difference
from adagrad_diff.losses import LinearModel
from complete import assert_complete
from describing import CHANGED, CLASSES, LABELS, REAL, A, other, text
from looping import looped

COUNTS = np.arange(12.0) % 3
K = A @ A.T
GROUPS = [0, 0, 1, 1]
OPTIONS = {"sample_weight": np.arange(1.0, 13.0), "l2": 0.5, "intercept": True}
SYMMETRIC = K + np.eye(12)
# What to make of every class: arguments, and for each of them another value.
EVERY = {
    "LAD": ((A, REAL), {"A": CHANGED, "b": other(REAL), **OPTIONS}),
    "Squared": ((A, REAL), {"A": CHANGED, "b": other(REAL), **OPTIONS}),
    "Huber": ((A, REAL), {"A": CHANGED, "b": other(REAL), "delta": 0.5, **OPTIONS}),
    "Quantile": ((A, REAL), {"A": CHANGED, "b": other(REAL), "tau": 0.25, **OPTIONS}),
    "Poisson": ((A, COUNTS), {"A": CHANGED, "b": other(COUNTS), **OPTIONS}),
    "Hinge": ((A, LABELS), {"A": CHANGED, "b": -LABELS, **OPTIONS}),
    "SquaredHinge": ((A, LABELS), {"A": CHANGED, "b": -LABELS, **OPTIONS}),
    "Logistic": ((A, LABELS), {"A": CHANGED, "b": -LABELS, **OPTIONS}),
    "Multinomial": ((A, CLASSES), {"A": CHANGED, "b": CLASSES[::-1], "classes": 5, **OPTIONS}),
    "Minibatch": (
        (Logistic(A, LABELS), 2),
        {"loss": Logistic(CHANGED, LABELS), "size": 3, "seed": 1, "reduce": "storm"},
    ),
    "Quadratic": ((K, REAL), {"Q": SYMMETRIC, "c": other(REAL)}),
    "KernelSVMDual": ((K, LABELS, 0.5), {"K": SYMMETRIC, "b": -LABELS, "lam": 0.25}),
    "Affine": ((A[:2], [1.0, 2.0]), {"A": other(A[:2]), "b": [1.0, 2.5]}),
    "Box": ((-1.0, 1.0), {"lower": -np.inf, "upper": [1.0, 1.0, 1.0, 2.0]}),
    "BoxHyperplane": ((-1.0, 1.0, [1.0] * 4, 0.0), {"lower": -2.0, "upper": np.inf, "a": [1.0, 1.0, 1.0, 2.0], "beta": 0.5}),
    "ElasticNet": ((0.1, 0.2), {"l1": 0.15, "l2": 0.25}),
    "FusedLasso": ((0.1, 0.2), {"l1": 0.15, "tv": 0.25}),
    "GroupL2": ((0.1, GROUPS), {"lam": 0.2, "groups": [0, 1, 1, 0], "weights": [1.0, 2.0]}),
    "HalfSpace": (([1.0] * 4, 1.0), {"a": [1.0, 1.0, 1.0, 2.0], "beta": 2.0}),
    "HuberPenalty": ((0.1, 0.2), {"lam": 0.15, "delta": 0.25}),
    "Hyperplane": (([1.0] * 4, 1.0), {"a": [1.0, 1.0, 1.0, 2.0], "beta": 2.0}),
    "L1": ((0.1,), {"lam": [0.1, 0.1, 0.1, 0.2]}),
    "L1Ball": ((1.0,), {"radius": 2.0}),
    "L2": ((0.1,), {"lam": 0.2}),
    "L2Ball": ((1.0,), {"radius": 2.0}),
    "LInf": ((0.1,), {"lam": 0.2}),
    "LInfBall": ((1.0,), {"radius": 2.0}),
    "Monotone": ((), {"increasing": False}),
    "NonNegative": ((), {}),
    "Nuclear": ((0.1, (2, 2)), {"lam": 0.2, "shape": (4, 1)}),
    "NumericalProx": ((L1(0.1),), {"penalty": L1(0.2), "accuracy": 1e-6, "max_iter": 77}),
    "PSD": ((2,), {"n": 3}),
    "Precomposed": ((L1(0.1), 2.0), {"penalty": L1(0.2), "diagonal": [2.0, 2.0, 2.0, 3.0]}),
    "Ridge": ((0.1,), {"lam": 0.2}),
    "SLOPE": (([4.0, 3.0, 2.0, 1.0],), {"lams": [4.0, 3.0, 2.0, 0.5]}),
    "Scaled": ((L1(0.1), 2.0), {"penalty": L1(0.2), "factor": 3.0}),
    "Separable": (([(slice(0, 2), L1(0.1))],), {"parts": [(slice(0, 3), L1(0.1))]}),
    "Simplex": ((1.0,), {"radius": 2.0}),
    "SparseGroupL2": ((0.1, 0.2, GROUPS), {"l1": 0.15, "l2": 0.25, "groups": [0, 1, 1, 0]}),
    "TotalVariation1D": ((0.1,), {"lam": 0.2}),
    "Translated": ((L1(0.1), 2.0), {"penalty": L1(0.2), "shift": [2.0, 2.0, 2.0, 3.0]}),
    "Unpenalised": ((L1(0.1), [0]), {"penalty": L1(0.2), "free": [1]}),
    "Zero": ((), {}),
    "AdaGrad": ((0.1,), {"eta": 0.2, "eps": 1e-7, "blocks": "all", "scale": [1.0, 1.0, 1.0, 2.0]}),
    "AdaGradDiff": ((0.1,), {"eta": [0.1, 0.2], "eps": 1e-7, "blocks": [0, 0, 1, 1], "scale": [1.0, 1.0, 1.0, 2.0]}),
    "AdaGradNorm": ((0.1,), {"eta": 0.2, "b0": 0.1}),
    "AdaDelta": ((), {"eta": 0.2, "eps": 1e-7, "blocks": "all", "rho": 0.5}),
    "AdaPG": ((), {}),
    "Adam": ((), {"eta": 0.2, "eps": 1e-7, "blocks": "all", "beta1": 0.5, "beta2": 0.5}),
    "AdamDiff": ((0.1,), {"eta": 0.2, "eps": 1e-7, "blocks": "all", "beta1": 0.5, "beta2": 0.5, "max_move": 2.0}),
    "Constant": ((0.1,), {"eta": 0.2}),
    "DAdaptation": ((), {"eps": 1e-7, "d0": 1e-3, "start": 1e-3}),
    "DelayedAdaGrad": ((0.1,), {"eta": 0.2, "blocks": "all", "beta": 2.0, "power": 0.6}),
    "DoG": ((), {"eps": 1e-7, "blocks": None, "first": 1e-3, "gamma": 4.0}),
    "DualAveraging": ((0.1,), {"eta": 0.2, "eps": 1e-7, "blocks": "all"}),
    "FISTA": ((), {}),
    "FreeAdaGradDiff": ((), {"eps": 1e-7, "blocks": "all", "first": 1e-3, "gamma": 4.0}),
    "KATE": ((), {"eta": 0.2, "eps": 1e-7, "blocks": "all", "delta": 0.5}),
    "Prodigy": ((), {"eps": 1e-7, "beta1": 0.5, "beta2": 0.5, "d0": 1e-3}),
    "RMSDiff": ((0.1,), {"eta": 0.2, "eps": 1e-7, "blocks": "all", "beta": 0.5, "max_move": 2.0}),
    "RMSProp": ((), {"eta": 0.2, "eps": 1e-7, "blocks": "all", "scale": [1.0, 1.0, 1.0, 2.0], "beta": 0.5}),
}
ABSTRACT = {"Loss", "LinearModel", "Penalty", "Rule"}


def make(name, **changes):
    kind, (arguments, _) = getattr(ad, name), EVERY[name]
    bound = inspect.signature(kind).bind(*arguments)
    options = dict(bound.arguments) | changes
    return kind(**{k: v for k, v in options.items() if k != "options"})


def test_every_loss_penalty_and_rule_is_looked_at():
    names = {*ad.losses.__all__, *ad.penalties.__all__, *ad.rules.__all__} - ABSTRACT
    assert_complete(names, EVERY, "EVERY in tests/common/test_describe.py")
    for name, (_, changes) in EVERY.items():
        wanted = set(inspect.signature(getattr(ad, name)).parameters)
        if issubclass(getattr(ad, name), LinearModel):
            wanted = (wanted - {"options"}) | set(inspect.signature(LinearModel).parameters)
        assert_complete(wanted, changes, f"EVERY[{name!r}] in tests/common/test_describe.py, with another value of it")


def test_every_class_and_parameter_counts():
    assert len({text(make(name)) for name in EVERY}) == len(EVERY)
    for name, (_, changes) in EVERY.items():
        one = describe(make(name))
        assert json.loads(json.dumps(one, allow_nan=False)) == one == describe(make(name)), name
        for parameter, value in changes.items():
            another = describe(make(name, **{parameter: value}))
            assert json.loads(json.dumps(another, allow_nan=False)) == another != one, (name, parameter)
            assert difference(one, another), (name, parameter)


@looped("name", EVERY)
def test_use_changes_nothing(name):
    """What an object remembers for itself is not what it is."""
    thing = make(name)
    before = text(thing)
    if isinstance(thing, ad.Penalty):
        thing.prox(np.arange(4.0), 0.5)
        thing.value(np.arange(4.0))
    elif isinstance(thing, ad.Loss):
        minimize(thing, eta=0.1, max_iter=3)
    else:
        minimize(ad.LAD(A, REAL), rule=thing, max_iter=3)
    assert text(thing) == before


MATRICES = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda array: array.astype(np.float32),
    "strided": lambda array: np.repeat(array, 2, axis=0)[::2],
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
}


@looped("kind", MATRICES)
def test_one_entry_of_the_data(kind):
    convert = MATRICES[kind]
    loss = Logistic(convert(A), LABELS)
    one = text(loss)
    for x in (np.zeros(4), np.zeros((4, 3))):
        loss.value_and_grad(x)
    assert text(loss) == one
    assert text(Logistic(convert(A.copy()), LABELS)) == one
    assert text(Logistic(convert(CHANGED), LABELS)) != one
    moved = A.copy()
    moved[0], moved[1] = A[1], A[0]
    assert text(Logistic(convert(moved), LABELS)) != one


@looped("build", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.dia_array, sparse.lil_array])
def test_sparse_matrices_of_a_user(build):
    """The place of an entry counts, not only its value; what SciPy remembers about the order does not."""
    place = np.zeros((3, 4))
    place[0, 1] = 1.0
    one = build(place)
    before = text(one)
    assert text(build(place.copy())) == before
    assert text(build(place[::-1].copy())) != before
    assert text(build(2 * place)) != before
    assert one.tocsr().has_canonical_format
    assert text(one) == before


def test_arrays():
    small, large = np.arange(4.0), np.arange(100.0)
    for array in (small, large):
        same = [array.copy(), np.repeat(array, 2)[::2]]
        assert {text(item) for item in same} == {text(array)}
        different = [other(array), array.astype(np.float32), array.reshape(2, -1), array[::-1], array[:-1]]
        assert len({text(item) for item in [array, *different]}) == 1 + len(different)
    assert text(large.reshape(10, 10)) == text(np.asfortranarray(large.reshape(10, 10))) != text(large.reshape(10, 10).T)
    assert describe(small) == [0.0, 1.0, 2.0, 3.0]
    assert describe(large) == {"dtype": "float64", "shape": [100], "sha256": hashlib.sha256(large.tobytes()).hexdigest()}
    assert text(np.empty((0, 3))) != text(np.empty((0, 4)))


@looped("dtype", ["?", "i1", "u4", "f2", "f4", "f8", "g", "c16", "U3", "S3", "M8[s]", "m8[D]"])
@looped("size", [3, 20])
def test_any_dtype(dtype, size):
    one = np.arange(size).astype(dtype)
    another = one.copy()
    another[-1] = one[0]
    assert text(one) == text(one.copy()) != text(another)
    assert text(one[1]) == text(one[1].copy()) != text(another[-1])


def test_a_large_array_is_not_copied():
    array = np.asfortranarray(np.random.default_rng(0).standard_normal((1000, 200)))
    for view in (array, array[::2], array.T):
        tracemalloc.start()
        try:
            describe(view)
            assert tracemalloc.get_traced_memory()[1] < 0.2 * array.nbytes
        finally:
            tracemalloc.stop()


def test_values_that_json_does_not_have():
    values = [float("nan"), float("inf"), float("-inf"), np.float32("inf"), np.array([np.nan, 1.0]), np.array([np.nan, 2.0])]
    for value in values:
        one = describe(value)
        assert difference(one, json.loads(text(value))) is None  # NaN is the same as NaN
    assert len({text(value) for value in values[:3]}) == 3
    assert text(values[-1]) != text(values[-2])
    pairs = [({1, 2}, {1, 3}), (range(3), range(4)), (slice(1), slice(2)), (Path("a"), Path("b")), (b"a", b"b"), (1j, 2j)]
    distinct = [frozenset("a"), *(value for pair in pairs for value in pair)]
    assert len({text(value) for value in distinct}) == len(distinct)
    one, other = {0, 8}, {8, 0}
    assert list(one) != list(other)  # as the order of strings differs between processes
    assert text(one) == text(other)


def test_where_descriptions_differ():
    one = {"a": 1, "b": {"c": [1, [2, 3]], "d": None}}
    for change, where in (
        ({"a": 2}, "a"),
        ({"b": {"c": [1, [2, 4]], "d": None}}, "b.c[1][1]"),
        ({"b": {"c": [1, [2]], "d": None}}, "b.c[1]"),
        ({"b": {"c": [1, [2, 3]]}}, "b.d"),
        ({"b": {"c": [1, [2, 3]], "d": None, "e": 0}}, "b.e"),
        ({"b": {"c": {"1": 1}, "d": None}}, "b.c"),
        ({"b": 5}, "b"),
        ({"z": 5}, "z"),
    ):
        assert difference(one, {**one, **change}) == where
        assert difference({**one, **change}, one) == where
    assert difference(one, json.loads(json.dumps(one))) is None


def test_where_problems_differ():
    def where(**changes):
        problem = {"loss": Logistic(A, LABELS), "penalty": Box(-1.0, 1.0), "rule": AdaGradDiff(0.1)}
        return difference(describe(problem), describe(problem | changes))

    assert where(loss=Logistic(CHANGED, LABELS)) == "loss.A.array.sha256"
    assert where(loss=Logistic(A, LABELS, l2=0.5)) == "loss.l2"
    assert where(penalty=Box(-1.0, 2.0)) == "penalty.upper"
    assert where(penalty=Ridge(1.0)) == "penalty.class"
    assert where(rule=AdaGradDiff(0.1, eps=1e-6)) == "rule.eps"
    assert where(rule=AdaGrad(0.1)) == "rule.class"
    assert where(rule=AdaGradDiff(0.1)) is None
