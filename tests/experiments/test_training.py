"""Training functions: scores, an extended grid, divergence, processes, resuming after a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from adagrad_diff import sensitivity
from looping import looped
from training_runs import fails, final_only, train

pytestmark = pytest.mark.peer
RATES = [0.01, 0.1, 1.0]
METHODS = ["gradient", "sign"]


@pytest.fixture(scope="module")
def found():
    return sensitivity(train, rules=METHODS, etas=RATES, starts=2)


def test_scores_are_those_of_the_losses(found):
    """Gradient descent on x^2 from 3 and 3.5: losses (1 - 2 lr)^(2 n) x0^2; lr = 10 diverges."""
    assert found.etas.tolist() == [0.01, 0.1, 1.0, 10.0]  # the sign method is best at 1
    start, initial = np.array([9.0, 12.25]), 10.625
    losses = np.array([(1 - 2 * lr) ** 40 * start for lr in RATES] + [[initial] * 2])
    np.testing.assert_allclose(found.gap().sel(rule="gradient"), losses)
    score, mean = found.score("gradient"), np.minimum(losses, initial).mean(axis=1)
    assert score["best_eta"] == 0.1
    assert score["best_gap"] == pytest.approx(losses.mean(axis=1).min())
    assert score["sensitivity"] == pytest.approx(mean.mean() - mean.min())
    assert score["centered"] == pytest.approx(mean[:3].mean() - mean.min())
    assert score["expected_best_1"] == pytest.approx(mean.mean())
    assert found.score("gradient", "best")["best_eta"] == 0.1
    with pytest.raises(ValueError, match="'iterate' parameter of gap"):
        found.gap("average")


def test_divergence_counts_as_the_initial_loss():
    found = sensitivity(train, rules=["gradient"], etas=[0.1, 1.2, 2.0], starts=2)
    assert found.gap().sel(rule="gradient", eta=2.0).values.tolist() == [10.625, 10.625]
    assert found.failed.sel(eta=2.0).all()
    assert "2 of 8 runs) counts as the initial loss, 10.62" in found.f_star.sentence
    run = next(run for run in found.content()["runs"] if run["eta"] == 2.0)
    assert run["failed"]
    assert run["last"] == [10.625, 10.625]
    numbers = sensitivity(final_only, rules=["gradient"], etas=[1e-3, 0.1, 2.0], starts=2)
    largest = (1 - 0.002) ** 40 * 12.25  # at the smallest rate, where hardly anything happens
    assert numbers.gap().sel(eta=2.0).values[0] == pytest.approx([largest] * 2)
    assert numbers.n_iter == 0


def test_the_grid_is_extended_at_both_ends():
    shifted = partial(best_at, {"low": 1e-4, "high": 30.0})
    found = sensitivity(shifted, rules=["low", "high"], etas=[1e-2, 1e-1, 1.0], starts=1)
    assert found.etas.tolist() == [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0]
    assert found.score("low")["best_eta"] == 1e-4
    assert found.score("high")["best_eta"] == 100.0 or found.score("high")["best_eta"] == 10.0
    assert found.title.endswith("best_at")
    far = partial(best_at, {"low": 1e-30})
    assert len(sensitivity(far, rules="low", etas=[1e-2, 1e-1], starts=1).etas) == 2 + 4
    assert len(sensitivity(far, rules="low", etas=[1e-2], starts=1).etas) == 1


def best_at(places, method, lr, seed, **options):
    return [100.0, abs(np.log10(lr / places[method]))]


def test_tables_page_and_figure(found, tmp_path):
    lines = str(found).splitlines()
    assert lines[0].split()[:3] == ["method", "within", "2x"]
    assert {line.split()[0] for line in lines[2:4]} == set(METHODS)
    assert "within 2 times the smallest loss" in str(found).replace("\n", " ")
    assert found.markdown().count("\n") == 4
    assert {"decades_1.1x", "sensitivity", "centered", "expected_best_4"} <= set(found.table())
    content = json.loads(json.dumps(found.content(), allow_nan=False))
    assert content["gap_name"] == "loss"
    assert set(content["tables"]) == {"last", "best"}
    path = found.report(tmp_path / "report.html")
    assert "as the function returns it" in path.read_text(encoding="utf-8")
    assert found.plot().axes[0].get_ylabel() == "loss, last iterate"


def test_one_process_and_two_give_the_same_table(found, tmp_path):
    options = {"rules": METHODS, "etas": RATES, "starts": 2}
    two = sensitivity(train, **options, n_jobs=2, checkpoint=tmp_path)
    assert str(two) == str(found)
    assert two.data.identical(found.data)
    again = sensitivity(train, **options, checkpoint=tmp_path)
    assert again.data.identical(found.data)


def test_a_killed_study_resumes(tmp_path):
    """No completed run is repeated, and the line that was cut off is."""
    code = "from training_runs import *; from adagrad_diff import sensitivity; "
    code += (
        "sensitivity(slow, rules=['gradient'], etas=[0.01, 0.1, 1.0], starts=2, checkpoint='kept')"
    )
    here = Path(__file__).parents[1] / "cases"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(here)])}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment)
    log = tmp_path / "log"
    deadline = time.monotonic() + 60
    while not (log.exists() and log.read_text().count("\n") >= 4):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    file = tmp_path / "kept" / "runs.jsonl"
    done = [json.loads(line)[0] for line in file.read_text().splitlines()[2:]]
    assert len(done) >= 3
    with open(file, "a") as half:
        half.write('\n[["gradient", 1.0, ')
    log.unlink()
    again = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    assert again.returncode == 0
    begun = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(begun) == 6 - len(done)
    assert not [run for run in begun if run in done]


def test_checkpoints_of_other_functions(tmp_path):
    sensitivity(train, rules="gradient", etas=[0.1], starts=1, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="belongs to another training function"):
        sensitivity(final_only, rules="gradient", etas=[0.1], starts=1, checkpoint=tmp_path)
    changed = partial(train, steps=1)
    with pytest.raises(ValueError, match="belongs to another training function"):
        sensitivity(changed, rules="gradient", etas=[0.1], starts=1, checkpoint=tmp_path)


@looped(
    ("options", "error", "text"),
    [
        ({"rules": None}, TypeError, "'rules' must be the names of methods"),
        ({"rules": [3]}, TypeError, "'rules' must be the names of methods"),
        ({"etas": [-1.0]}, ValueError, "'etas' parameter of sensitivity must be a positive number"),
        ({"starts": 0}, ValueError, "'starts' parameter of sensitivity must be an integer >= 1"),
        ({"loss": lambda method, lr, seed: []}, ValueError, "returned no loss"),
    ],
)
def test_wrong_arguments(options, error, text):
    with pytest.raises(error, match=text):
        sensitivity(**{"loss": train, "rules": "gradient", "etas": [0.1], **options})


def test_errors_say_which_run_it_was():
    with pytest.raises(RuntimeError) as caught:
        sensitivity(fails, rules="gradient", etas=[0.1])
    assert caught.value.__notes__ == [
        "This was method 'gradient' with learning rate 0.1 and seed 0."
    ]


def test_from_the_command_line(run, monkeypatch):
    """MODULE:FUNCTION in place of a file: the same table, a page, and no run is repeated."""
    source = Path(__file__).parents[1] / "cases" / "training_runs.py"
    Path("mine.py").write_text(source.read_text())
    Path("broken.py").write_text("def train(:")
    monkeypatch.syspath_prepend("")
    arguments = [
        "compare",
        "mine:slow",
        "--rules",
        "gradient, sign",
        "--etas",
        "0.01,0.1",
        "--starts",
        "1",
    ]
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    expected = sensitivity(train, rules=["gradient", "sign"], etas=[0.01, 0.1], starts=1)
    assert str(expected).splitlines()[2] in done.stdout
    assert (
        "<h1>How much does the learning rate matter? slow</h1>" in Path("report.html").read_text()
    )
    begun = Path("log").read_text()
    again = json.loads(run(*arguments, "--json").stdout)
    assert Path("log").read_text() == begun
    assert again["scores"][0]["best_gap"] == expected.scores[0]["best_gap"]
    for wrong, text in (
        ([*arguments, "--out", "mine.py"], "'mine.py', which exists and is not a report"),
        (["compare", "mine:nothing", "--rules", "a"], "There is no training function mine:nothing"),
        (
            ["compare", "nowhere:train", "--rules", "a"],
            "There is no training function nowhere:train",
        ),
        (["compare", "mine:slow"], "--rules must name the methods of mine:slow"),
        (
            ["compare", "mine:fails", "--rules", "a"],
            "mine:fails raised RuntimeError: out of memory",
        ),
        (["compare", "broken:train", "--rules", "a"], "There is no training function broken:train"),
    ):
        refused = run(*wrong)
        assert refused.exit_code == 2
        assert text in refused.stderr
