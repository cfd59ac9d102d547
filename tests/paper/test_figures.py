"""The paper's figures: the files, the numbers behind them, and what is on them, looked at before they are saved."""

import csv
import functools
import math
import subprocess
import sys
from dataclasses import replace
from statistics import fmean, pstdev

import numpy as np
import pytest
from studies import STAND_IN, by_formula, by_running, hinge

from adagrad_diff.paper import figures
from adagrad_diff.study.files import write_all
from adagrad_diff.study.style import style

pytestmark = pytest.mark.peer

LAD = {"title": "LAD regression on synthetic data", "paper_eta": 0.042}
METHODS = ("AdaGrad-Diff", "AdaGrad")


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def texts(figure):
    """Every text on a figure but the numbers at the axes, as drawn."""
    from matplotlib.text import Text

    with style():
        figure.draw_without_rendering()
    found = [(t, t.get_text().strip()) for t in figure.findobj(Text) if t.get_visible()]
    return [t for t, said in found if said and not said.isdigit() and "mathdefault" not in said]


def words(figure):
    return "\n".join(t.get_text() for t in texts(figure))


def lines(ax, method):
    """The line of a method, and what else is drawn in its colour at the top edge or at its end."""
    main = [line for line in ax.get_lines() if line.get_label() == method]
    assert len(main) == 1
    marks = [k for k in ax.get_lines() if k.get_marker() in ("^", "x") and k.get_color() == main[0].get_color()]
    return main[0], marks


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
    assert_numbers(found[0], (at.objective_start.values - study.F_star).tolist(), [math.nan] * at.sizes["seed"])
    for row, objective, step in zip(found[1:], at.objective.values.T, at.mean_step.values.T, strict=True):
        assert close(row["eta"], eta)
        assert_numbers(row, (objective - study.F_star).tolist(), step.tolist())


@functools.cache
def plain():
    """A study and its figure, to be looked at only."""
    study = by_formula()
    return study, figures.draw_figure_1({"hinge": study})


def studies_of(name):
    return {
        "run": lambda: by_running("hinge", *hinge(), np.geomspace(1e-3, 10, 9), 30),
        "diverging": lambda: by_formula(diverges=0.3),
    }[name]()


# The files


def test_files_are_what_their_names_say(tmp_path):
    from PIL import Image

    study = by_formula(diverges=0.3)  # half of its lines end
    paths = figures.figure_1({"hinge": study, "lad": by_formula("lad", **LAD)}, tmp_path / "new" / "directory")
    paths += figures.figure_2({"splice": by_formula("splice", **STAND_IN)}, tmp_path)
    paths += figures.three_panels(study, tmp_path, "figA_hinge")
    stems = ("fig1", "fig2", "figA_hinge")
    assert [path.name for path in paths] == [f"{stem}.{ending}" for stem in stems for ending in ("pdf", "png", "csv")]
    for path in paths:
        content = path.read_bytes()
        if path.suffix == ".pdf":
            assert content.startswith(b"%PDF-")
            assert content.rstrip().endswith(b"%%EOF")
            assert b"/Type3" not in content  # fonts that journals refuse
        elif path.suffix == ".png":
            with Image.open(path) as image:
                width = 3.35 if path.stem == "fig2" else 6.75  # one problem alone takes one column
                assert image.size[0] == pytest.approx(300 * width, abs=1)
                assert image.info["dpi"] == pytest.approx((300, 300), rel=1e-3)
        else:
            assert len(rows(path)) > 100
    assert list(tmp_path.rglob("*.partial")) == []


def test_the_same_study_gives_the_same_files(tmp_path):
    for directory in ("one", "two"):  # once in five runs the layout differs in its last digits, if it is not rounded
        figures.figure_1({"hinge": by_formula()}, tmp_path / directory)
    for name in ("fig1.pdf", "fig1.png", "fig1.csv"):
        first = (tmp_path / "one" / name).read_bytes()
        assert first == (tmp_path / "two" / name).read_bytes()
        assert b"CreationDate" not in first


def test_pyplot_and_the_users_settings_are_left_alone(tmp_path):
    program = f"""
import sys
sys.path.insert(0, {str(__file__.rpartition("/")[0])!r})
import matplotlib
matplotlib.rcParams.update({{"axes.facecolor": "red", "font.size": 30.0}})
settings = lambda: {{name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}}
before = settings()
from studies import by_formula
from adagrad_diff.paper import figures
from adagrad_diff.study.files import write_all
from adagrad_diff.study.style import style
figures.three_panels(by_formula(), {str(tmp_path)!r}, "odd")
assert settings() == before
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
    figures.three_panels(by_formula(), tmp_path, "plain")
    assert (tmp_path / "odd.png").read_bytes() == (tmp_path / "plain.png").read_bytes()


def test_unwritable_directory_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match=r"Cannot write fig1.pdf, fig1.png, fig1.csv into .*file.*Choose another directory"):
            figures.figure_1({"hinge": by_formula()}, out)
    assert (tmp_path / "file").read_text() == "mine"


def test_nothing_is_replaced_until_everything_is_written(tmp_path):
    (tmp_path / "a.txt").write_text("old")

    def full(path):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left on device"):
        write_all(tmp_path, {"a.txt": lambda path: path.write_text("new"), "b.txt": full})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": "old"}
    write_all(tmp_path, {"a.txt": lambda path: path.write_text("new")})
    assert (tmp_path / "a.txt").read_text() == "new"


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(ImportError, match=r"matplotlib.*adagrad-diff\[paper\]"):
        figures.draw_figure_1({"hinge": by_formula()})


# The numbers


@pytest.mark.usefixtures("unsaved")
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
            assert_numbers(row, (grid.objective.values[k] - study.F_star).tolist(), grid.mean_step.values[k].tolist())
        assert_is_curve([row for row in mine if row["panel"] == "tuned"], study, rule, study.best_eta[rule])
    if kind == "diverging":
        assert "inf" in {row["gap_mean"] for row in found}


@pytest.mark.usefixtures("unsaved")
@pytest.mark.parametrize("kind", ["run", "diverging"])
def test_numbers_of_three_panels(tmp_path, kind):
    study = studies_of(kind)
    found = rows(figures.three_panels(study, tmp_path, "figA_hinge")[2])
    for factor, eta in zip(("0.1", "1", "10"), study.panel_etas, strict=True):
        for rule, method in zip(("AdaGradDiff", "AdaGrad"), METHODS, strict=True):
            mine = [row for row in found if row["panel"] == f"{factor} x reference" and row["method"] == method]
            assert_is_curve(mine, study, rule, eta)
    assert len(found) == 6 * (study.n_iter + 1)


@pytest.mark.usefixtures("unsaved")
def test_long_curves_are_thinned_on_paper_only(tmp_path):
    study = by_formula(n_iter=2500, seeds=2)
    assert len(rows(figures.three_panels(study, tmp_path, "long")[2])) == 6 * 2501
    line, _ = lines(figures.draw_three_panels(study).axes[0], "AdaGrad")
    x, y = line.get_data()
    assert 300 < len(x) <= 600
    assert (x[0], x[-1]) == (0, 2500)
    assert np.diff(x).max() <= 2 * 2500 / 300
    assert (x[:20] == np.arange(20)).all()  # the steep beginning
    gaps = study.curve_gap.sel(rule="AdaGrad").sel(eta=study.panel_etas[0], method="nearest").mean("seed").values
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
    upright = {float(line.get_xdata()[0]) for line in ax.get_lines() if len(set(line.get_xdata())) == 1}
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
        expected = study.curves.mean_step.sel(rule="AdaGradDiff").sel(eta=eta, method="nearest").mean("seed").values
        np.testing.assert_allclose(line.get_ydata()[1:][10:], expected[10:])
    assert "mean of" in bottom[0].get_ylabel()
    assert study.title in words(figure)
    assert "200 iterations, 4 starts" in words(figure)


@pytest.mark.parametrize("given", [("lad",), ("hinge", "lad"), ("hinge", "lad", "splice")])
def test_figure_1_draws_what_there_is(given):
    figure = figures.draw_figure_1({name: by_formula(name, title=f"The {name} one") for name in given})
    drawn = [name for name in ("hinge", "lad") if name in given]
    assert [ax.get_title() for ax in figure.axes[: len(drawn)]] == [f"The {name} one" for name in drawn]
    assert len(figure.axes) == 2 * len(drawn)


@pytest.mark.usefixtures("unsaved")
def test_figure_2_draws_what_there_is(tmp_path):
    studies = {name: by_formula(name, title=f"The {name} one") for name in ("2moons", "splice", "hinge", "news20")}
    titles = [ax.get_title() for ax in figures.draw_figure_2(studies).axes]
    assert titles == ["The news20 one", "The splice one", "The 2moons one", "", "", ""]
    del studies["splice"]
    assert {row["problem"] for row in rows(figures.figure_2(studies, tmp_path)[2])} == {"news20", "2moons"}
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


@pytest.mark.parametrize(("columns", "standing_in"), [(1, False), (3, True)])
def test_everything_is_on_the_page_and_legible(columns, standing_in):
    about = STAND_IN if standing_in else {"title": "Logistic regression on splice.t"}
    names = figures.SMOOTH_PROBLEMS[:columns]
    studies = {name: by_formula(name, etas=np.geomspace(1e-4, 1e2, 25), n_iter=2500, diverges=1.0, **about) for name in names}
    for figure in (figures.draw_figure_2(studies), figures.draw_three_panels(studies[names[0]])):
        found = [t for t in texts(figure) if t.get_text() != "stand-in"]
        numbers = [label for ax in figure.axes for label in (*ax.get_xticklabels(), *ax.get_yticklabels())]
        assert min(t.get_fontsize() for t in (*found, *numbers)) >= 7
        with style():
            said = [t.get_window_extent().padded(-1) for t in found]
            axes = [axis.get_tightbbox() for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
            panels = [ax.get_window_extent() for ax in figure.axes]
            keys = [legend.get_window_extent() for legend in figure.legends]
        assert len(keys) == 1  # one for the figure, outside the panels
        for box in (*said, *filter(None, axes), *keys):
            assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
            assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1
        for box in (*said, *keys):
            assert not any(box.overlaps(panel) for panel in panels)
        for boxes in (said, [box for box in axes[::2] if box]):  # words, and the numbers of neighbouring panels
            assert not any(box.overlaps(other) for k, box in enumerate(boxes) for other in boxes[k + 1 :])


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
    coy = by_formula("splice", **{**STAND_IN, "title": "Logistic regression"})  # says so even if the title does not
    assert "Logistic regression (stand-in)" in words(figures.draw_three_panels(coy))


# What can go wrong with trajectories


def test_divergence_leaves_at_the_top_and_stays_visible():
    study = by_formula(diverges=0.3)
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
    study = by_formula(diverges=0.3)
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
    ax = figures.draw_figure_1({"hinge": replace(study, grid=study.grid.assign(objective=objective))}).axes[0]
    (edge,) = lines(ax, "AdaGrad-Diff")[1]
    assert set(edge.get_xdata()) == {study.grid.eta.values[3]}
    assert lines(ax, "AdaGrad")[1] == []


def test_gaps_far_above_the_start_do_not_flatten_the_rest():
    study = by_formula()
    objective = study.grid.objective.copy()
    objective[:, -2:] = 1e25
    figure = figures.draw_figure_1({"hinge": replace(study, grid=study.grid.assign(objective=objective))})
    assert figure.axes[0].get_ylim()[1] < 1e6
    assert len(lines(figure.axes[0], "AdaGrad")[1]) == 1
    assert "off the chart" in words(figure)


def test_everything_diverged_at_once(tmp_path):
    study = by_formula(diverges=0.0)
    nothing = replace(study, curves=study.curves.assign(objective=study.curves.objective * np.nan))
    for path in figures.figure_1({"hinge": nothing}, tmp_path) + figures.three_panels(nothing, tmp_path, "three"):
        assert path.stat().st_size > 1000


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
        assert edges[5] == pytest.approx((1e-6, fmean([1e-6, 1e-6, 1.0]) + pstdev([1e-6, 1e-6, 1.0])))
        assert edges[6][0] == pytest.approx(bottom)  # zero is on the bottom
        gaps = study.gap.sel(rule=rule).values[10].tolist()
        assert edges[10] == pytest.approx((max(fmean(gaps) - pstdev(gaps), min(gaps)), fmean(gaps) + pstdev(gaps)))


@pytest.mark.parametrize(("seeds", "n_iter"), [(1, 1), (10, 20)])
def test_small_studies(tmp_path, seeds, n_iter):
    study = by_formula(seeds=seeds, n_iter=n_iter)
    figure = figures.draw_figure_1({"hinge": study})
    assert f"{seeds} start{'s' * (seeds > 1)}," in words(figure)
    assert len(figures.three_panels(study, tmp_path, "small")) == 3


def test_gaps_of_zero_lie_on_the_bottom():
    study = by_formula(seeds=1)
    objective = study.grid.objective.copy()
    objective[:, 10:12] = 0.0
    ax = figures.draw_figure_1({"hinge": replace(study, grid=study.grid.assign(objective=objective))}).axes[0]
    line, _ = lines(ax, "AdaGrad")
    bottom, top = ax.get_ylim()
    assert line.get_ydata()[10:12] == pytest.approx(bottom)
    assert 0 < bottom < 1e-3 < top < math.inf
