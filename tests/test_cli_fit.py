"""`adagrad-diff fit`: a file, a model, a proof."""

import json
from pathlib import Path

import numpy as np
import pytest

import mixed_table

pytest.importorskip("click")
pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.peer
REAL = Path(__file__).parents[2] / "shared" / "data"


def scores(part, made):
    """The linear function of a model, in plain loops over the columns of the file."""
    total = part["intercept"]
    for term in part["terms"]:
        values = np.asarray(made[term["column"]])
        if "category" in term:
            values = np.array([str(value) == term["category"] for value in values])
        elif values.dtype.kind == "U":  # True and False
            values = values == "True"
        total = total + term["coefficient"] * values
    return total


def mean_loss(model, made, z):
    if model["loss"] == "logistic":
        return np.log1p(np.exp(-np.where(made["ill"] == "yes", 1, -1) * z[0])).mean()
    if model["loss"] == "multinomial":
        top = np.log(np.exp(z).sum(axis=0))
        return (top - z[made["grade"], np.arange(len(top))]).mean()
    residual = made["score"] - z[0]
    return {
        "squared": residual**2 / 2,
        "lad": np.abs(residual),
        "quantile:0.9": np.maximum(0.9 * residual, -0.1 * residual),
    }[model["loss"]].mean()


def fitted(run, path, *options):
    """The model of a fit that succeeds."""
    result = run("fit", str(path), *options, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


CASES = {
    "two classes": ("ill", ["--no-standardize"], "logistic"),
    "standardized": ("ill", ["--alpha", "0.02"], "logistic"),
    "classes": ("grade", [], "multinomial"),
    "numbers": ("score", ["--no-standardize"], "squared"),
    "lad": ("score", ["--loss", "lad"], "lad"),
    "a quantile": ("score", ["--loss", "quantile:0.9", "--no-intercept"], "quantile:0.9"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_model_is_what_it_says(run, case):
    """Its objective follows from its coefficients and the columns of the file."""
    name, options, loss = CASES[case]
    model = fitted(run, "mixed.csv", *mixed_table.target(name), *options)
    made = mixed_table.columns()
    terms = [term for part in model["models"] for term in part["terms"]]
    size = sum(abs(term["standardized"]) for term in terms)
    z = np.array([scores(part, made) for part in model["models"]])
    objective = mean_loss(model, made, z) + model["alpha"] * size
    assert objective == pytest.approx(model["objective"], rel=1e-9)
    assert (model["loss"], model["ended"], model["converged"]) == (loss, "certified", True)
    assert 0 <= model["relative_gap"] <= 1e-6
    assert {term["column"] for term in terms} == set(made) - {"score", "ill", "grade", "constant"}
    assert len(model["models"]) == (4 if loss == "multinomial" else 1)
    plain = "--no-standardize" in options
    assert plain == all(term["standardized"] == term["coefficient"] for term in terms)


def trips(rows=200):
    """A table with missing values, categories and dates, and a target that depends on them."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({f"noise {j}": rng.standard_normal(rows) for j in range(6)})
    frame["income"] = rng.lognormal(10, 1, rows).round(2)
    frame["city"] = rng.choice(["Rome", "Oslo", "Bern", "Wien"], rows)
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, rows), "D")
    days = (frame["day"] - pd.Timestamp(0)).dt.days
    frame["price"] = 2 * np.log(frame["income"]) + (frame["city"] == "Rome") + 0.01 * days
    frame["price"] += 0.3 * rng.standard_normal(rows)
    for column in ("income", "city", "day", "noise 0"):
        frame.loc[rng.random(rows) < 0.1, column] = None
    return frame


@pytest.mark.parametrize("loss", ["squared", "lad"])
def test_units_do_not_matter(run, tmp_path, loss):
    """Other units of a column, another notation of dates: same predictions, same columns.

    They are those of a pipeline of scikit-learn, where it has this loss.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import Lasso
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = trips()
    other = frame.assign(income=frame["income"] / 1e6, day=frame["day"].dt.strftime("%Y/%m/%d"))
    frame.to_csv(tmp_path / "one.csv", index=False)
    other.to_csv(tmp_path / "other.csv", index=False, sep=";", decimal=",")
    frame.to_parquet(tmp_path / "third.parquet")
    found = []
    for name, unit in (("one.csv", 1.0), ("other.csv", 1e-6), ("third.parquet", 1.0)):
        options = ["--target", "price", "--impute", "--loss", loss, "--alpha", "0.05"]
        model = fitted(run, name, *options, "--tol", "1e-10")
        days = (frame["day"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
        complete = frame.assign(income=frame["income"] * unit, day=days)
        complete["city"] = complete["city"].fillna("(missing)")
        complete = complete.fillna(complete.median(numeric_only=True))
        terms = model["models"][0]["terms"]
        used = {(t["column"], t.get("category")) for t in terms if t["coefficient"]}
        found.append((scores(model["models"][0], complete), used))
    for predictions, used in found[1:]:
        np.testing.assert_allclose(predictions, found[0][0], rtol=1e-6)
        assert used == found[0][1]
    columns = {column for column, _ in found[0][1]}
    assert {"income", "city", "day"} <= columns < set(frame) - {"price"}
    if loss == "squared":
        numbers = complete.columns.drop(["price", "city"]).tolist()
        columns = make_column_transformer(
            (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
            (OneHotEncoder(), ["city"]),
        )
        peer = make_pipeline(columns, Lasso(0.05, tol=1e-12, max_iter=100_000))
        peer.fit(complete, frame["price"])
        np.testing.assert_allclose(found[0][0], peer.predict(complete), rtol=1e-6)


def test_without_a_penalty_coefficients_are_unique(run, tmp_path):
    """They are those of least squares, or a note says that they are not unique."""
    frame = trips().dropna()[["city", "noise 1", "price"]]
    frame.assign(again=frame["noise 1"]).to_csv(tmp_path / "t.csv", index=False)
    X = pd.get_dummies(frame[["city", "noise 1"]], drop_first=True).astype(float)
    wanted = np.linalg.lstsq(X.assign(one=1.0), frame["price"], rcond=None)[0]
    for options in (["--penalty", "none"], ["--alpha", "0"]):
        model = fitted(run, "t.csv", "--target", "price", "--drop", "again", *options)
        part = model["models"][0]
        slopes = {"_".join([*t.values()][:-2]): t["coefficient"] for t in part["terms"]}
        np.testing.assert_allclose([slopes[name] for name in X], wanted[:-1], rtol=1e-8)
        assert part["intercept"] == pytest.approx(wanted[-1])
        assert len(slopes) == len(X.columns)
        assert "not unique" not in str(model["notes"])
        twice = fitted(run, "t.csv", "--target", "price", *options)
        assert "their coefficients are not unique" in str(twice["notes"])


def test_text_and_file(run, tmp_path):
    target = mixed_table.target("score")
    options = ["--out", "model.json", "--alpha", "1e-3", "--loss", "lad"]
    result = run("fit", "mixed.csv", *target, *options)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("mixed.csv: lad loss, l1 penalty, alpha 0.001\nobjective    0.")
    assert "in the units of the file" in result.stdout
    for words in ("certified, 0 iterations,", "city", "Rome", "(intercept)", mixed_table.ODD):
        assert words in result.stdout
    assert "\x1b" not in result.output
    for words in (
        "holds numbers from",
        "The penalty sees columns of numbers with standard deviation",
    ):
        assert words in result.stderr
    model = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert model["classes"] == []
    again = run("fit", "mixed.csv", *target, "--out", "model.json", "--json")
    saved = (tmp_path / "model.json").read_text(encoding="utf-8")
    assert again.stdout == saved
    for name in ("mine.json", "."):
        (tmp_path / "mine.json").write_text('{"my": "work"}')
        refused = run("fit", "mixed.csv", *target, "--out", name)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "which exists and is not a model" in refused.stderr
    assert (tmp_path / "mine.json").read_text() == '{"my": "work"}'


def test_iterations_are_those_of_minimize(run, monkeypatch):
    """The count, and the limit."""
    import adagrad_diff.cli.fit as command

    results = []

    def recorded(*args, minimize=command.minimize, **options):
        results.append(minimize(*args, **options))
        return results[-1]

    monkeypatch.setattr(command, "minimize", recorded)
    for limit in ("7", "300"):
        limits = ["--loss", "lad", "--penalty", "group", "--max-iter", limit, "--json"]
        result = run("fit", "mixed.csv", *mixed_table.target("score"), *limits)
        assert result.exit_code == 1
        assert json.loads(result.stdout)["iterations"] == results[-1].nit == int(limit)
        assert json.loads(result.stdout)["ended"] == "max_iter"


def test_choices(run):
    """Every loss and penalty by its name."""
    from adagrad_diff import losses
    from adagrad_diff.cli.problem import LOSSES
    from adagrad_diff.losses import LinearModel

    kinds = {
        kind for name in losses.__all__ if issubclass(kind := getattr(losses, name), LinearModel)
    }
    assert set(LOSSES.values()) == kinds - {LinearModel}
    target = mixed_table.target("score")
    for penalty in ("l1", "l2", "elasticnet", "elasticnet:0.9", "group", "nonnegative", "none"):
        model = fitted(run, "mixed.csv", *target, "--penalty", penalty)
        terms = model["models"][0]["terms"]
        assert penalty != "nonnegative" or min(term["coefficient"] for term in terms) >= 0
    group = fitted(run, "mixed.csv", *target, "--penalty", "group", "--alpha", "0.15")
    terms = group["models"][0]["terms"]
    cities = [term["coefficient"] for term in terms if term["column"] == "city"]
    assert all(cities) or not any(cities)
    for loss, name in (
        ("hinge", "ill"),
        ("squared-hinge", "ill"),
        ("multinomial", "ill"),
        ("huber:0.5", "score"),
        ("absolute", "score"),
        ("poisson", "count"),
        ("hinge", "flag"),
    ):
        others = [w for o in ("score", "ill", "grade") if o != name for w in ("--drop", o)]
        fitted(run, "mixed.csv", "--target", name, *others, "--loss", loss)
    one = fitted(
        run, "mixed.csv", *mixed_table.target("grade"), "--loss", "hinge", "--positive", "2"
    )
    assert one["classes"] == ["not 2", "2"]
    assert one["models"][0]["of"] == "2"


NEGATIVE = ["--target", "x1", "--drop", "score", "--drop", "ill", "--drop", "grade"]
WRONG = {
    "one class": (["--target", "constant"], "is 7 in every row: there is nothing to learn"),
    "words for numbers": (
        ["--target", "city", "--loss", "lad"],
        "has classes, 'Bern', 'Oslo', 'Rome'",
    ),
    "numbers for words": (
        ["--target", "score", "--loss", "hinge"],
        "are no classes: for numbers, use",
    ),
    "two classes": (["--target", "grade", "--loss", "hinge"], "4 classes, '0', '1', '2', '3', but"),
    "no such class": (
        ["--target", "city", "--positive", "Pari"],
        "no class 'Pari'. Choose one of:",
    ),
    "a class of numbers": (
        ["--target", "grade", "--loss", "lad", "--positive", "2"],
        "is for numbers",
    ),
    "negative counts": ([*NEGATIVE, "--loss", "poisson"], "Poisson needs targets >= 0"),
    "quantile": (
        ["--target", "x1", "--loss", "quantile:1.5"],
        "'tau' parameter of Quantile must be",
    ),
    "a number": (
        ["--target", "x1", "--loss", "lad:1"],
        "'lad:1' has a number, but only 'quantile', ",
    ),
    "no number": (
        ["--target", "x1", "--loss", "huber:a"],
        "could not convert string to float: 'a'",
    ),
    "share": (["--target", "x1", "--penalty", "elasticnet:-2"], "of ElasticNet must be"),
    "alpha NaN": (["--target", "ill", "--alpha", "nan"], "must be a number >= 0. Got nan instead."),
    "no place": (
        ["--target", "ill", "--out", "mixed.csv/m.json"],
        "whose directory cannot be written",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_sentences(run, kind):
    arguments, sentence = WRONG[kind]
    result = run("fit", "mixed.csv", *arguments)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert sentence in result.stderr
    assert isinstance(result.exception, SystemExit)


def test_all_problems_in_one_message(run):
    result = run(
        *("fit", "mixed.csv", "--target", "skore", "--drop", "citty", "--loss", "logistik"),
        *("--penalty", "l0", "--alpha", "-1", "--out", "mixed.csv"),
    )
    assert (result.exit_code, result.stdout) == (2, "")
    problems = result.stderr.removeprefix("Error: ").splitlines()
    assert problems == [
        "--out names 'mixed.csv', which exists and is not a model: choose another name.",
        "The 'alpha' parameter of the penalty must be a number >= 0. Got -1.0 instead.",
        "There is no loss 'logistik'. Did you mean 'logistic'?",
        "There is no penalty 'l0'. Choose one of: 'l1', 'l2', 'elasticnet', 'group', "
        "'nonnegative', 'none'.",
        "There is no column 'skore'. Did you mean 'score'?",
        "There is no column 'citty'. Did you mean 'city'?",
    ]


def test_an_answer_without_proof(run, tmp_path):
    """An answer, a sentence, and an exit code that says so."""
    limits = [
        "--loss",
        "huber:0.1",
        "--penalty",
        "nonnegative",
        "--max-iter",
        "3",
        "--tol",
        "1e-16",
    ]
    result = run("fit", "mixed.csv", *mixed_table.target("score"), *limits)
    assert result.exit_code == 1
    assert "ended        max_iter, 3 iterations" in result.stdout
    assert (
        "not proven to be within --tol 1e-16 of the best: its iterations are used up. Try"
        in result.stderr
    )
    (tmp_path / "apart.csv").write_text("x,y\n1,a\n2,a\n3,b\n4,b\n")
    apart = run(
        "fit", "apart.csv", "--penalty", "none"
    )  # the objective may be as small as one likes
    assert apart.exit_code == 1, apart.output
    assert "there is no best one, as nothing limits the coefficients" in apart.stderr
    assert "nothing is proven" in apart.stdout


def test_a_data_set_that_is_not_here(run, monkeypatch):
    from adagrad_diff import datasets

    monkeypatch.setattr(datasets._registry, "BASE_URL", "https://127.0.0.1:9/")
    for name, sentence in (("heart_scale", "--data DIR"), ("nowhere.csv", "no file or data set")):
        result = run("fit", name)
        assert result.exit_code == 2
        assert sentence in result.stderr


def test_a_bug_is_no_input(run, monkeypatch):
    """Neither is an error of NumPy's in the middle of a fit."""
    import adagrad_diff.cli.fit as command

    def wrong(*args, **options):
        raise ValueError("operands could not be broadcast together")

    monkeypatch.setattr(command, "minimize", wrong)
    result = run("fit", "mixed.csv", *mixed_table.target("ill"))
    assert (result.exit_code, result.stdout) == (70, "")
    assert "Traceback" in result.stderr
    assert "Please report it" in result.stderr.splitlines()[-1]
