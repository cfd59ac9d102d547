"""Data of all kinds: broken sparse matrices, operators, masked arrays, data frames, labels."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from adagrad_diff import KernelSVMDual, Logistic, Multinomial, Quadratic, Squared, minimize
from looping import looped
from loss_zoo import LINEAR, same

A = np.arange(12.0).reshape(4, 3) - 5.5
B = np.array([1.0, -1.0, 1.0, -1.0])


def compressed(kind, **change):
    """A compressed matrix with some of its arrays exchanged behind SciPy's back."""
    M = kind(A)
    for name, value in change.items():
        setattr(M, name, value(getattr(M, name).copy()))
    return M


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


WRONG = {  # beyond `invalid_sparse.DAMAGE`
    "index just too large": {"indices": put(0, 4)},  # of 3 columns, or 4 rows
    "int64 index too large": {"indices": lambda i: put(1, 2**40)(i.astype(np.int64))},
    "negative pointer": {"indptr": put(1, -5)},
    "first pointer": {"indptr": put(0, 1)},
    "pointers too many": {"indptr": lambda p: np.append(p, p[-1])},
    "indices that are not integers": {"indices": lambda i: i + 0.5},
    "two-dimensional indices": {"indices": lambda i: i.reshape(2, -1)},
    "two-dimensional data": {"data": lambda d: d.reshape(2, -1)},
    "pointers that go back, no entries": {
        "indptr": lambda p: np.where(p == p[1], 3, 0),
        "indices": lambda i: i[:0],
        "data": lambda d: d[:0],
    },
}


@looped("kind", [sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("case", WRONG)
def test_broken_compressed_matrices(kind, case):
    message = rf"^A is not a valid {kind.__name__[:3].upper()} matrix: .*\.$"
    with pytest.raises(ValueError, match=message):
        Squared(compressed(kind, **WRONG[case]), B)


def test_broken_matrices_of_other_formats():
    coo = sparse.coo_array(A)
    coo.data = coo.data[:2]
    with pytest.raises(ValueError, match=r"^A is not a valid COO matrix: "):
        Squared(coo, B)
    kernel = compressed(lambda _: sparse.csr_array(np.eye(4)), indices=put(0, 9))
    with pytest.raises(ValueError, match=r"^K is not a valid CSR matrix"):
        KernelSVMDual(kernel, B, lam=1.0)


@looped("dtype", [np.int32, np.int64, np.uint8, ">i4", np.uint64])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
def test_indices_of_every_integer_dtype(kind, dtype):
    M = compressed(kind, indices=lambda i: i.astype(dtype), indptr=lambda p: p.astype(dtype))
    before = [array.copy() for array in (M.indptr, M.indices, M.data)]
    arrays = M.indptr, M.indices, M.data
    for x in (np.ones(3), np.ones((3, 2))):
        same(Squared(M, B).value_and_grad(x), Squared(A, B).value_and_grad(x))
    for own, array, copy in zip((M.indptr, M.indices, M.data), arrays, before, strict=True):
        assert own is array  # SciPy's own check would replace them
        assert own.dtype == copy.dtype
        np.testing.assert_array_equal(own, copy)


def test_room_behind_the_last_entry_is_not_looked_at():
    M = compressed(
        sparse.csr_array,
        indices=lambda i: np.append(i, [99, -7]),
        data=lambda d: np.append(d, [np.nan, np.inf]),
    )
    same(Squared(M, B).value_and_grad(np.ones(3)), Squared(A, B).value_and_grad(np.ones(3)))
    assert M.data.size == 14


@looped("form", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
def test_every_format(form):
    same(
        Squared(sparse.csr_array(A).asformat(form), B).value_and_grad(np.ones(3)),
        Squared(A, B).value_and_grad(np.ones(3)),
    )


def operator(**products):
    return LinearOperator(
        A.shape,
        **{"matvec": lambda v: A @ v, "rmatvec": lambda v: A.T @ v, "dtype": float, **products},
    )


FORWARD, BACKWARD = (rf"{what} of the LinearOperator A must" for what in ("A @ x", r"A\.T @ r"))
OPERATORS = [
    ({"matvec": lambda v: np.ones(3)}, rf"{FORWARD} have shape \(4,\)"),
    ({"rmatvec": lambda v: np.ones(4)}, rf"{BACKWARD} have shape \(3,\)"),
    ({"matmat": lambda v: np.ones((4, 1))}, rf"{FORWARD} have shape \(4, 2\)"),
    ({"rmatmat": lambda v: np.ones((2, 3))}, rf"{BACKWARD} have shape \(3, 2\)"),
    ({"matvec": lambda v: (A + 1j) @ v}, rf"{FORWARD} be real"),
    ({"rmatvec": None}, r"the LinearOperator A has no rmatvec"),
]


@looped(("products", "sentence"), OPERATORS)
def test_operators_with_wrong_products(products, sentence):
    loss = Squared(operator(**products), B)
    x = np.ones((3, 2)) if any("matmat" in name for name in products) else np.ones(3)
    with pytest.raises(ValueError, match=sentence):
        loss.value_and_grad(x)


def test_errors_of_an_operator_are_not_hidden():
    def matvec(v):
        raise RuntimeError("the file server is down")

    with pytest.raises(RuntimeError, match="file server"):
        Squared(operator(matvec=matvec), B).value_and_grad(np.ones(3))


def masked(array, place):
    array = np.ma.masked_array(array, mask=np.zeros(np.shape(array), bool))
    array[place] = np.ma.masked
    return array


def test_masked_arrays_are_refused_if_something_is_masked():
    sentence = r"has masked entries: remove or impute"
    with pytest.raises(ValueError, match=rf"^A {sentence}"):
        Squared(masked(A, (1, 2)), B)
    with pytest.raises(ValueError, match=rf"^b {sentence}"):
        Squared(A, masked(B, 2))
    with pytest.raises(ValueError, match=rf"^sample_weight {sentence}"):
        Squared(A, B, sample_weight=masked(np.ones(4), 0))
    with pytest.raises(ValueError, match=rf"^x0 {sentence}"):
        minimize(Squared(A, B), masked(np.ones(3), 0), eta=0.1)
    with pytest.raises(ValueError, match=r"^b has masked entries"):
        Squared(A, [1.0, -1.0, np.ma.masked, 0.0])
    with pytest.raises(ValueError, match="blocks' has masked entries"):
        minimize(Squared(A, B), eta=0.1, blocks=masked([0, 1, 1], 0))


def test_masked_arrays_without_a_mask_are_arrays():
    x = np.ones(3)
    plain, kept = (
        Squared(wrap(A), wrap(B), sample_weight=wrap(np.ones(4)))
        for wrap in (np.array, np.ma.masked_array)
    )
    same(kept.value_and_grad(x), plain.value_and_grad(x))
    assert np.array_equal(
        minimize(kept, np.ma.masked_array(x), eta=0.1, max_iter=3).x,
        minimize(plain, x, eta=0.1, max_iter=3).x,
    )


@pytest.mark.peer
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_name_the_column(library):
    frames = pytest.importorskip(library)
    columns = {"age": [30.0, 40.0, 50.0, 60.0], "member": [True, False, True, True]}
    same(
        Squared(frames.DataFrame(columns), B).value_and_grad(np.ones(2)),
        Squared(np.transpose(list(columns.values())), B).value_and_grad(np.ones(2)),
    )
    with pytest.raises(
        ValueError,
        match=r"^Column 'city' of A holds 'Rome' in row 0: encode text as numbers",
    ):
        Squared(frames.DataFrame({**columns, "city": ["Rome", "Oslo", "Rome", "Bonn"]}), B)
    with pytest.raises(
        ValueError, match=r"^Column 'age' of A contains nan in row 2: remove or impute"
    ):
        Squared(frames.DataFrame({**columns, "age": [30.0, 40.0, float("nan"), 60.0]}), B)
    with pytest.raises(ValueError, match=r"^Column 'age' of A .* in row 1: .*impute missing"):
        Squared(frames.DataFrame({**columns, "age": [30, None, 50, 60]}), B)


@pytest.mark.peer
def test_columns_of_pandas():
    pd = pytest.importorskip("pandas")
    whole = pd.DataFrame({"n": pd.array([1, 2, None, 4], "Int64"), "m": [1.0] * 4})
    with pytest.raises(ValueError, match=r"^Column 'n' of A holds <NA> in row 2: .*impute missing"):
        Squared(whole, B)
    with pytest.raises(ValueError, match=r"^Column 'when' of A holds Timestamp"):
        Squared(pd.DataFrame({"m": [1.0] * 4, "when": pd.date_range("2020", periods=4)}), B)
    with pytest.raises(ValueError, match=r"^Column 'kind' of A holds 'a' in row 0"):
        Squared(pd.DataFrame({"kind": pd.Categorical(list("abab"))}), B)
    with pytest.raises(ValueError, match=r"^Column 7 of A holds 'a'"):
        Squared(pd.DataFrame({7: list("abab")}), B)
    frame = pd.DataFrame(A, columns=list("xyx"))  # a name twice
    same(
        Squared(frame, pd.Series(B)).value_and_grad(np.ones(3)),
        Squared(A, B).value_and_grad(np.ones(3)),
    )


def test_text_among_objects():
    text = r"must be real numbers. Got text, such as"
    with pytest.raises(ValueError, match=rf"^A {text} '1.5': encode"):
        Squared(np.array([["1.5", 2.0]] * 4, dtype=object), B)
    with pytest.raises(ValueError, match=rf"^b {text} 'x': encode"):
        Squared(A, np.array([1.0, "x", 0.0, 0.0], dtype=object))
    with pytest.raises(ValueError, match=r"^A must be real numbers. Got"):
        Squared(np.array([[10**400, 2.0]] * 4, dtype=object), B)


BINARY = [k for k in LINEAR if issubclass(k, Logistic.__mro__[1])]
TEXT = r"^b must be real numbers. Got text, such as '\w+': encode it as numbers"
REMEDY = r"needs labels -1 and \+1, such as np.where\(y == {}, 1, -1\).*adagrad_diff.sklearn"
LABELS = {
    "words": (["no", "yes", "yes", "no"], TEXT),
    "objects": (np.array(["no", "yes", "no", "no"], object), TEXT),
    "truth values": ([True, False, True, True], rf"^b\[1\] is 0\.0.*{REMEDY.format(1)}"),
    "one number": ([5, 5, 5, 5], rf"^b\[0\] is 5\.0.*{REMEDY.format(5)}"),
    "three numbers": ([0, 1, 2.5, 1], rf"^b\[0\] is 0\.0.*{REMEDY.format(2.5)}"),
}


@looped("kind", [*BINARY, KernelSVMDual])
@pytest.mark.parametrize("case", LABELS)
def test_labels_come_with_the_remedy(kind, case):
    labels, sentence = LABELS[case]
    arguments = (np.eye(4), labels, 1.0) if kind is KernelSVMDual else (A, labels)
    with pytest.raises(ValueError, match=sentence):
        kind(*arguments)
    y = np.array([3, 5, 5, 3])
    assert Logistic(A, np.where(y == 5, 1, -1)).b.tolist() == [-1.0, 1.0, 1.0, -1.0]


@looped(
    ("labels", "sentence"),
    [
        (["a", "b", "a", "c"], TEXT),
        ([0, 1, 1, 1e19], r"b\[3\] is 1e\+19. .*np\.unique\(y, return_inverse=True\)\[1\]"),
        ([0, 1, 1, 2**63 - 1], r"b\[3\] is 9\.2"),
    ],
)
def test_classes_come_with_the_remedy(labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        Multinomial(A, labels)


def test_counts_of_classes():
    assert Multinomial(A, [0, 1, 1, 50], classes=51).shape == (3, 51)
    assert Multinomial(A, [0, 1, 1, 900]).classes == 901
    with pytest.raises(ValueError, match="'classes' parameter of Multinomial must be an integer"):
        Multinomial(A, [0, 1, 1, 0], classes=10**12)


def test_targets_are_contiguous_and_writeable():
    """Kernels are compiled for one kind of array, and such an array is not copied."""
    data, frozen = np.ones((4, 2)), np.ones(4)
    frozen.flags.writeable = False
    for b in (data[:, 0], data[::-1, 1], frozen, np.ones(4)):
        targets = [loss(A, b).b for loss in (Squared, Logistic)]
        for own in (*targets, Multinomial(A, b.astype(int)).b, Quadratic(np.eye(4), b).c):
            assert own.flags.c_contiguous
            assert own.flags.writeable
    b = np.ones(4)
    assert np.shares_memory(Squared(A, b).b, b)


@pytest.mark.parametrize(
    "loss", [Squared(A, B), Squared(A.astype(np.float32), B), Multinomial(A, [0, 1, 2, 0])]
)
def test_x_in_every_form(loss):
    x = np.arange(1.0, 1.0 + np.prod(loss.shape)).reshape(loss.shape)
    frozen, expected = x.copy(), loss.value_and_grad(x)
    frozen.flags.writeable = False
    forms = [x.tolist(), np.asfortranarray(x), x[::-1].copy()[::-1], frozen]
    for form in forms + [x.astype(dtype) for dtype in (">f4", int, object)]:
        same(loss.value_and_grad(form), expected)


@looped(
    ("bad", "sentence"),
    [
        (["a", "b", "c"], "x must be real numbers. Got text"),
        (np.array(["a", 1, 2], object), "x must be real numbers. Got text"),
        ([1j, 0, 0], "x must be real numbers. Got dtype complex128"),
        ([[1.0], [2.0, 3.0]], "x must be real numbers. Got list"),
        (np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]), "x has masked entries"),
        (None, "x must be real numbers. Got NoneType"),
        (1.0, r"x must have 3 coordinates. Got shape \(\)"),
        (np.ones((3, 0)), r"x is empty: it has shape \(3, 0\)"),
    ],
)
def test_x_that_is_none(bad, sentence):
    for loss in (Squared(A, B), Quadratic(np.eye(3), np.ones(3))):
        with pytest.raises(ValueError, match=f"^{sentence}"):
            loss.value_and_grad(bad)


def test_x_too_large_for_the_precision_of_the_loss():
    loss = Squared(A.astype(np.float32), B)
    with pytest.raises(ValueError, match=r"^x\[1\] is 1e\+300, too large for float32"):
        loss.value_and_grad([0.0, 1e300, 0.0])
    with pytest.raises(ValueError, match=r"^x\[2, 0\] is 1e\+300, too large for float32"):
        loss.value_and_grad([[0.0], [0.0], [1e300]])
    assert loss.value_and_grad([np.inf, 0.0, 0.0])[0] == np.inf  # what is infinite is so on purpose


def test_a_ridge_whose_inverse_overflows():
    with pytest.raises(
        ValueError,
        match=r"^The 'lam' parameter of KernelSVMDual is too small: 1 / 1e-320 is infinite\.$",
    ):
        KernelSVMDual(np.eye(2), [1, -1], lam=1e-320)
