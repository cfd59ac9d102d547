"""The paper's figures: the numbers behind them, and what is on them, looked at before they are drawn."""

import functools
import math
from dataclasses import replace
from statistics import fmean, pstdev

import numpy as np
import pytest

from adagrad_diff.paper import figures
from figure_parts import lines, rows, words
from studies import STAND_IN, by_formula, by_running, hinge

pytestmark = [pytest.mark.peer, pytest.mark.usefixtures("unsaved")]

METHODS = ("AdaGrad-Diff", "AdaGrad")


def close(cell, value):
    got = math.nan if cell == "" else float(cell)
    return got == pytest.approx(value, rel=1e-9, abs=1e-300, nan_ok=True)


def statistics(values, absent):
    """Mean, standard deviation and minimum as they are defined, or their absence."""
    if all(map(math.isfinite, values)):
        return fmean(values), pstdev(values), min(values)
    return absent, math.nan, math.nan


def assert_numbers(row, gaps, steps):
    for name, values, absent in (("gap", gaps, math.inf), ("step", steps, math.nan)):
        for kind, value in zip(("mean", "std", "min"), statistics(values, absent), strict=True):
            assert close(row[f"{name}_{kind}"], value), (name, kind, row)
    assert int(row["seeds"]) == len(gaps)
    assert int(row["diverged"]) == sum(not math.isfinite(gap) for gap in gaps)


def assert_is_curve(found, study, rule, eta):
    """Rows of a CSV against the trajectories of a study."""
    at = study.curves.sel(rule=rule).isel(eta=int(np.argmin(np.abs(study.curves.eta.values - eta))))
    assert [int(row["iteration"]) for row in found] == list(range(study.n_iter + 1))
    assert_numbers(
        found[0], (at.objective_start.values - study.F_star).tolist(), [math.nan] * at.sizes["seed"]
    )
    for row, objective, step in zip(
        found[1:], at.objective.values.T, at.mean_step.values.T, strict=True
    ):
        assert close(row["eta"], eta)
        assert_numbers(row, (objective - study.F_star).tolist(), step.tolist())


@functools.cache
def plain():
    """A study and its figure, to be looked at only."""
    study = by_formula()
    return study, figures.draw_figure_1({"hinge": study})


@functools.cache
def diverging():
    """A study that diverges for eta > 0.3."""
    return by_formula(diverges=0.3)


def studies_of(name):
    return (
        by_running("hinge", *hinge(), np.geomspace(1e-3, 10, 9), 30)
        if name == "run"
        else diverging()
    )


# The numbers


@pytest.mark.parametrize("kind", ["run", "diverging"])
def test_numbers_of_figure_1(tmp_path, kind):
    study = studies_of(kind)
    found = rows(figures.figure_1({"hinge": study}, tmp_path)[2])
    assert {(row["problem"], row["data"]) for row in found} == {("hinge", "synthetic (seed 0)")}
    for rule, method in zip(("AdaGradDiff", "AdaGrad"), METHODS, strict=True):
        mine = [row for row in found if row["method"] == method]
        grid = study.grid.sel(rule=rule).isel(iteration=-1)
        on_grid = [row for row in mine if row["panel"] == "robustness"]
        assert len(on_grid) == grid.sizes["eta"]
        for k, row in enumerate(on_grid):
            assert close(row["eta"], float(grid.eta[k]))
            assert int(row["iteration"]) == study.n_iter
            assert_numbers(
                row,
                (grid.objective.values[k] - study.F_star).tolist(),
                grid.mean_step.values[k].tolist(),
            )
        assert_is_curve(
            [row for row in mine if row["panel"] == "tuned"], study, rule, study.best_eta[rule]
        )
    if kind == "diverging":
        assert "inf" in {row["gap_mean"] for row in found}


@pytest.mark.parametrize("kind", ["run", "diverging"])
def test_numbers_of_three_panels(tmp_path, kind):
    study = studies_of(kind)
    found = rows(figures.three_panels(study, tmp_path, "figA_hinge")[2])
    for factor, eta in zip(("0.1", "1", "10"), study.panel_etas, strict=True):
        for rule, method in zip(("AdaGradDiff", "AdaGrad"), METHODS, strict=True):
            mine = [
                row
                for row in found
                if row["panel"] == f"{factor} x reference" and row["method"] == method
            ]
            assert_is_curve(mine, study, rule, eta)
    assert len(found) == 6 * (study.n_iter + 1)


def test_long_curves_are_thinned_on_paper_only(tmp_path):
    study = by_formula(n_iter=2500, seeds=2)
    assert len(rows(figures.three_panels(study, tmp_path, "long")[2])) == 6 * 2501
    line, _ = lines(figures.draw_three_panels(study).axes[0], "AdaGrad")
    x, y = line.get_data()
    assert 300 < len(x) <= 600
    assert (x[0], x[-1]) == (0, 2500)
    assert np.diff(x).max() <= 2 * 2500 / 300
    assert (x[:20] == np.arange(20)).all()  # the steep beginning
    gaps = (
        study.curve_gap.sel(rule="AdaGrad")
        .sel(eta=study.panel_etas[0], method="nearest")
        .mean("seed")
        .values
    )
    np.testing.assert_allclose(y[1:], gaps[x[1:] - 1])


def test_an_eta_that_was_not_run_is_not_replaced_by_another():
    study = by_formula()
    study = replace(study, curves=study.curves.isel(eta=slice(0, 1)))
    with pytest.raises(ValueError, match="no trajectories with eta"):
        figures.draw_three_panels(study)


# What is on them


def test_robustness_panel():
    study, figure = plain()
    ax = figure.axes[0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert r"\eta" in ax.get_xlabel()
    assert "F(x) - F_" in ax.get_ylabel()
    assert ax.get_title() == study.title
    upright = {
        float(line.get_xdata()[0]) for line in ax.get_lines() if len(set(line.get_xdata())) == 1
    }
    assert upright == {study.paper_eta, *study.best_eta.values()}
    assert len(upright) == 3
    for rule, method in zip(("AdaGradDiff", "AdaGrad"), METHODS, strict=True):
        line, marks = lines(ax, method)
        np.testing.assert_allclose(line.get_xdata(), study.grid.eta.values)
        np.testing.assert_allclose(line.get_ydata(), study.mean_gap.sel(rule=rule).values)
        assert marks == []
    low, high = ax.get_ylim()
    assert low < float(study.gap.min())
    assert high > float(study.mean_gap.max())
    assert "60 iterations, 4 starts, 25 values" in words(figure)


def test_tuned_panel():
    study, figure = plain()
    ax = figure.axes[1]
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
    assert ax.get_xlabel() == "iteration"
    key = [t.get_text() for t in ax.get_legend().get_texts()]
    assert key == [rf"$\eta = {study.best_eta[rule]:.3g}$" for rule in ("AdaGradDiff", "AdaGrad")]
    line, _ = lines(ax, "AdaGrad")
    assert line.get_ydata()[-1] == pytest.approx(float(study.mean_gap.sel(rule="AdaGrad").min()))


def test_three_panels():
    study = by_formula(n_iter=200)
    figure = figures.draw_three_panels(study)
    top, bottom = figure.axes[:3], figure.axes[3:]
    for ax, factor, eta in zip(top, ("0.1", "1", "10"), study.panel_etas, strict=True):
        assert f"{eta:.3g}" in ax.get_title()
        assert rf"{factor}\times" in ax.get_title()
    for ax in figure.axes:
        assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
    assert len({ax.get_ylim() for ax in top}) == len({ax.get_ylim() for ax in bottom}) == 1
    for ax, eta in zip(bottom, study.panel_etas, strict=True):
        line, _ = lines(ax, "AdaGrad-Diff")
        expected = (
            study.curves.mean_step.sel(rule="AdaGradDiff")
            .sel(eta=eta, method="nearest")
            .mean("seed")
            .values
        )
        np.testing.assert_allclose(line.get_ydata()[1:][10:], expected[10:])
    assert "mean of" in bottom[0].get_ylabel()
    assert study.title in words(figure)
    assert "200 iterations, 4 starts" in words(figure)


@pytest.mark.parametrize("given", [("lad",), ("hinge", "lad"), ("hinge", "lad", "splice")])
def test_figure_1_draws_what_there_is(given):
    figure = figures.draw_figure_1(
        {name: by_formula(name, title=f"The {name} one") for name in given}
    )
    drawn = [name for name in ("hinge", "lad") if name in given]
    assert [ax.get_title() for ax in figure.axes[: len(drawn)]] == [
        f"The {name} one" for name in drawn
    ]
    assert len(figure.axes) == 2 * len(drawn)


def test_figure_2_draws_what_there_is(tmp_path):
    studies = {
        name: by_formula(name, title=f"The {name} one")
        for name in ("2moons", "splice", "hinge", "news20")
    }
    titles = [ax.get_title() for ax in figures.draw_figure_2(studies).axes]
    assert titles == ["The news20 one", "The splice one", "The 2moons one", "", "", ""]
    del studies["splice"]
    assert {row["problem"] for row in rows(figures.figure_2(studies, tmp_path)[2])} == {
        "news20",
        "2moons",
    }
    with pytest.raises(ValueError, match=r"none of news20, splice, 2moons.*It has \['hinge'\]"):
        figures.figure_2({"hinge": by_formula()}, tmp_path)


def test_methods_differ_in_colour_line_and_marker():
    ax = plain()[1].axes[0]
    one, two = (lines(ax, method)[0] for method in METHODS)
    for look in ("get_color", "get_linestyle", "get_marker", "get_markerfacecolor"):
        assert getattr(one, look)() != getattr(two, look)()
    assert {one.get_color(), two.get_color()} == {"#0072B2", "#D55E00"}  # of Okabe and Ito
    for line in (one, two):
        assert 4 <= len(line.get_markevery()) <= 8
    assert not set(one.get_markevery()) & set(two.get_markevery())


def test_stand_ins_say_so_on_the_figure():
    study = by_formula("splice", **STAND_IN)
    both = {"splice": study, "2moons": by_formula("2moons", title="SVM dual on 2moons")}
    figure = figures.draw_figure_2(both)
    assert "stand-in" in figure.axes[0].get_title()
    assert "stand-in" not in figure.axes[1].get_title()
    said = words(figure)
    assert "Generated data (stand-in for splice.t)" in said
    marked = [[t.get_text() for t in ax.texts].count("stand-in") for ax in figure.axes]
    assert marked == [1, 0, 1, 0]  # the panels themselves
    three = figures.draw_three_panels(study)
    said = words(three)
    assert "Generated data" in said
    assert "Logistic regression on stand-in for splice.t" in said
    assert "stand-in" not in words(figures.draw_figure_2({"2moons": both["2moons"]}))
    coy = by_formula(
        "splice", **{**STAND_IN, "title": "Logistic regression"}
    )  # says so even if the title does not
    assert "Logistic regression (stand-in)" in words(figures.draw_three_panels(coy))


# What can go wrong with trajectories


def test_divergence_leaves_at_the_top_and_stays_visible():
    study = diverging()
    figure = figures.draw_figure_1({"hinge": study})
    ax = figure.axes[0]
    etas = study.grid.eta.values
    for k, method in enumerate(METHODS):
        line, marks = lines(ax, method)
        assert len(line.get_xdata()) == len(etas)  # no point is missing
        assert np.isfinite(line.get_ydata()).all()
        assert (line.get_ydata()[etas > 0.3] > ax.get_ylim()[1]).all()
        (edge,) = marks
        np.testing.assert_allclose(edge.get_xdata(), [etas[etas > 0.3][0], etas[-1]])
        assert edge.get_transform() == ax.get_xaxis_transform()
        assert edge.get_ydata()[0] == pytest.approx(0.965 - 0.06 * k)  # one below the other
    assert "Triangles" in words(figure)
    assert "Triangles" not in words(plain()[1])


def test_curves_that_diverge():
    study = diverging()
    figure = figures.draw_three_panels(study)
    gap, step = figure.axes[2], figure.axes[5]
    for method in METHODS:
        (edge,) = lines(gap, method)[1]
        assert edge.get_marker() == "^"
        assert edge.get_xdata().tolist() == [31, 60]  # it ended half-way
        (end,) = lines(step, method)[1]
        assert end.get_marker() == "x"
        assert end.get_xdata().tolist() == [30]
    assert "Triangles" in words(figure)


def test_one_diverged_seed_is_enough():
    study = by_formula()
    objective = study.grid.objective.copy()
    objective[0, 3, 1, -1] = np.nan
    ax = figures.draw_figure_1(
        {"hinge": replace(study, grid=study.grid.assign(objective=objective))}
    ).axes[0]
    (edge,) = lines(ax, "AdaGrad-Diff")[1]
    assert set(edge.get_xdata()) == {study.grid.eta.values[3]}
    assert lines(ax, "AdaGrad")[1] == []


def test_gaps_far_above_the_start_do_not_flatten_the_rest():
    study = by_formula()
    objective = study.grid.objective.copy()
    objective[:, -2:] = 1e25
    figure = figures.draw_figure_1(
        {"hinge": replace(study, grid=study.grid.assign(objective=objective))}
    )
    assert figure.axes[0].get_ylim()[1] < 1e6
    assert len(lines(figure.axes[0], "AdaGrad")[1]) == 1
    assert "off the chart" in words(figure)


def test_bands_survive_the_logarithm():
    study = by_formula(seeds=3)
    objective = study.grid.objective.values.copy()
    objective[:, 5, :, -1] = [1e-6, 1e-6, 1.0]  # the mean minus the standard deviation is negative
    objective[:, 6, :, -1] = [0.0, 1e-6, 1.0]
    study = replace(study, grid=study.grid.assign(objective=(study.grid.objective.dims, objective)))
    ax = figures.draw_figure_1({"hinge": study}).axes[0]
    bottom, _ = ax.get_ylim()
    assert 1e-7 < bottom < 1e-6
    etas = study.grid.eta.values
    for band, rule in zip(ax.collections, ("AdaGradDiff", "AdaGrad"), strict=True):
        x, y = band.get_paths()[0].vertices.T
        edges = [(y[np.isclose(x, eta)].min(), y[np.isclose(x, eta)].max()) for eta in etas]
        assert edges[5] == pytest.approx(
            (1e-6, fmean([1e-6, 1e-6, 1.0]) + pstdev([1e-6, 1e-6, 1.0]))
        )
        assert edges[6][0] == pytest.approx(bottom)  # zero is on the bottom
        gaps = study.gap.sel(rule=rule).values[10].tolist()
        assert edges[10] == pytest.approx(
            (max(fmean(gaps) - pstdev(gaps), min(gaps)), fmean(gaps) + pstdev(gaps))
        )


def test_gaps_of_zero_lie_on_the_bottom():
    study = by_formula(seeds=1)
    objective = study.grid.objective.copy()
    objective[:, 10:12] = 0.0
    ax = figures.draw_figure_1(
        {"hinge": replace(study, grid=study.grid.assign(objective=objective))}
    ).axes[0]
    line, _ = lines(ax, "AdaGrad")
    bottom, top = ax.get_ylim()
    assert line.get_ydata()[10:12] == pytest.approx(bottom)
    assert 0 < bottom < 1e-3 < top < math.inf
