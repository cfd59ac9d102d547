"""`verify` as a whole: its rows, its figure, and that it does not pass what is wrong."""

from dataclasses import replace

import numpy as np
import pytest

import small_problems
from adagrad_diff import datasets, theory
from adagrad_diff.theory import Verification, verify
from adagrad_diff.theory.report import FALSE, Row, to_text
from looping import looped

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


def test_rows():
    found = verify(["splice", "lad"], [1e-3, 0.1], iterations=40, **quiet)
    assert found.holds
    assert {row.problem for row in found.rows} == {"lad", "splice"}
    for name, none in (("lad", {"Lemma 1, smooth", "squared differences"}), ("splice", set())):
        rows = {row.statement: row for row in found.rows if row.problem == name}
        assert set(rows) == STATEMENTS
        assert {statement for statement, row in rows.items() if not row.runs} == none
        assert rows["Lemma 1"].runs == 2 * 3 * 2  # etas, partitions, comparison points
        assert rows["quasi-Fejer, next"].runs == 2 * 3
    assert [(name, eta) for name, eta, _ in found.rates] == [
        ("lad", 1e-3),
        ("lad", 0.1),
        ("splice", 1e-3),
        ("splice", 0.1),
    ]
    text = to_text(found)
    assert "refused: the smooth form of Lemma 1 needs an L-smooth f; the loss LAD is not." in text
    assert "VIOLATED" not in text
    assert found.files == []


def test_stand_ins_are_named(monkeypatch):
    """As on a machine that has none of the data files."""

    def load(name, directory=None, *, stand_in=False, download=True):
        assert stand_in
        return replace(small_problems.load(name), source="stand-in")

    monkeypatch.setattr(datasets, "load", load)
    said = []
    found = verify(["splice"], [0.1], iterations=40, say=said.append)
    assert {row.problem for row in found.rows} == {"splice (stand-in)"}
    assert any("--data" in line for line in said)


def test_a_violation_is_reported():
    bad = Row("lad", "Lemma 1", -1e-3, 7, 0.1, "groups", 1e-12, 30)
    printed = Row("lad", FALSE, -1e-3, 7, 0.1, "groups", 1e-12, 15)
    assert not Verification([bad]).holds
    assert "VIOLATED" in to_text(Verification([bad]))
    assert Verification([printed]).holds
    assert "violated, as it should be" in to_text(Verification([printed]))


@pytest.mark.slow  # because of the figure
@pytest.mark.peer
def test_files(tmp_path):
    found = verify(["lad"], [0.01, 0.1, 1.0], iterations=60, output=tmp_path / "new", **quiet)
    bound = [f"bound_against_truth.{ending}" for ending in ("pdf", "png", "csv")]
    assert [path.name for path in found.files] == [*bound, "inequalities.csv"]
    assert all(path.stat().st_size for path in found.files)
    table = np.genfromtxt(found.files[2], delimiter=",", names=True, dtype=None, encoding="utf8")
    assert len(table) == 3
    assert (table["truth"] <= table["bound_sum"]).all()
    assert (table["bound_sum"] <= table["bound_norm"]).all()
    parts = table["start"] + table["distance"] + table["steps"] + table["growth"]
    assert table["bound_sum"] == pytest.approx(parts, rel=1e-3)


@looped(
    "options",
    [
        {"problems": ["lasso"]},
        {"etas": [-1.0]},
        {"etas": [1e300]},
        {"etas": [1e-320]},
        {"iterations": 0},
    ],
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
