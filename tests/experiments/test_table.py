"""Scores against hand-computed numbers; the table of the paper's experiments."""

import math
from itertools import product
from statistics import fmean

import numpy as np
import pytest

from adagrad_diff.experiments.paper.table import PAPER_LEVELS, summary, to_markdown, to_text
from adagrad_diff.experiments.scores import decades, expected_best, score
from studies import STAND_IN, by_formula, by_running, hinge


def test_crossings_are_exact():
    etas = [1e-3, 1e-2, 1e-1, 1.0]
    assert decades(etas, [1.0, 1e-4, 1e-4, 1.0], 1e-2) == (pytest.approx(2.0, abs=1e-14), False)
    two_pieces = decades(etas, [1.0, 1e-4, 1.0, 1e-4], 1e-1)
    assert two_pieces == (pytest.approx(3 * 0.75, abs=1e-14), True)
    beside_a_divergence = decades(etas, [1.0, 1e-4, math.inf, math.inf], 1e-2)
    assert beside_a_divergence == (pytest.approx(0.5), False)
    beside_a_gap_of_zero = decades(etas, [1.0, 0.0, 1.0, 1.0], 1e-2)
    assert beside_a_gap_of_zero == (pytest.approx(2.0), False)
    assert decades([0.1], [1e-3], 1e-2) == (0.0, True)
    assert decades(etas, [0.0] * 4, 0.0) == (0.0, False)
    assert decades(etas, [1e-2] * 4, 1e-2) == (0.0, False)  # below means below


def test_scores_by_hand():
    """Step sizes 0.01, 0.1, 1, 10: the last one diverged, and counts as the initial loss 4."""
    etas, losses = np.array([0.01, 0.1, 1.0, 10.0]), np.array([2.0, 0.5, 1.0, math.inf])
    found = score(etas, losses, np.minimum(losses, 4.0), smallest=0.25, default=1.0)
    assert found["best_eta"] == 0.1
    assert found["best_gap"] == 0.5
    assert (found["default_gap"], found["regret"]) == (1.0, 4.0)
    assert found["decades_2x"] == found["decades_1.1x"] == 0.0  # 0.5 is not below 0.5
    assert found["decades_10x"] == pytest.approx(2)  # all three are below 2.5
    assert found["at_edge_10x"]
    assert not found["at_edge_2x"]
    assert found["decades_below_1e-1"] == 0.0
    assert found["sensitivity"] == pytest.approx((2 + 0.5 + 1 + 4) / 4 - 0.5)
    assert found["centered"] == pytest.approx((2 + 0.5 + 1) / 3 - 0.5)
    # Of two draws, 7 of 16 pairs have the minimum 0.5, 5 have 1, 3 have 2 and 1 has 4.
    assert found["expected_best_1"] == pytest.approx(1.875)
    assert found["expected_best_2"] == pytest.approx((7 * 0.5 + 5 * 1 + 3 * 2 + 4) / 16)
    for trials in (1, 2, 3):
        every = [min(draws) for draws in product([3.0, 1.0, 2.5], repeat=trials)]
        assert expected_best([3.0, 1.0, 2.5], trials) == pytest.approx(fmean(every))


def test_scores_with_a_floor():
    """Below the floor gaps are not told apart: a gap of zero is within ten times of all there."""
    etas, gaps = np.array([1.0, 10.0, 100.0]), np.array([[0.0, 5e-10, 1.0], [1e-9, 5e-9, 1.0]])
    first, second = (score(etas, row, row, 0.0, floor=1e-9) for row in gaps)
    assert (first["best_gap"], second["best_gap"]) == (0.0, 1e-9)
    assert first["decades_10x"] == pytest.approx(1 + 1 / 9)  # from 1e-9, and not from 5e-10, to 1
    assert second["decades_10x"] == pytest.approx(1 + np.log10(2) / np.log10(2e8))
    assert first["at_edge_10x"]
    assert first["regret"] is None


# ---------------------------------------------------------------- the table of the paper


def many():
    tiny = by_running("lad", *hinge(), np.geomspace(1e-3, 10, 9), 50, paper_eta=0.042)
    return {
        "splice": by_formula("splice", **STAND_IN),
        "lad": tiny,
        "hinge": by_formula("hinge", diverges=0.5),
    }


@pytest.mark.peer
def test_rows_follow_the_definition():
    studies = many()
    frame = summary(studies)
    assert frame.method.tolist() == ["AdaGrad-Diff", "AdaGrad"] * 3
    for row in frame.to_dict("records"):
        study = studies[row["problem"]]
        objective = study.grid.objective.sel(rule=row["method"].replace("-", "")).values[:, :, -1]
        gaps = [
            fmean(f - study.F_star if math.isfinite(f) else math.inf for f in line)
            for line in objective.tolist()
        ]
        best = min(range(len(gaps)), key=gaps.__getitem__)
        etas = study.grid.eta.values
        assert row["best_eta"] == etas[best]
        assert row["gap_at_best"] == pytest.approx(gaps[best], rel=1e-12)
        for name, limit in {"within_10x": 10 * gaps[best], **PAPER_LEVELS}.items():
            assert (row[f"decades_{name}"], row[f"at_edge_{name}"]) == decades(etas, gaps, limit)
        sizes = row["seeds"], row["etas"], row["iterations"]
        assert sizes == (objective.shape[1], len(etas), study.n_iter)
        assert row["real"] == (row["problem"] != "splice")
        assert row["paper_eta"] == study.paper_eta
        same = frame[frame.problem == row["problem"]]
        assert row["reference_eta"] == pytest.approx(same.best_eta.mean())


@pytest.mark.peer
def test_ranges_at_the_end_of_the_grid_are_lower_bounds():
    frame = summary({"hinge": by_formula(etas=np.geomspace(0.02, 0.3, 9))})
    assert frame["at_edge_below_1e-1"].all()
    assert np.allclose(frame["decades_below_1e-1"], np.log10(15))
    assert "≥1.18" in to_markdown(frame)
    assert ">=1.18" in to_text(frame)


@pytest.mark.peer
def test_stand_ins_are_labeled():
    frame = summary({"splice": by_formula("splice", **STAND_IN), "hinge": by_formula()})
    assert "splice, stand-in for splice.t" in " ".join(to_text(frame).split())
    rows = [line for line in to_markdown(frame).splitlines() if "splice" in line and "Ada" in line]
    assert len(rows) == 2
    assert all("stand-in for splice.t" in line for line in rows)
    real = summary({"hinge": by_formula()})
    for text in (to_text, to_markdown):
        assert "generated data" in text(frame)
        assert "stand-in" not in text(real)
    coy = by_formula("splice", **{**STAND_IN, "data": "splice.t"})
    assert "splice.t (stand-in)" in to_text(summary({"splice": coy}))


@pytest.mark.peer
def test_the_text_is_aligned_and_fits_a_terminal():
    """All five problems, with the longest numbers that there are."""
    names = ("hinge", "lad", "news20", "splice", "2moons")
    frame = summary({name: by_formula(name, **STAND_IN) for name in names})
    frame["best_eta"], frame["gap_at_best"], frame["at_edge_below_1e-1"] = 0.000123, 1.23e-05, True
    lines = to_text(frame).splitlines()
    assert max(map(len, lines)) <= 100
    head, ruler, *rows = lines
    ends = [k for k in range(len(ruler)) if ruler[k] == "-" and ruler[k + 1 : k + 2] != "-"]
    for line in [head, *rows[:10]]:
        assert all(line[end + 1 : end + 3].strip() == "" for end in ends)


@pytest.mark.peer
def test_a_method_that_never_ends_well():
    frame = summary({"hinge": by_formula(diverges=0.0)})
    assert np.isinf(frame.gap_at_best).all()
    assert (frame.filter(like="decades") == 0).all(axis=None)
    assert "inf" in to_text(frame)
