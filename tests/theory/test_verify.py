"""`verify` as a whole: its rows, its figure, and that it does not pass what is wrong."""

from dataclasses import replace

import numpy as np
import pytest

import small_problems
from adagrad_diff import datasets, theory
from adagrad_diff.theory import verification, verify
from adagrad_diff.theory.report import FALSE, Row, Verification, to_text

STATEMENTS = {
    "Lemma 1",
    "Lemma 1, smooth",
    "corollary",
    "main bound, sum",
    "main bound, norm",
    "subgradients u",
    "AdaGrad's inequality",
    "squared differences",
    "quasi-Fejer, previous",
    "quasi-Fejer, next",
    FALSE,
    "identity of w",
}
quiet = {"say": lambda line: None}


def test_rows(monkeypatch):
    monkeypatch.setattr(datasets, "load", small_problems.load)
    found = verify(["splice", "lad"], [1e-3, 0.1], iterations=50, **quiet)
    assert found.holds
    assert {row.problem for row in found.rows} == {"lad", "splice"}
    for name, none in (("lad", {"Lemma 1, smooth", "squared differences"}), ("splice", set())):
        rows = {row.statement: row for row in found.rows if row.problem == name}
        assert set(rows) == STATEMENTS
        assert {statement for statement, row in rows.items() if not row.runs} == none
        assert rows["Lemma 1"].runs == 2 * 3 * 2  # etas, partitions, comparison points
        assert rows["quasi-Fejer, next"].runs == 2 * 3
    assert [(name, eta) for name, eta, _ in found.rates] == [("lad", 1e-3), ("lad", 0.1), ("splice", 1e-3), ("splice", 0.1)]
    text = to_text(found)
    assert "refused: the smooth form of Lemma 1 needs an L-smooth f; the loss LAD is not." in text
    assert "VIOLATED" not in text
    assert found.files == []


def test_stand_ins_are_named(monkeypatch):
    kept = small_problems.load

    def load(name, directory=None, *, stand_in=False, download=True):
        assert stand_in
        return replace(kept(name), source="stand-in")

    monkeypatch.setattr(datasets, "load", load)
    said = []
    found = verify(["splice"], [0.1], iterations=40, say=said.append)
    assert {row.problem for row in found.rows} == {"splice (stand-in)"}
    assert any("--data" in line for line in said)


def test_defaults():
    assert len(verification.ETA_DECADES) == 5
    assert max(verification.ETA_DECADES) / min(verification.ETA_DECADES) == pytest.approx(1e6)
    assert set(verification.RUN_ITERATIONS) == {"hinge", "lad", "news20", "splice", "2moons"}


def test_a_violation_is_reported():
    bad = Row("lad", "Lemma 1", -1e-3, 7, 0.1, "groups", 1e-12, 30)
    printed = Row("lad", FALSE, -1e-3, 7, 0.1, "groups", 1e-12, 15)
    assert not Verification([bad]).holds
    assert "VIOLATED" in to_text(Verification([bad]))
    assert Verification([printed]).holds
    assert "violated, as it should be" in to_text(Verification([printed]))


def test_a_wrong_algorithm_is_found(monkeypatch):
    """Weights that are too large by a part in a million are seen in the whole report."""
    learn = theory.verification.AdaGradDiff.learn

    def wrong(self, memory, now):
        learn(self, memory, now)
        memory.total *= 1 + 1e-6

    monkeypatch.setattr(theory.verification.AdaGradDiff, "learn", wrong)
    found = verify(["lad"], [0.05], iterations=40, **quiet)
    assert [row.statement for row in found.rows if not row.holds and row.statement != FALSE] == ["identity of w"]


@pytest.mark.peer
def test_files(tmp_path):
    found = verify(["hinge", "lad"], [0.01, 0.1, 1.0], iterations=60, output=tmp_path / "new", **quiet)
    bound = [f"bound_against_truth.{ending}" for ending in ("pdf", "png", "csv")]
    assert [path.name for path in found.files] == [*bound, "inequalities.csv"]
    assert all(path.stat().st_size for path in found.files)
    table = np.genfromtxt(found.files[2], delimiter=",", names=True, dtype=None, encoding="utf8")
    assert len(table) == 6
    assert (table["truth"] <= table["bound_sum"]).all()
    assert (table["bound_sum"] <= table["bound_norm"]).all()
    parts = table["start"] + table["distance"] + table["steps"] + table["growth"]
    assert table["bound_sum"] == pytest.approx(parts, rel=1e-3)


@pytest.mark.parametrize(
    "options", [{"problems": ["lasso"]}, {"etas": [-1.0]}, {"etas": [1e300]}, {"etas": [1e-320]}, {"iterations": 0}], ids=str
)
def test_bad_arguments(options):
    with pytest.raises(ValueError, match=f"The '{next(iter(options))}' parameter of verify"):
        verify(**{"problems": ["lad"], **options}, **quiet)


def test_names():
    assert set(theory.__all__) <= set(dir(theory))
    for name in theory.__all__:
        assert getattr(theory, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'lemma_2'"):
        theory.lemma_2  # noqa: B018
