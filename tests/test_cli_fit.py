"""`adagrad-diff fit`: a file, a model, a proof."""

import json
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import mixed_table

pytest.importorskip("click")
pytest.importorskip("pandas")
pytest.importorskip("sklearn")

pytestmark = pytest.mark.peer


def scores(part, made):
    """The linear function of a model, in plain loops over the columns of the file."""
    total = np.full(len(made["x0"]), part["intercept"])
    for term in part["terms"]:
        values = made[term["column"]]
        if "category" in term:
            total += term["coefficient"] * np.array([str(v) == term["category"] for v in values])
        elif values.dtype.kind == "U":  # True and False
            total += term["coefficient"] * (values == "True")
        else:
            total += term["coefficient"] * values
    return total


def size(model):
    """The L1 norm of the coefficients that the penalty sees."""
    return sum(
        abs(term.get("standardized", term["coefficient"]))
        for part in model["models"]
        for term in part["terms"]
    )


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


CASES = {
    "two classes": ("ill", [], "logistic"),
    "standardised": ("ill", ["--standardize", "--alpha", "0.02"], "logistic"),
    "classes": ("grade", ["--standardize"], "multinomial"),
    "numbers": ("score", [], "squared"),
    "lad": ("score", ["--loss", "lad", "--standardize"], "lad"),
    "a quantile": ("score", ["--loss", "quantile:0.9", "--no-intercept"], "quantile:0.9"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_model_is_what_it_says(run, case):
    """Its objective follows from its coefficients and the columns of the file, and is as good as it says."""
    name, options, loss = CASES[case]
    result = run("fit", "mixed.csv", *mixed_table.target(name), *options, "--json")
    assert result.exit_code == 0, result.output
    model, made = json.loads(result.stdout), mixed_table.columns()
    assert model["loss"] == loss
    z = np.array([scores(part, made) for part in model["models"]])
    assert mean_loss(model, made, z) + model["alpha"] * size(model) == pytest.approx(
        model["objective"], rel=1e-9
    )
    assert model["converged"]
    assert model["ended"] == "certified"
    assert 0 <= model["relative_gap"] <= 1e-6
    columns = {term["column"] for term in model["models"][0]["terms"]}
    assert columns == set(made) - {"score", "ill", "grade", "constant"}
    assert len(model["models"]) == (4 if loss == "multinomial" else 1)


def test_beside_scikit_learn(run):
    """The same model as scikit-learn's of the same problem, by its own road."""
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    result = run(
        "fit",
        "mixed.csv",
        *mixed_table.target("ill"),
        "--penalty",
        "l2",
        "--standardize",
        "--json",
        "--tol",
        "1e-9",
    )
    model, frame = (
        json.loads(result.stdout),
        pd.read_csv("mixed.csv").drop(columns=["score", "grade", "constant"]),
    )
    y, frame = frame.pop("ill"), frame.astype({"flag": float})
    numbers = frame.select_dtypes("number").astype(float)
    parts = [
        (numbers - numbers.mean()) / numbers.std(ddof=0),
        pd.get_dummies(frame["city"], prefix="city", prefix_sep="="),
    ]
    parts += [
        (frame["sex"] == "m").rename("sex=m"),
        (frame[mixed_table.ODD] == "<b>").rename("odd"),
    ]
    X = pd.concat(parts, axis=1).astype(float)
    peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=10000).fit(X, y == "yes")
    assert model["alpha"] == pytest.approx(1 / len(y))
    found = {
        term["column"] + (f"={term['category']}" if "category" in term else ""): term.get(
            "standardized", term["coefficient"]
        )
        for term in model["models"][0]["terms"]
    }
    for name, wanted in zip(X.columns, peer.coef_[0], strict=True):
        key = f"{mixed_table.ODD}=<b>" if name == "odd" else name
        assert found[key] == pytest.approx(wanted, abs=2e-6), name


def test_the_text(run, tmp_path):
    result = run(
        "fit",
        "mixed.csv",
        *mixed_table.target("score"),
        "--out",
        "model.json",
        "--alpha",
        "1e-3",
        "--loss",
        "lad",
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("mixed.csv: lad loss, l1 penalty, alpha 0.001\nobjective    0.")
    assert "certified after" in result.stdout
    assert f"{mixed_table.ODD}=<b>" in result.stdout
    assert "city=Rome" in result.stdout
    assert "\x1b" not in result.output
    assert "holds numbers from" in result.stderr
    model = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert model["classes"] == []
    again = run("fit", "mixed.csv", *mixed_table.target("score"), "--out", "model.json", "--json")
    assert json.loads(again.stdout) == json.loads(
        (tmp_path / "model.json").read_text(encoding="utf-8")
    )
    (tmp_path / "mine.json").write_text('{"my": "work"}')
    refused = run("fit", "mixed.csv", *mixed_table.target("score"), "--out", "mine.json")
    assert refused.exit_code == 2
    assert "is no model" in refused.stderr
    assert (tmp_path / "mine.json").read_text() == '{"my": "work"}'


def test_choices(run):
    """Every loss and penalty by its name."""
    from adagrad_diff import losses
    from adagrad_diff.cli.choices import LOSSES, PENALTIES
    from adagrad_diff.losses import LinearModel

    linear = {
        kind for name in losses.__all__ if issubclass(kind := getattr(losses, name), LinearModel)
    } - {LinearModel}
    assert set(LOSSES.values()) == linear
    for penalty in (*PENALTIES, "elasticnet:0.9", "Elastic_Net:1"):
        result = run(
            "fit",
            "mixed.csv",
            *mixed_table.target("score"),
            "--penalty",
            penalty,
            "--json",
            "--standardize",
        )
        assert result.exit_code == 0, (penalty, result.output)
        terms = json.loads(result.stdout)["models"][0]["terms"]
        assert penalty != "nonnegative" or min(term["coefficient"] for term in terms) >= 0
    group = run(
        "fit",
        "mixed.csv",
        *mixed_table.target("score"),
        "--penalty",
        "group",
        "--alpha",
        "0.15",
        "--json",
        "--standardize",
    )
    cities = [
        term["coefficient"]
        for term in json.loads(group.stdout)["models"][0]["terms"]
        if term["column"] == "city"
    ]
    assert all(cities) or not any(cities)
    for loss, name in (
        ("hinge", "ill"),
        ("squared-hinge", "ill"),
        ("huber:0.5", "score"),
        ("poisson", "count"),
        ("hinge", "flag"),
    ):
        others = [
            word
            for other in ("score", "ill", "grade")
            if other != name
            for word in ("--drop", other)
        ]
        result = run(
            "fit", "mixed.csv", "--target", name, *others, "--loss", loss, "--standardize", "--json"
        )
        assert result.exit_code == 0, (loss, result.output)
    one = run(
        "fit",
        "mixed.csv",
        *mixed_table.target("grade"),
        "--loss",
        "hinge",
        "--positive",
        "2",
        "--json",
    )
    assert json.loads(one.stdout)["classes"] == ["not 2", "2"]


WRONG = {
    "no such file": (
        ["nowhere.csv", "--target", "y"],
        "There is no file 'nowhere.csv', and no data set of that name",
    ),
    "a directory": ([".", "--target", "y"], "is a directory: name a file"),
    "no target": (
        ["mixed.csv"],
        "Say which column of 'mixed.csv' is to be predicted, with --target",
    ),
    "another target": (
        ["mixed.csv", "--target", "skore"],
        "has no column 'skore', which --target names. Did you mean 'score'?",
    ),
    "one class": (
        ["mixed.csv", "--target", "constant"],
        "has the same value in every row, '7': there is nothing to learn",
    ),
    "words for numbers": (
        ["mixed.csv", "--target", "city", "--loss", "lad"],
        "holds words, 'Bern', 'Oslo', 'Rome', but the loss lad",
    ),
    "numbers for words": (
        ["mixed.csv", "--target", "score", "--loss", "hinge"],
        "but the loss hinge is for classes: use squared",
    ),
    "two classes": (
        ["mixed.csv", "--target", "grade", "--loss", "hinge"],
        "has 4 classes, '0', '1', '2', '3', but the loss hinge",
    ),
    "no such class": (
        ["mixed.csv", "--target", "city", "--positive", "Paris"],
        "has no class 'Paris', which --positive names",
    ),
    "no such loss": (
        ["mixed.csv", "--target", "ill", "--loss", "cubic"],
        "There is no loss 'cubic'. The losses are: ",
    ),
    "quantile": (
        ["mixed.csv", "--target", "x1", "--loss", "quantile:1.5"],
        "needs a number above 0 and below 1",
    ),
    "number": (["mixed.csv", "--target", "x1", "--loss", "lad:1"], "The loss lad has no number"),
    "no such penalty": (
        ["mixed.csv", "--target", "ill", "--penalty", "l0"],
        "There is no penalty 'l0'. The penalties are: l1, ",
    ),
    "alpha": (
        ["mixed.csv", "--target", "ill", "--alpha", "-1"],
        "must be a number >= 0. Got -1.0 instead.",
    ),
    "alpha NaN": (
        ["mixed.csv", "--target", "ill", "--alpha", "nan"],
        "must be a number >= 0. Got nan instead.",
    ),
    "negative counts": (
        ["mixed.csv", "--target", "x1", "--loss", "poisson"],
        "but the loss poisson is for counts",
    ),
    "no place": (
        ["mixed.csv", *mixed_table.target("ill"), "--out", "no/such/m.json"],
        "cannot be written to 'no/such/m.json'",
    ),
    "out of a directory": (
        ["mixed.csv", *mixed_table.target("ill"), "--out", "."],
        "is there already and is no model",
    ),
    "no such directory": (["a9a", "--data", "no"], "--data"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_sentences(run, kind):
    arguments, sentence = WRONG[kind]
    result = run("fit", *arguments)
    assert result.exit_code == 2, result.output
    assert sentence in result.stderr
    assert result.stdout == ""
    assert isinstance(result.exception, SystemExit)


def test_one_iteration_is_said_as_one(run, tmp_path):
    (tmp_path / "line.csv").write_text("x,y\n1,1\n2,2.5\n3,3\n4,4.5\n5,5\n")
    assert (
        "certified after 1 iteration, "
        in run("fit", "line.csv", "--target", "y", "--loss", "lad").stdout
    )


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
        "1e-12",
    ]
    result = run("fit", "mixed.csv", *mixed_table.target("score"), *limits)
    assert result.exit_code == 1
    assert "nothing is proven" in result.stdout
    assert re.search(
        r"ended        max_iter after \d+ iterations", result.stdout
    )  # and rounds of the finish
    assert (
        "The model is not proven to be within --tol 1e-12 of the best: its iterations are used up. Try"
        in result.stderr
    )
    (tmp_path / "apart.csv").write_text("x,y\n1,a\n2,a\n3,b\n4,b\n")
    apart = run(
        "fit", "apart.csv", "--target", "y", "--penalty", "none"
    )  # the objective may be as small as one likes
    assert apart.exit_code == 1, apart.output
    assert "there is no best one, as nothing limits the coefficients" in apart.stderr


def test_a_data_set_that_is_not_here(run, monkeypatch):
    from adagrad_diff import datasets

    monkeypatch.setattr(datasets._registry, "BASE_URL", "http://127.0.0.1:9/")
    result = run("fit", "heart_scale")
    assert result.exit_code == 2
    assert "--data DIR" in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.usefixtures("default_handler")
def test_ctrl_c_from_outside(run, tmp_path):
    """While it computes, after the first message: 130 and a sentence, no traceback."""
    command = [
        sys.executable,
        "-m",
        "adagrad_diff",
        "fit",
        "mixed.csv",
        *mixed_table.target("score"),
        "--loss",
        "lad",
        "--tol",
        "0",
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    if process.returncode != 130:  # it was faster
        assert process.returncode in (0, 1), err
    else:
        assert (out, err.strip()) == ("", "Interrupted. The same command begins again.")


def test_a_proof_is_of_this_problem(run):
    """The real a9a, if it is here: its optimum with alpha 0.01, known from elsewhere."""
    from pathlib import Path

    real = Path(__file__).parents[2] / "shared" / "data" / "a9a"
    if not real.exists():
        pytest.skip("the LIBSVM files are not here")
    found = [
        json.loads(run("fit", str(real), *options, "--alpha", "0.01", "--json").stdout)
        for options in ((), ("--tol", "1e-3"))
    ]
    low = found[1]["objective"] - found[1]["gap"]
    assert low <= found[0]["objective"] <= found[1]["objective"] * (1 + 1e-9)
    assert found[0]["relative_gap"] <= 1e-6


def test_a_bug_is_no_input(run, monkeypatch):
    """Neither is an error of NumPy's in the middle of a fit."""
    from adagrad_diff.sklearn import LinearClassifier

    def wrong(*args, **options):
        raise ValueError("operands could not be broadcast together")

    monkeypatch.setattr(LinearClassifier, "fit", wrong)
    result = run("fit", "mixed.csv", *mixed_table.target("ill"))
    assert (result.exit_code, result.stdout) == (70, "")
    assert "Traceback" in result.stderr
    assert "Please report it" in result.stderr.splitlines()[-1]
