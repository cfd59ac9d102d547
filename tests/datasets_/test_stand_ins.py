"""The stand-ins: like the files they stand for, the same everywhere, and made quickly."""

import hashlib

import numpy as np
import pytest

from adagrad_diff import datasets
from adagrad_diff.datasets import _registry, stand_ins

NONZEROS = {"news20": 1_272_569, "a9a": 451_592, "mushrooms": 170_604}  # of the sparse files


@pytest.fixture(scope="module")
def stand_in():
    """Each generated once."""
    return {name: stand_ins.generate(name) for name in datasets.names() if name != "tiny"}


def test_stand_ins_have_the_shape_and_labels_of_the_files(stand_in):
    for name, (A, b) in stand_in.items():
        entry = _registry.REGISTRY[name]
        assert A.shape == entry.shape
        assert isinstance(A, np.ndarray) == entry.dense == (name not in NONZEROS)
        assert A.dtype == b.dtype == np.float64
        labels, numbers = np.unique(b, return_counts=True)
        assert set(labels) == set(entry.labels)
        np.testing.assert_allclose(numbers, [entry.labels[label] for label in labels], rtol=0.03)
        if not entry.dense:
            A.check_format()
            assert A.has_canonical_format
            assert A.indices.dtype == A.indptr.dtype == np.int32
            np.testing.assert_allclose(A.nnz, NONZEROS[name], rtol=0.05)
            assert np.diff(A.indptr).min() >= 1


def test_numbers_are_like_those_of_the_files(stand_in):
    for name in ("splice", "splice.t"):
        codes, numbers = np.unique(stand_in[name][0], return_counts=True)
        np.testing.assert_array_equal(codes, [1, 2, 3, 4])
        assert (np.abs(numbers / numbers.sum() - 0.25) < 0.04).all()
    for name, fields in (("a9a", stand_ins.CENSUS), ("mushrooms", stand_ins.MUSHROOMS)):
        A, _ = stand_in[name]
        assert sum(fields) == A.shape[1]
        assert set(A.data) == {1.0}
        of_field = np.add.reduceat(A.toarray(), np.cumsum([0, *fields[:-1]]), axis=1)
        assert of_field.max() == 1  # at most one category of each
        assert (of_field.mean(axis=0) > 0.9).all()
        assert (A.sum(axis=0) > 0).all()
    A, _ = stand_in["heart_scale"]
    assert (A.min(), A.max()) == (-1, 1)
    assert sorted(len(np.unique(column)) for column in A.T)[:3] == [2, 2, 2]


@pytest.mark.peer
def test_stand_ins_can_be_learned(stand_in):
    """On new rows, and not perfectly: the labels are noisy, as the real ones are."""
    from sklearn.linear_model import LogisticRegression

    for name, least in (
        ("splice.t", 0.8),
        ("news20", 0.8),
        ("mushrooms", 0.9),
        ("heart_scale", 0.72),
    ):
        A, b = stand_in[name]
        y = b <= 10 if name == "news20" else b == b[0]
        half = 4000 if name == "news20" else len(y) // 2
        dual = A.shape[1] > half  # twenty times as quick for many words, and the same model
        model = LogisticRegression(solver="liblinear", dual=dual, max_iter=10_000)
        score = model.fit(A[:half], y[:half]).score(A[half:], y[half:])
        assert max(least, max(y.mean(), 1 - y.mean()) + 0.05) < score < 0.99, name
    (A, b), (A_test, b_test) = stand_in["splice"], stand_in["splice.t"]  # which share their rule
    assert LogisticRegression().fit(A, b).score(A_test, b_test) > 0.8
    assert not np.array_equal(A, A_test[: len(A)])


def digest(A, b):
    parts = (A,) if isinstance(A, np.ndarray) else (A.data, A.indices, A.indptr)
    return hashlib.sha256(b"".join(part.tobytes() for part in (*parts, b))).hexdigest()


def test_stand_ins_are_the_same_everywhere(stand_in):
    """In every process, in any order and whatever the global state of NumPy is."""
    np.random.seed(7)  # noqa: NPY002
    for name in ("mushrooms", "heart_scale", "splice"):
        assert digest(*stand_ins.generate(name)) == digest(*stand_in[name])
    assert digest(*stand_in["splice"])[:16] == "87b6af1d99536e2c"
