"""What the reproduction shows, small and in the committed numbers: wider ranges of good etas."""

import csv
from pathlib import Path

import pytest

from adagrad_diff.experiments.paper import PROBLEMS, study, table

pytestmark = pytest.mark.peer
ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
WIDER = {
    "hinge": 1.0,
    "lad": 1.0,
    "splice": 0.4,
}  # decades with a gap below 1e-2, AdaGrad-Diff's beyond AdaGrad's
FACTOR = 1.6  # between our reference eta and the paper's


def check(rows, name, slack=0.0):
    ours, theirs = ({k: row[k] for k in row} for row in rows)
    ratio = float(ours["reference_eta"]) / float(ours["paper_eta"])
    assert 1 / FACTOR < ratio < FACTOR
    if name in WIDER:
        assert (
            float(ours["decades_below_1e-2"]) - float(theirs["decades_below_1e-2"])
            >= WIDER[name] - slack
        )


@pytest.mark.parametrize("name", ["hinge", "lad", "splice", "2moons"])
def test_at_a_small_size(name):
    options = {"data": DATA, "download": False} if name == "splice" else {}
    if options and not (DATA / "splice.t").exists():
        pytest.skip("the LIBSVM files are not here")
    found = study(PROBLEMS[name](starts=1, **options), etas=24)
    frame = table.summary({name: found})
    rows = [
        frame[frame.method == method].iloc[0].to_dict() for method in ("AdaGrad-Diff", "AdaGrad")
    ]
    check(rows, name, slack=0.15)  # the grid is coarse, the starts are few


def committed(name):
    with open(ROOT / "docs" / "reproduction" / "table.csv") as file:
        rows = {row["method"]: row for row in csv.DictReader(file) if row["problem"] == name}
    assert rows["AdaGrad"]["real"] == "True"
    return [rows["AdaGrad-Diff"], rows["AdaGrad"]]


@pytest.mark.parametrize("name", ["hinge", "lad", "splice", "2moons"])
def test_committed_numbers(name):
    check(committed(name), name)


def test_committed_numbers_of_news20():
    """Its reference eta is not the paper's, and the page says so; the wider range comes out."""
    ours, theirs = committed("news20")
    assert float(ours["decades_below_1e-2"]) > float(theirs["decades_below_1e-2"]) + 0.5
    assert f"{float(ours['reference_eta']):.2f}" in (ROOT / "docs" / "reproduction.md").read_text()
