"""The table of step-size ranges: lengths against dense grids, rows against the definition, files whole or not at all."""

import math
import re
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adagrad_diff.paper.table import GAP_LEVELS, decades, summary, to_markdown, to_text, write
from damage import at_most
from studies import STAND_IN, by_formula, by_running, hinge

CELLS = 2000  # of the dense grid, per interval


def curves(gaps):
    """Increasing etas, and a gap for each."""
    ratios = st.lists(st.floats(1.05, 20.0), min_size=0, max_size=9)
    etas = ratios.map(lambda r: 1e-3 * np.cumprod([1.0, *r]))
    return etas.flatmap(
        lambda e: st.tuples(st.just(e), st.lists(gaps, min_size=len(e), max_size=len(e)))
    )


def dense(etas, gaps, threshold):
    """The share of the midpoints of many small cells where the interpolated gap is below the threshold."""
    total = 0.0
    t = (np.arange(CELLS) + 0.5) / CELLS
    for k in range(len(etas) - 1):
        length = math.log10(etas[k + 1] / etas[k])
        ends = {gaps[k], gaps[k + 1]}
        if ends == {0.0, math.inf}:
            total += length / 2
            continue
        with np.errstate(divide="ignore"):
            left, right = np.log([gaps[k], gaps[k + 1]]) - math.log(threshold)
        total += length * np.mean((1 - t) * left + t * right < 0)
    return total


@settings(deadline=None)
@given(curves(st.floats(1e-9, 1e9) | st.sampled_from([0.0, math.inf])), st.floats(1e-6, 1e6))
@example((np.array([0.1, 1.0]), [0.0, math.inf]), 1.0)
@example((np.array([0.1, 1.0]), [math.inf, math.inf]), 1.0)
@example((np.array([0.1, 1.0]), [2.0, 2.0]), 2.0)
def test_decades_is_what_a_dense_grid_counts(curve, threshold):
    etas, gaps = curve
    length, at_edge = decades(etas, gaps, threshold)
    tolerance = (len(etas) - 1) * math.log10(20) / CELLS + 1e-12
    assert length == pytest.approx(dense(etas, gaps, threshold), abs=tolerance)
    assert at_edge == (
        math.log(gaps[0] or 1e-300) < math.log(threshold)
        or math.log(gaps[-1] or 1e-300) < math.log(threshold)
    )


@given(curves(st.floats(1e-9, 1e9)), st.floats(1e-6, 1e6), st.floats(1e-3, 1e3))
def test_decades_above_and_below_make_the_grid_and_units_do_not_matter(curve, threshold, unit):
    etas, gaps = curve[0], np.array(curve[1])
    below = decades(etas, gaps, threshold)[0]
    above = decades(etas, 1 / gaps, 1 / threshold)[0]
    flat = np.isclose(gaps, threshold, rtol=1e-9).any()  # neither above nor below
    if not flat:
        assert below + above == pytest.approx(np.log10(etas[-1] / etas[0]), abs=1e-9)
        assert decades(etas, gaps * unit, threshold * unit)[0] == pytest.approx(below, abs=1e-6)
    assert decades(1 / etas[::-1], gaps[::-1], threshold)[0] == pytest.approx(below, abs=1e-9)


def test_crossings_are_exact():
    etas = [1e-3, 1e-2, 1e-1, 1.0]
    assert decades(etas, [1.0, 1e-4, 1e-4, 1.0], 1e-2) == (pytest.approx(2.0, abs=1e-14), False)
    assert decades(etas, [1.0, 1e-4, 1.0, 1e-4], 1e-1) == (
        pytest.approx(3 * 0.75, abs=1e-14),
        True,
    )  # in two pieces
    assert decades(etas, [1.0, 1e-4, math.inf, math.inf], 1e-2) == (
        pytest.approx(0.5),
        False,
    )  # nothing beside a divergence
    assert decades(etas, [1.0, 0.0, 1.0, 1.0], 1e-2) == (
        pytest.approx(2.0),
        False,
    )  # all there is beside a gap of zero
    assert decades([0.1], [1e-3], 1e-2) == (0.0, True)
    assert decades(etas, [0.0] * 4, 0.0) == (0.0, False)
    assert decades(etas, [1e-2] * 4, 1e-2) == (0.0, False)  # below means below


@pytest.mark.parametrize(
    ("etas", "gaps", "sentence"),
    [
        ([0.1, 0.1], [1, 1], "increasing"),
        ([0.0, 0.1], [1, 1], "positive"),
        ([0.1, 1.0], [1, math.nan], "NaN"),
        ([0.1, 1.0], [1, -1e-9], "negative"),
        ([0.1, 1.0], [1], "shapes"),
        ([], [], "shapes"),
    ],
)
def test_bad_curves_are_refused(etas, gaps, sentence):
    with pytest.raises(ValueError, match=sentence):
        decades(etas, gaps, 0.1)


def many():
    tiny = by_running(
        "lad",
        *hinge(),
        np.geomspace(1e-3, 10, 9),
        50,
        title="LAD regression on synthetic data",
        paper_eta=0.042,
    )
    return {
        "splice": by_formula("splice", **STAND_IN),
        "lad": tiny,
        "hinge": by_formula("hinge", diverges=0.5),
    }


@pytest.mark.peer
def test_rows_follow_the_definition():
    studies = many()
    frame = summary(studies)
    assert (
        frame.problem.tolist() == ["hinge"] * 2 + ["lad"] * 2 + ["splice"] * 2
    )  # the paper's order
    assert frame.method.tolist() == ["AdaGrad-Diff", "AdaGrad"] * 3
    for row in frame.to_dict("records"):
        study = studies[row["problem"]]
        rule = row["method"].replace("-", "")
        objective = study.grid.objective.sel(rule=rule).values[:, :, -1]
        gaps = [
            fmean(f - study.F_star if math.isfinite(f) else math.inf for f in line)
            for line in objective.tolist()
        ]
        best = min(range(len(gaps)), key=gaps.__getitem__)
        etas = study.grid.eta.values
        assert row["best_eta"] == etas[best]
        assert row["gap_at_best"] == pytest.approx(gaps[best], rel=1e-12)
        for name, threshold in {
            "within_10x": 10 * gaps[best],
            **{f"below_{k}": float(k) for k in GAP_LEVELS},
        }.items():
            assert row[f"decades_{name}"] == pytest.approx(
                dense(etas, gaps, threshold), abs=len(etas) / CELLS
            )
            assert row[f"at_edge_{name}"] == (gaps[0] < threshold or gaps[-1] < threshold)
        assert (row["seeds"], row["etas"], row["iterations"]) == (
            objective.shape[1],
            len(etas),
            study.n_iter,
        )
        assert row["real"] == (row["problem"] != "splice")
        assert row["paper_eta"] == study.paper_eta
        assert row["reference_eta"] == pytest.approx(
            frame[frame.problem == row["problem"]].best_eta.mean()
        )


@pytest.mark.peer
def test_files_say_what_the_frame_says(tmp_path):
    import pandas as pd

    studies = many()
    frame = summary(studies)
    paths = write(studies, tmp_path / "new" / "directory")
    assert [path.name for path in paths] == ["table.csv", "table.md"]
    pd.testing.assert_frame_equal(pd.read_csv(paths[0]), frame, check_dtype=False, rtol=1e-12)
    lines = paths[1].read_text(encoding="utf-8").splitlines()
    table = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]
    assert len(table) == 2 + len(frame)
    for cells, row in zip(table[2:], frame.to_dict("records"), strict=True):
        assert cells[:3] == [row["problem"], row["data"], row["method"]]
        assert float(cells[3]) == pytest.approx(row["best_eta"], rel=5e-3)
        mark = "≥" if row["at_edge_within_10x"] else ""
        assert cells[5] == f"{mark}{row['decades_within_10x']:.2f}"
    assert sorted(tmp_path.rglob("*.partial")) == []


@pytest.mark.peer
def test_ranges_at_the_end_of_the_grid_are_lower_bounds():
    study = by_formula(etas=np.geomspace(0.02, 0.3, 9))
    frame = summary({"hinge": study})
    assert frame["at_edge_below_1e-1"].all()
    assert np.allclose(frame["decades_below_1e-1"], np.log10(15))
    assert "≥1.18" in to_markdown(frame)
    assert ">=1.18" in to_text(frame)


@pytest.mark.peer
def test_stand_ins_are_labelled():
    frame = summary({"splice": by_formula("splice", **STAND_IN), "hinge": by_formula()})
    assert "splice, stand-in for splice.t" in " ".join(to_text(frame).split())
    assert [
        line for line in to_markdown(frame).splitlines() if "splice" in line and "AdaGrad" in line
    ]
    for line in to_markdown(frame).splitlines():
        assert "stand-in for splice.t" in line or "splice" not in line or "AdaGrad" not in line
    for text in (to_text(frame), to_markdown(frame)):
        assert "generated data" in text
    real = summary({"hinge": by_formula()})
    assert "stand-in" not in to_text(real) + to_markdown(real)
    coy = summary(
        {"splice": by_formula("splice", **{**STAND_IN, "data": "splice.t"})}
    )  # says so even if the name does not
    assert "splice.t (stand-in)" in to_text(coy)
    assert "splice.t (stand-in)" in to_markdown(coy)


NAMES = [
    "a|b",
    "new\nline",
    "*bold* _it_ `code`",
    "<b>html</b> &amp;",
    "[link](x)",
    "back\\slash|",
    "\x1b[31mred",
    "# head",
    "~~no~~",
]


def literal(line):
    """The cells of a line of a Markdown table, if nothing in them is markup."""
    cells = [""]
    for escaped, letter in re.findall(r"(\\?)(.)", line.strip("| ")):
        assert escaped or letter not in "\\*_`<&[]#~"
        if letter == "|" and not escaped:
            cells.append("")
        else:
            cells[-1] += letter
    return [cell.strip() for cell in cells]


@pytest.mark.peer
@pytest.mark.parametrize("name", NAMES)
def test_names_are_no_markup(name):
    """Whatever a problem and its data are called, the tables have the same cells, and show the name."""
    frame = summary({name: by_formula(name, data=name)})
    shown = name.replace("\n", " ").replace("\x1b", "")
    head, _, *rows = to_markdown(frame).splitlines()[:4]
    for row, method in zip(rows, ("AdaGrad-Diff", "AdaGrad"), strict=True):
        assert literal(row)[:3] == [shown, shown, method]
        assert len(literal(row)) == head.count("|") - 1
    for row, method in zip(
        to_text(frame).splitlines()[2:4], ("AdaGrad-Diff", "AdaGrad"), strict=True
    ):
        assert re.split("  +", row)[:2] == [shown, method]
    assert f"Data: {shown}, {shown}." in to_text(frame)


@pytest.mark.peer
def test_columns_of_the_text_are_aligned():
    head, ruler, *rows = to_text(summary(many())).splitlines()
    ends = [k for k in range(len(ruler)) if ruler[k] == "-" and ruler[k + 1 : k + 2] != "-"]
    for line in [head, *rows[:6]]:
        assert all(line[end + 1 : end + 3].strip() == "" for end in ends)


@pytest.mark.peer
def test_the_text_fits_a_terminal():
    """All five problems at once, with the longest numbers that there are: the table is not broken by 100 columns."""
    frame = summary(
        {
            name: by_formula(name, **STAND_IN)
            for name in ("hinge", "lad", "news20", "splice", "2moons")
        }
    )
    frame["best_eta"], frame["gap_at_best"], frame["at_edge_below_1e-1"] = 0.000123, 1.23e-05, True
    assert max(map(len, to_text(frame).splitlines())) <= 100


@pytest.mark.peer
def test_a_method_that_never_ends_well():
    study = by_formula(diverges=0.0)
    frame = summary({"hinge": study})
    assert np.isinf(frame.gap_at_best).all()
    assert (frame.filter(like="decades") == 0).all(axis=None)
    assert "inf" in to_text(frame)


@pytest.mark.peer
def test_the_order_of_the_etas_does_not_matter():
    study = by_formula()
    backwards = replace(study, grid=study.grid.isel(eta=slice(None, None, -1)))
    assert summary({"hinge": backwards}).equals(summary({"hinge": study}))


@pytest.mark.peer
def test_nothing_to_say_is_an_error():
    with pytest.raises(ValueError, match="empty"):
        summary({})


@pytest.mark.peer
def test_unwritable_directory_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(
        OSError, match=r"Cannot write table.csv, table.md into .*file.*Choose another directory"
    ):
        write({"hinge": by_formula()}, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.peer
def test_a_disk_that_is_full(tmp_path):
    """The files of before stay, all of them."""
    write({"hinge": by_formula()}, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with (
        at_most(500),
        pytest.raises(
            OSError,
            match=r"Cannot write table.csv, table.md into .*: File too large\. Choose another",
        ),
    ):
        write(many(), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
