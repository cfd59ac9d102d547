"""The paper's figures: the numbers behind them, what is on them, and their files."""

import functools
import math
import subprocess
import sys
from dataclasses import replace
from statistics import fmean, pstdev

import numpy as np
import pytest

from adagrad_diff.experiments.figures import save
from adagrad_diff.experiments.paper.figures import figure_columns, three_panels
from figure_parts import lines, words
from looping import looped
from studies import STAND_IN, by_formula, by_running, hinge

pytestmark = pytest.mark.peer
METHODS = {"AdaGradDiff": "AdaGrad-Diff", "AdaGrad": "AdaGrad"}


@functools.cache
def study(name):
    """To be looked at only."""
    if name == "run":
        return by_running("hinge", *hinge(), np.geomspace(1e-3, 10, 9), 30)
    return by_formula(diverges=0.3 if name == "diverging" else np.inf)


def statistics(values, absent):
    """Mean, standard deviation and minimum as they are defined, or their absence."""
    if all(map(math.isfinite, values)):
        return fmean(values), pstdev(values), min(values)
    return absent, math.nan, math.nan


def assert_numbers(row, gaps, steps):
    for name, values, absent in (("gap", gaps, math.inf), ("step", steps, math.nan)):
        for kind, value in zip(("mean", "std", "min"), statistics(values, absent), strict=True):
            if kind == "min" and not math.isfinite(value) and name == "gap":
                continue  # the smallest of those that have not diverged
            assert row[f"{name}_{kind}"] == pytest.approx(value, rel=1e-9, abs=1e-300, nan_ok=True)
    assert row["seeds"] == len(gaps)
    assert row["diverged"] == sum(not math.isfinite(gap) for gap in gaps)


def assert_is_curve(found, study, rule, eta):
    """Rows of a table against the trajectories of a study."""
    at = study.curves.sel(rule=rule).isel(eta=int(np.argmin(np.abs(study.curves.eta.values - eta))))
    assert [row["iteration"] for row in found] == list(range(study.n_iter + 1))
    assert_numbers(
        found[0], (at.objective_start.values - study.F_star).tolist(), [math.nan] * at.sizes["seed"]
    )
    for row, objective, step in zip(
        found[1:], at.objective.values.T, at.mean_step.values.T, strict=True
    ):
        assert row["eta"] == pytest.approx(eta)
        assert_numbers(row, (objective - study.F_star).tolist(), step.tolist())


# ---------------------------------------------------------------- the numbers


@looped("kind", ["run", "diverging"])
def test_the_numbers_are_those_of_the_runs(kind):
    one = study(kind)
    columns = figure_columns([one])[1].to_dict("records")
    panels = three_panels(one)[1].to_dict("records")
    assert {(row["problem"], row["data"]) for row in columns} == {("hinge", "synthetic (seed 0)")}
    for rule, method in METHODS.items():
        mine = [row for row in columns if row["method"] == method]
        grid = one.grid.sel(rule=rule).isel(iteration=-1)
        on_grid = [row for row in mine if row["panel"] == "robustness"]
        assert [row["eta"] for row in on_grid] == grid.eta.values.tolist()
        for k, row in enumerate(on_grid):
            assert row["iteration"] == one.n_iter
            gaps = (grid.objective.values[k] - one.F_star).tolist()
            assert_numbers(row, gaps, grid.mean_step.values[k].tolist())
        tuned = [row for row in mine if row["panel"] == "tuned"]
        assert_is_curve(tuned, one, rule, one.best_eta[rule])
        for factor, eta in zip(("0.1", "1", "10"), one.panel_etas, strict=True):
            panel = (f"{factor} x reference", method)
            rows = [row for row in panels if (row["panel"], row["method"]) == panel]
            assert_is_curve(rows, one, rule, eta)
    assert len(panels) == 6 * (one.n_iter + 1)
    if kind == "diverging":
        assert math.inf in {row["gap_mean"] for row in columns}


def test_long_curves_are_thinned_on_paper_only():
    long = by_formula(n_iter=2500, seeds=2)
    figure, frame = three_panels(long)
    assert len(frame) == 6 * 2501
    x, y = lines(figure.axes[0], "AdaGrad")[0].get_data()
    assert 300 < len(x) <= 600
    assert (x[0], x[-1]) == (0, 2500)
    assert np.diff(x).max() <= 2 * 2500 / 300
    assert (x[:20] == np.arange(20)).all()  # the steep beginning
    gaps = long.curve_gap.sel(rule="AdaGrad").sel(eta=long.panel_etas[0], method="nearest")
    np.testing.assert_allclose(y[1:], gaps.mean("seed").values[x[1:] - 1])


# ---------------------------------------------------------------- what is on them


def test_robustness_and_tuned_panels():
    one = study("plain")
    figure, _ = figure_columns([one])
    top, bottom = figure.axes
    assert (top.get_xscale(), top.get_yscale()) == ("log", "log")
    assert (bottom.get_xscale(), bottom.get_yscale()) == ("linear", "log")
    assert r"\eta" in top.get_xlabel()
    assert "F(x) - F_" in top.get_ylabel()
    assert bottom.get_xlabel() == "iteration"
    assert " ".join(top.get_title().split()).startswith(one.title)
    upright = {
        float(line.get_xdata()[0]) for line in top.get_lines() if len(set(line.get_xdata())) == 1
    }
    assert upright == {one.paper_eta, *one.best_eta.values()}
    for rule, method in METHODS.items():
        line, marks = lines(top, method)
        np.testing.assert_allclose(line.get_xdata(), one.grid.eta.values)
        np.testing.assert_allclose(line.get_ydata(), one.mean_gap.sel(rule=rule).values)
        assert marks == []
    low, high = top.get_ylim()
    assert low < float(one.mean_gap.min()) < float(one.mean_gap.max()) < high
    assert "60 iterations, 4 starts, 25 values" in words(figure)
    key = [text.get_text() for text in bottom.get_legend().get_texts()]
    assert key == [rf"$\eta = {eta:.3g}$" for eta in one.best_eta.values()]
    last = bottom.get_lines()[1].get_ydata()[-1]
    assert last == pytest.approx(float(one.mean_gap.sel(rule="AdaGrad").min()))


def test_stand_ins_say_so_on_the_figure():
    both = [by_formula("splice", **STAND_IN), by_formula("2moons", title="SVM dual on 2moons")]
    figure, _ = figure_columns(both)
    assert "stand-in" in figure.axes[0].get_title()
    assert "stand-in" not in figure.axes[1].get_title()
    assert "Generated data (stand-in for splice.t)" in words(figure)
    said = words(three_panels(both[0])[0])
    assert "Generated data" in said
    assert "Logistic regression on stand-in for splice.t" in said
    assert "stand-in" not in words(figure_columns(both[1:])[0])
    coy = by_formula("splice", **{**STAND_IN, "title": "Logistic regression"})
    assert "Logistic regression (stand-in)" in words(three_panels(coy)[0])


# ---------------------------------------------------------------- what can go wrong


def test_divergence_stays_visible():
    one = study("diverging")
    figure, _ = figure_columns([one])
    ax, etas = figure.axes[0], one.grid.eta.values
    for k, method in enumerate(METHODS.values()):
        line, (edge,) = lines(ax, method)
        assert np.isinf(line.get_ydata()[etas > 0.3]).all()
        np.testing.assert_allclose(edge.get_xdata(), [etas[etas > 0.3][0], etas[-1]])
        assert edge.get_transform() == ax.get_xaxis_transform()
        assert edge.get_ydata()[0] == pytest.approx(0.965 - 0.06 * k)  # one below the other
    gap, step = (three_panels(one)[0].axes[k] for k in (2, 5))
    for method in METHODS.values():
        assert lines(gap, method)[1][0].get_xdata().tolist() == [31, 60]  # it ended half-way
        assert np.isfinite(lines(step, method)[0].get_ydata()[:30]).all()


def test_one_diverged_seed_is_enough_and_far_gaps_do_not_flatten_the_rest():
    one = study("plain")
    objective = one.grid.objective.copy()
    objective[0, 3, 1, -1] = np.nan
    objective[1, -2:] = 1e25
    grid = replace(one.comparison, data=one.grid.assign(objective=objective))
    ax = figure_columns([replace(one, comparison=grid)])[0].axes[0]
    assert set(lines(ax, "AdaGrad-Diff")[1][0].get_xdata()) == {one.grid.eta.values[3]}
    assert lines(ax, "AdaGrad")[1][0].get_xdata().tolist() == one.grid.eta.values[-2:].tolist()
    assert ax.get_ylim()[1] < 1e6


def test_what_is_hardly_there():
    """Everything diverged at once, or there is one start, or one iteration."""
    nothing = by_formula(diverges=0.0)
    nothing = replace(
        nothing, curves=nothing.curves.assign(objective=nothing.curves.objective * np.nan)
    )
    for draw in (lambda: figure_columns([nothing]), lambda: three_panels(nothing)):
        assert lines(draw()[0].axes[0], "AdaGrad")[1]
    for seeds, n_iter in ((10, 20), (1, 1)):
        figure, _ = figure_columns([by_formula(seeds=seeds, n_iter=n_iter)])
        assert f"{seeds} start{'s' * (seeds > 1)}," in words(figure)


# ---------------------------------------------------------------- the files


def test_files_are_what_their_names_say(tmp_path):
    from PIL import Image

    diverging = by_formula("splice", diverges=0.3, **STAND_IN)
    paths = save(*figure_columns([study("plain")]), tmp_path, "fig1")
    paths += save(*three_panels(diverging), tmp_path, "fig3_splice")
    endings = ("pdf", "png", "csv")
    assert [path.name for path in paths] == [
        f"{stem}.{ending}" for stem in ("fig1", "fig3_splice") for ending in endings
    ]
    for path in paths:
        content = path.read_bytes()
        assert b"CreationDate" not in content
        if path.suffix == ".pdf":
            assert content.startswith(b"%PDF-")
            assert content.rstrip().endswith(b"%%EOF")
            assert b"/Type3" not in content  # fonts that journals refuse
        elif path.suffix == ".png":
            with Image.open(path) as image:
                width = 3.35 if path.stem == "fig1" else 6.75  # one problem alone takes one column
                assert image.size[0] == pytest.approx(300 * width, abs=1)
                assert image.info["dpi"] == pytest.approx((300, 300), rel=1e-3)
        else:
            assert len(content.splitlines()) >= 13
    assert list(tmp_path.rglob("*.partial")) == []
    with pytest.raises(OSError, match=r"fig1\.pdf cannot be written: .* What was there before"):
        save(*figure_columns([study("plain")]), tmp_path / "fig1.pdf", "fig1")


def test_settings_of_the_user_stay_and_have_no_effect():
    program = """
import sys
import matplotlib
matplotlib.rcParams.update({"axes.facecolor": "red", "font.size": 30.0})
settings = lambda: {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}
before = settings()
from studies import by_formula
from adagrad_diff.experiments.paper.figures import figure_columns
figure, _ = figure_columns([by_formula()])
assert figure.axes[0].get_facecolor() == (1, 1, 1, 1)
assert settings() == before
assert "matplotlib.pyplot" not in sys.modules
sys.modules["matplotlib.style"] = None
figure_columns([by_formula()])
"""
    here = str(next(path for path in sys.path if path.endswith("cases")))
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        f"import sys; sys.path[:0] = [{here!r}]{program}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (
        "This needs matplotlib, which is not installed: pip install 'adagrad-diff[paper]'"
        in (done.stderr.splitlines()[-1])
    )
