"""A description tells one problem from another: whatever a result depends on is in it, and nothing else."""

import hashlib
import inspect
import json
import tracemalloc

import numpy as np
from scipy import sparse

import adagrad_diff as ad
from adagrad_diff import L1, Logistic, minimize
from adagrad_diff.losses import LinearModel
from adagrad_diff.solvers.fingerprint import describe, difference
from complete import assert_complete
from describing import CHANGED, CLASSES, LABELS, REAL, A, other, text
from looping import looped

COUNTS = np.arange(12.0) % 3
K = A @ A.T
GROUPS = [0, 0, 1, 1]
ONES = [1.0] * 4
EVERY = {  # what each class is made of, beside its default values
    **dict.fromkeys(["LAD", "Squared", "Huber", "Quantile"], (A, REAL)),
    **dict.fromkeys(["Hinge", "SquaredHinge", "Logistic"], (A, LABELS)),
    "Poisson": (A, COUNTS),
    "Multinomial": (A, CLASSES),
    "Minibatch": (Logistic(A, LABELS), 2),
    "Quadratic": (K, REAL),
    "KernelSVMDual": (K, LABELS, 0.5),
    "Affine": (A[:2], [1.0, 2.0]),
    "Box": (-1.0, 1.0),
    "BoxHyperplane": (-1.0, 1.0, ONES, 0.0),
    **dict.fromkeys(["ElasticNet", "FusedLasso", "HuberPenalty"], (0.1, 0.2)),
    "GroupL2": (0.1, GROUPS),
    "SparseGroupL2": (0.1, 0.2, GROUPS),
    **dict.fromkeys(["HalfSpace", "Hyperplane"], (ONES, 1.0)),
    **dict.fromkeys(
        [
            "L1",
            "L1Ball",
            "L2",
            "L2Ball",
            "LInf",
            "LInfBall",
            "Ridge",
            "Simplex",
            "TotalVariation1D",
        ],
        (0.1,),
    ),
    **dict.fromkeys(["Monotone", "NonNegative", "Zero"], ()),
    "Nuclear": (0.1, (2, 2)),
    "NumericalProx": (L1(0.1),),
    "PSD": (2,),
    **dict.fromkeys(["Precomposed", "Scaled", "Translated"], (L1(0.1), 2.0)),
    "SLOPE": ([4.0, 3.0, 2.0, 1.0],),
    "Separable": ([(slice(0, 2), L1(0.1))],),
    "Unpenalised": (L1(0.1), [0]),
    **dict.fromkeys(
        ["AdaDelta", "AdaPG", "Adam", "DAdaptation", "DoG", "FISTA", "FreeAdaGradDiff"], ()
    ),
    **dict.fromkeys(["ACFGM", "AGD", "KATE", "Prodigy", "RMSProp"], ()),
    **dict.fromkeys(["AdaGrad", "AdaGradDiff", "AdaGradNorm", "AdamDiff", "Constant"], (0.1,)),
    **dict.fromkeys(["UniAdaGrad", "UniXGrad"], (0.1,)),
    **dict.fromkeys(["AdaPEG", "DelayedAdaGrad", "DualAveraging", "RMSDiff"], (0.1,)),
}
OTHERS = {  # another value of a parameter, where it is not a number that can be reduced
    "Q": K + np.eye(12),
    "K": K + np.eye(12),
    "sample_weight": np.arange(1.0, 13.0),
    "classes": 5,
    "loss": Logistic(CHANGED, LABELS),
    "reduce": None,
    "penalty": L1(0.2),
    "groups": [0, 1, 1, 0],
    "weights": [1.0, 2.0],
    "shape": (4, 1),
    "lams": [4.0, 3.0, 2.0, 0.5],
    "parts": [(slice(0, 3), L1(0.1))],
    "free": [1],
    "scale": [1.0, 1.0, 1.0, 2.0],
    "power": 0.6,
}
ABSTRACT = {"Loss", "LinearModel", "Penalty", "Rule"}


def make(name, **changes):
    kind = getattr(ad, name)
    return kind(**{**inspect.signature(kind).bind(*EVERY[name]).arguments, **changes})


def parameters(name):
    """Return the parameters of a class with their values."""
    kind = getattr(ad, name)
    signature = inspect.signature(kind)
    found = {p.name: p.default for p in signature.parameters.values() if p.name != "options"}
    if issubclass(kind, LinearModel):
        found = {
            p.name: p.default for p in inspect.signature(LinearModel).parameters.values()
        } | found
    return found | dict(signature.bind(*EVERY[name]).arguments)


def another(name, parameter, value):
    """Return a value of the parameter that differs from the given one."""
    if parameter in OTHERS:
        return OTHERS[parameter]
    if parameter == "blocks":
        return "all" if value is None else None
    if isinstance(value, bool):
        return not value
    if (
        parameter == "b"
        and len(value) == 12
        and name not in ("Poisson", "LAD", "Squared", "Huber", "Quantile")
    ):
        return value[::-1]
    if isinstance(value, float):
        return value * 0.75 + (value == 0.0) * 0.5
    return value + 1 if isinstance(value, int) else other(value)


def test_every_class_and_parameter_counts():
    names = {*ad.losses.__all__, *ad.penalties.__all__, *ad.rules.__all__} - ABSTRACT
    assert_complete(names, EVERY, "EVERY in tests/solvers/test_describe.py")
    assert len({text(make(name)) for name in EVERY}) == len(EVERY)
    for name in EVERY:
        one = describe(make(name))
        assert json.loads(json.dumps(one, allow_nan=False)) == one == describe(make(name)), name
        for parameter, value in parameters(name).items():
            changed = describe(make(name, **{parameter: another(name, parameter, value)}))
            assert json.loads(json.dumps(changed, allow_nan=False)) == changed != one, (
                name,
                parameter,
            )
            assert difference(one, changed), (name, parameter)


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


@looped(
    "build",
    [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.dia_array, sparse.lil_array],
)
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
        different = [
            other(array),
            array.astype(np.float32),
            array.reshape(2, -1),
            array[::-1],
            array[:-1],
        ]
        assert len({text(item) for item in [array, *different]}) == 1 + len(different)
    assert (
        text(large.reshape(10, 10))
        == text(np.asfortranarray(large.reshape(10, 10)))
        != text(large.reshape(10, 10).T)
    )
    assert describe(small) == [0.0, 1.0, 2.0, 3.0]
    assert describe(large) == {
        "dtype": "float64",
        "shape": [100],
        "sha256": hashlib.sha256(large.tobytes()).hexdigest(),
    }
    assert text(np.empty((0, 3))) != text(np.empty((0, 4)))


def test_a_large_array_is_not_copied():
    array = np.asfortranarray(np.random.default_rng(0).standard_normal((1000, 200)))
    for view in (array, array[::2], array.T):
        tracemalloc.start()
        try:
            describe(view)
            assert tracemalloc.get_traced_memory()[1] < 0.2 * array.nbytes
        finally:
            tracemalloc.stop()


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
