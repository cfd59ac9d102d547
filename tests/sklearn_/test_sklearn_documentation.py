"""Documentation of estimators: each parameter and attribute, and links in HTML representations."""

import re

import numpy as np
import pytest

pytest.importorskip("sklearn")
from adagrad_diff import sklearn as ours
from adagrad_diff.sklearn import _docs
from sklearn_data import NAMES, data, make

pytestmark = pytest.mark.peer


def documented(kind, section):
    """Return the names that a section of a docstring describes."""
    body = re.split(r"\n\w+\n-+\n", kind.__doc__.split(f"\n{section}\n---")[1].split("\n", 1)[1])[0]
    lines = [line.partition(" : ")[0] for line in body.splitlines() if re.match(r"\w", line)]
    return {name for line in lines for name in line.split(", ")}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", [*NAMES, "PathCV"])
def test_each_parameter_and_attribute_is_documented(name):
    kind = getattr(ours, name)
    if name == "PathCV":
        model = kind(ours.Lasso(max_iter=5), cv=2, n_alphas=2).fit(*data("Lasso"))
    else:
        model = make(name, max_iter=5).fit(*data(name))
    assert documented(kind, "Parameters") == set(model.get_params(deep=False))
    public = {key for key in vars(model) if key.endswith("_") and not key.startswith("_")}
    assert public <= documented(kind, "Attributes")
    assert "<" not in re.sub(
        r"[<>]=? ?\d|<= |>= |<a_j|>>>|<x", "", kind.__doc__.split("Examples")[0]
    )


def test_html_links_to_the_documentation(monkeypatch):
    assert ours.Lasso()._get_doc_link() == ""  # the publisher has set no address
    address = {"Project-URL": ["Homepage, https://a.org", "Documentation, https://docs.a.org/"]}

    class Metadata:
        def get_all(self, key):
            return address[key]

    monkeypatch.setattr(_docs.metadata, "metadata", lambda name: Metadata())
    link = "https://docs.a.org/reference/generated/adagrad_diff.sklearn.Lasso.html"
    assert ours.Lasso()._get_doc_link() == link
    assert link in ours.Lasso()._repr_html_()


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars"])
def test_dates_are_an_error(library):
    days = np.arange(80).astype("datetime64[D]").astype("datetime64[ns]")
    if library == "numpy":
        X = np.column_stack([days, days])
    else:
        X = pytest.importorskip(library).DataFrame({"one": days, "two": days})
    with pytest.raises(ValueError, match=r"of X holds dates or times .* convert it to numbers"):
        ours.Lasso().fit(X, np.arange(80.0))


def test_lazy_frames_must_be_collected():
    frame = pytest.importorskip("polars").LazyFrame({"a": [1.0, 2.0, 3.0]})
    model = ours.Lasso()
    with pytest.raises(TypeError, match=r"X is a polars LazyFrame.* pass X.collect\(\)"):
        model.fit(frame, [1.0, 2.0, 4.0])
    model.fit(frame.collect(), [1.0, 2.0, 4.0])
    with pytest.raises(TypeError, match="LazyFrame"):
        model.predict(frame)


@pytest.mark.parametrize("name", ["LinearRegressor", "LogisticRegression"])
def test_dependent_columns_are_named_if_a_fit_does_not_converge(name):
    pandas = pytest.importorskip("pandas")
    X, y = data(name, 200)
    X[:, 4] = X[:, 1] - X[:, 2] + 1e-9 * X[:, 4]
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = getattr(ours, name)(penalty=None, max_iter=20)
    with pytest.warns(match=r"Columns 'b', 'c', 'e' of X are nearly linearly dependent"):
        model.fit(frame, y)
