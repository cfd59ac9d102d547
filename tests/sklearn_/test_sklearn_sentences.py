"""What a new user gets wrong is answered by a sentence that names it: parameters, columns, targets, masks, weights."""

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from adagrad_diff import sklearn as door
from sklearn_data import NAMES, REGRESSORS, data, make

pytestmark = pytest.mark.peer
CLASSIFIERS = [name for name in NAMES if name not in REGRESSORS]
ONE_OF_EACH = ["Lasso", "LogisticRegression", "KernelSVC"]  # The others share the checks of these.


# ------------------------------------------------------------ parameters


WRONG = [
    ("fit_intercept", ["yes", 1, None, np.nan], "must be True or False"),
    ("warm_start", ["no", 0, None], "must be True or False"),
    ("verbose", ["x", -1, 0.5, None, np.nan], "must be an integer >= 0"),
    ("alpha", [np.nan, np.inf, -0.1, "0.1", np.array([0.1, 0.2]), 1j], "must be a number >= 0"),
    ("tol", [np.nan, None, -1e-3], "must be a number >= 0"),
    ("max_iter", [0, 1e3, "many", None], "must be an integer >= 1"),
]


@pytest.mark.parametrize("name", NAMES)
def test_parameters_of_all(name):
    X, y = data(name)
    for parameter, values, wanted in WRONG:
        for value in values:
            with pytest.raises(
                ValueError, match=rf"The '{parameter}' parameter of {name} {wanted}. Got .* instead"
            ):
                make(name).set_params(**{parameter: value}).fit(X, y)


CLASS_WEIGHTS = [
    (3, "The 'class_weight' parameter .* must be an instance of 'dict', .* Got 3 instead"),
    ("heavy", "The 'class_weight' parameter .* Got 'heavy' instead"),
    ({0: -1.0}, "The 'class_weight' parameter .* must hold numbers >= 0"),
    ({0: "a"}, "could not convert string to float: 'a'"),
    ({7: 2.0}, "are not in class_weight"),
]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_class_weights(name):
    X, y = data(name)
    for value, wanted in CLASS_WEIGHTS:
        with pytest.raises(ValueError, match=wanted):
            make(name, class_weight=value).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_class_weights_of_classes_that_are_not_there(name):
    """Where every class has a weight, others may have one, too: a fold of a search need not have all classes."""
    X, y = data(name)
    plain, more = (
        make(name, class_weight=w, max_iter=30).fit(X, y)
        for w in ({0: 2.0, 1: 1.0}, {0: 2.0, 1: 1.0, 2: 5.0})
    )
    np.testing.assert_array_equal(more.predict(X), plain.predict(X))
    default = make(name, class_weight={0: 2.0}, max_iter=30).fit(X, y)
    np.testing.assert_array_equal(default.predict(X), plain.predict(X))


# ------------------------------------------------------------ columns


def frame_of(library, X, **columns):
    frames = pytest.importorskip(library)
    names = [f"column {k}" for k in range(X.shape[1])]
    return frames.DataFrame({**dict(zip(names, X.T, strict=True)), **columns})


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_columns_of_text(name, library):
    X, y = data(name)
    frame = frame_of(library, X, city=["Rome", "Genoa"] * 40)
    sentence = "Column 'city' of X holds text \\('Rome'\\): encode it, for example with OneHotEncoder, or drop it"
    with pytest.raises(ValueError, match=sentence):
        make(name).fit(frame, y)
    model = make(name, tol=1e-2).fit(frame_of(library, X), y)
    with pytest.raises(ValueError, match="Column 'column 5' of X holds text"):
        model.predict(frame_of(library, X[:, :5], **{"column 5": ["a"] * 80}))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("missing", [np.nan, None, np.inf])
def test_columns_with_missing_numbers(library, missing):
    X, y = data("Lasso")
    frame = frame_of(library, X, age=[*np.arange(7.0), missing, *np.arange(72.0)])
    what = "infinity" if missing == np.inf else "NaN"
    with pytest.raises(
        ValueError,
        match=rf"Input X contains {what}: column 'age' of X, first in row 7. .*SimpleImputer",
    ):
        door.Lasso().fit(frame, y)
    array = np.column_stack([X, np.arange(80.0)])
    array[7, 6] = np.nan if missing is None else missing
    with pytest.raises(ValueError, match=rf"Input X contains {what}"):
        door.Lasso().fit(sparse.csr_array(array), y)
    for values in (array, array.tolist()):
        with pytest.raises(
            ValueError,
            match=rf"^Input X contains {what}: column 6 of X, first in row 7. .*SimpleImputer",
        ):
            door.Lasso().fit(values, y)


def test_categories():
    pandas = pytest.importorskip("pandas")
    X, y = data("Lasso")
    with pytest.raises(ValueError, match=r"Column 'kind' of X holds text \('b'\)"):
        door.Lasso().fit(frame_of("pandas", X, kind=pandas.Categorical(["b", "a"] * 40)), y)
    with pytest.raises(
        ValueError, match=r"Input X contains NaN: column 'count' of X, first in row 0"
    ):
        door.Lasso().fit(
            frame_of("pandas", X, count=pandas.array([None, *range(79)], dtype="Int64")), y
        )
    good = frame_of(
        "pandas", X, count=pandas.array(range(80), dtype="Int64"), flag=[True, False] * 40
    )
    assert door.Lasso(alpha=0.05).fit(good, y).n_features_in_ == 8


# ------------------------------------------------------------ targets


@pytest.mark.parametrize("kind", ["array", "objects", "list", "pandas", "polars"])
def test_words_for_a_regressor(kind):
    words = ["low", "high"] * 40
    if kind in ("pandas", "polars"):
        y = pytest.importorskip(kind).Series(words)
    else:
        y = {"array": np.array(words), "objects": np.array(words, dtype=object), "list": words}[
            kind
        ]
    for name in REGRESSORS:
        sentence = rf"y must hold numbers, because {name} .*low.* use a classifier such as LogisticRegression"
        with pytest.raises(ValueError, match=sentence):
            make(name).fit(data(name)[0], y)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_floats_for_a_classifier(name):
    X, _ = data(name)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        make(name).fit(X, np.arange(80) + 0.5)


LABELS = [
    (0, 1),
    (-1, 1),
    (1, 2),
    (0.0, 1.0),
    (False, True),
    ("no", "yes"),
    (np.int8(-3), np.int8(100)),
    (10**12, 7),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_of_any_kind(name):
    X, y = data(name)
    right = (make(name, tol=1e-2).fit(X, y).predict(X) == y).mean()
    for labels in LABELS:
        model = make(name, tol=1e-2).fit(X, np.array(labels)[y])
        assert set(model.classes_.tolist()) == set(labels), labels
        hits = model.predict(X) == np.array(labels)[y]
        assert hits.mean() == pytest.approx(right, abs=0.02), labels


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_words_and_numbers_together(name):
    X, _ = data(name)
    with pytest.raises(TypeError, match="uniformly strings or numbers"):
        make(name).fit(X, np.array(["a", 1] * 40, dtype=object))


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_targets_of_the_wrong_shape_or_without_a_value(name):
    X, y = data(name)
    wrong = [
        (None, "requires y to be passed"),
        (np.column_stack([y, y]), "1d array"),
        (y[:3], "inconsistent numbers of samples"),
    ]
    for value, what in ((np.nan, "NaN"), (np.inf, "infinity")):
        holed = np.where(np.arange(80) == 3, value, y)
        wrong += [
            (
                holed,
                f"^Input y contains {what}",
            )
        ]
    for values, sentence in wrong:
        with pytest.raises(ValueError, match=sentence):
            make(name).fit(X, values)


# ------------------------------------------------------------ masks


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_masks(name):
    X, y = data(name)
    hidden = np.ma.masked_array(X, np.abs(X) > 1)
    with pytest.raises(ValueError, match=r"X has masked entries: remove or impute"):
        make(name).fit(hidden, y)
    with pytest.raises(ValueError, match=r"y has masked entries: remove or impute"):
        make(name).fit(X, np.ma.masked_array(y, np.arange(80) == 3))
    with pytest.raises(ValueError, match=r"sample_weight has masked entries"):
        make(name).fit(X, y, sample_weight=np.ma.masked_array(np.ones(80), True))
    model = make(name, tol=1e-2).fit(
        np.ma.masked_array(X), np.ma.masked_array(y, False)
    )  # nothing is masked
    np.testing.assert_array_equal(model.predict(X), make(name, tol=1e-2).fit(X, y).predict(X))
    with pytest.raises(ValueError, match=r"X has masked entries"):
        model.predict(hidden)


# ------------------------------------------------------------ numbers that are too large


@pytest.mark.parametrize("name", ONE_OF_EACH)
@pytest.mark.parametrize(("dtype", "huge"), [(np.float64, 1e200), (np.float32, 1e30)])
def test_numbers_whose_squares_overflow(name, dtype, huge):
    X, y = data(name)
    sentence = rf"{{}} holds numbers as large as .*, whose squares overflow in {np.dtype(dtype).name}: scale"
    with pytest.raises(ValueError, match=sentence.format("X")):
        make(name).fit((huge * X).astype(dtype), y)
    with pytest.raises(ValueError, match=sentence.format("X")):
        make(name).fit(sparse.csr_array((huge * X).astype(dtype)), y)
    if name in REGRESSORS:
        with pytest.raises(ValueError, match=sentence.format("y")):
            make(name).fit(X.astype(dtype), huge * np.abs(y))


# ------------------------------------------------------------ weights and life cycle


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_weights(name):
    X, y = data(name)
    wrong = [
        (np.ones(3), r"sample_weight.*\(80,\)|shape"),
        (np.ones((80, 2)), "1D array"),
        (np.full(80, np.nan), "NaN"),
        (np.full(80, np.inf), "infinity"),
        (-np.ones(80), "[Nn]egative"),
        (np.zeros(80), "at least one non-zero number|at least 2 classes"),
        (["a"] * 80, "could not convert string to float"),
    ]
    for weight, sentence in wrong:
        with pytest.raises(ValueError, match=sentence):
            make(name).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_before_a_fit_and_with_other_features(name):
    X, y = data(name)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        make(name).predict(X)
    model = make(name, tol=1e-2).fit(X, y)
    with pytest.raises(ValueError, match=r"X has 5 features, but .* is expecting 6 features"):
        model.predict(X[:, :5])


@pytest.mark.parametrize("name", NAMES)
def test_parameters_set_after_a_fit(name):
    """They are for the next fit: predictions are those of the last one."""
    X, y = data(name)
    model = make(name, tol=1e-2).fit(X, y)
    before = model.predict(X)
    others = {
        "loss": "poisson" if name == "LinearRegressor" else "logistic",
        "kernel": "linear",
        "degree": 5,
        "gamma": 9.0,
    }
    model.set_params(
        alpha=7.0,
        fit_intercept=False,
        **{key: v for key, v in others.items() if key in model.get_params()},
    )
    np.testing.assert_array_equal(model.predict(X), before)
    assert clone(model).get_params()["alpha"] == 7.0
