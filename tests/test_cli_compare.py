"""`adagrad-diff compare`: files of all kinds, a page, and a folder for each comparison."""

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mixed_table
from lacking import without
from waiting import wait_until

pytest.importorskip("click")
for needed in ("pandas", "sklearn", "xarray", "jinja2"):
    pytest.importorskip(needed)

pytestmark = pytest.mark.peer
SMALL = ["--rules", "AdaGradDiff,adagrad,dog", "--etas", "0.01:10:4", "--starts", "2"]
SMALL += ["--budget", "20"]


def everything(directory):
    """Contents by path, without pages, which have the time, and what is computed again."""
    paths = [path for path in Path(directory).rglob("*") if path.is_file()]
    changing = ("optimum.npz", "page.html", "report.html")
    return {path: path.read_bytes() for path in paths if path.name not in changing}


def embedded(page):
    """The data of a page, as the browser reads them."""
    return json.loads(
        re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.S)[1]
    )


ILL = ["compare", "mixed.csv", *mixed_table.target("ill")]


@pytest.mark.parametrize("name", ["ill", "grade", "score"])
def test_a_file_becomes_a_page(run, tmp_path, name, monkeypatch):
    out = "my report; $(rm x).html"
    command = ["compare", "mixed.csv", *mixed_table.target(name), *SMALL, "--json", "--out", out]
    monkeypatch.setattr(sys, "argv", ["adagrad-diff", *command])
    result = run(*command)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    loss = {"ill": "logistic", "grade": "multinomial", "score": "squared"}[name]
    assert found["title"].startswith(f"mixed.csv: {loss} loss, l1 penalty, alpha ")
    assert found["n_iter"] == 20
    assert {score["rule"] for score in found["scores"]} == {"AdaGradDiff", "AdaGrad", "DoG"}
    assert found["verdict"]
    about = dict(found["about"])
    assert about["Samples"] == "300"
    assert "Constant, and left out: 'constant'." in about["Notes"]
    page = (tmp_path / out).read_text(encoding="utf-8")
    assert "AdaGradDiff" in page
    shown = embedded(page)
    assert shown["f_star"] == found["f_star"]
    assert shlex.split(shown["command"][0]) == ["adagrad-diff", *command]
    content = embedded((tmp_path / found["results"] / "page.html").read_text(encoding="utf-8"))
    assert content["scores"] == found["scores"]
    fitted = run("fit", "mixed.csv", *mixed_table.target(name), "--json", "--tol", "1e-9")
    assert found["f_star"]["how"] == "certified"
    wanted = json.loads(fitted.stdout)["objective"]
    assert found["f_star"]["value"] == pytest.approx(wanted, rel=3e-9)


def test_names_are_just_names(run, tmp_path):
    """In the page, in sentences, and on the terminal."""
    made, odd = mixed_table.columns(80), mixed_table.ODD
    columns = {odd: made["ill"], "</script>\x1b[31m": np.full(80, 1), "x": made["x0"]}
    mixed_table.write(tmp_path / "<img\x1b[31m.csv", columns)
    result = run("compare", "<img\x1b[31m.csv", "--target", odd, *SMALL)
    assert result.exit_code == 0, result.output
    # Shown, not obeyed: click would hide it, but on no terminal.
    assert "<img\\x1b[31m.csv: logistic loss" in result.stdout
    assert "\x1b" not in result.output
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<img" not in page
    assert "&lt;img" in page
    assert page.count("</script>") == page.count("<script")
    refused = run("compare", "<img\x1b[31m.csv", "--target", "\x1b[31m", *SMALL)
    assert refused.exit_code == 2
    assert "\x1b" not in refused.output


def test_again_and_another(run, tmp_path):
    """The same command continues; another problem has its own folder; other files stay."""

    def folders():
        return [path for path in Path("report.results").iterdir() if path.is_dir()]

    first = run(*ILL, *SMALL)
    assert first.exit_code == 0, first.output
    assert "Results are kept in report.results/" in first.stderr
    folder = first.stdout.splitlines()[-1].strip()
    before = everything(".")
    again = run(*ILL, *SMALL)
    assert again.exit_code == 0
    assert f"This comparison was begun before and continues in {folder}." in again.stderr
    assert again.stdout == first.stdout
    assert everything(".") == before

    kept = Path(folder, "page.html")
    page = kept.read_bytes()
    assert page == Path("report.html").read_bytes()
    before = everything("report.results")
    mixed_table.write(tmp_path / "other.csv", mixed_table.columns(seed=1))
    others = (
        [*ILL, *SMALL, "--alpha", "0.5"],
        [*ILL, *SMALL, "--no-intercept"],
        [*ILL, *SMALL, "--no-standardize"],
        [*ILL, *SMALL, "--budget", "21"],
        ["compare", "other.csv", *ILL[2:], *SMALL],
    )
    for k, other in enumerate(others):
        another = run(*other)
        assert another.exit_code == 0, (other, another.output)
        assert len(folders()) == 2 + k
        assert page == kept.read_bytes() != Path("report.html").read_bytes()
    after = everything("report.results")
    assert all(after[path] == content for path, content in before.items())

    Path("report.html").write_text("mine")
    refused = run(*ILL, *SMALL)
    assert refused.exit_code == 2
    assert Path("report.html").read_text() == "mine"
    Path("report.html").unlink()
    other = run(*ILL, *SMALL, "--alpha", "0.5")
    assert other.exit_code == 0, other.output
    assert len(folders()) == 1 + len(others)


def test_a_time_as_budget(run):
    """As many iterations as the time allows, and the same number when it continues."""
    first, second = (run(*ILL, *SMALL[:-1], "2s", "--json") for _ in range(2))
    assert first.exit_code == second.exit_code == 0, first.output
    pattern = r"In 2 seconds there is time for about (\d+) iterations of each run"
    iterations = int(re.search(pattern, first.stderr)[1])
    assert iterations >= 10
    assert json.loads(first.stdout)["n_iter"] == json.loads(second.stdout)["n_iter"] == iterations


CONTENTS = {
    "empty": (b"", "is empty"),
    "one class": (b"x,y\n1,a\n2,a\n3,a\n", "is a in every row: there is nothing to learn"),
    "NaN": (b"x,y\n1,a\nnan,b\n3,a\n", "Column 'x' of 'd' has no usable value in row 2"),
    "no target": (b"x,z\n1,a\n2,b\n", "There is no column 'y'"),
    "names": (
        b"x,y\n" + b"".join(b"%d,n%d\n" % (j, j) for j in range(60)),
        "has 60 different values, 'n0', ",
    ),
    "HTML": (b"<html><body>Please log in</body></html>\n", "There is no column 'y'"),
}


def test_garbage(run, tmp_path):
    """One sentence, exit code 2, nothing else."""
    ends = []
    for kind, (content, sentence) in CONTENTS.items():
        (tmp_path / "d").write_bytes(content)
        ends.append(run("compare", "d", "--target", "y", *SMALL))
        assert sentence in ends[-1].stderr, (kind, ends[-1].stderr)
    ends += [run("compare", data, *SMALL) for data in ("nowhere", ".", "mixed.csv")]
    for end in ends:
        assert (end.exit_code, end.stdout, len(end.stderr.splitlines())) == (2, "", 1), end.output
        assert isinstance(end.exception, SystemExit)
    assert {path.name for path in tmp_path.iterdir()} == {"d", "mixed.csv"}


ANSWERS = {
    "words as labels": b"x,y\n1,cat\n2,dog\n3,cat\n5,dog\n",
    "a constant column": b"x,c,y\n1,7,0\n2,7,1\n3,7,0\n5,7,1\n",
    "two rows": b"x,y\n1,a\n2,b\n",
    "numbers": b"x,y\n1,0.5\n2,1.5\n4,2.5\n",
    "nothing to explain": b"x,y\n1,a\n1,b\n2,a\n2,b\n",
    "svmlight": b"1 1:1 2:3\n-1 1:2\n1 2:1\n-1 1:3\n",
}


def test_small_answers(run, tmp_path):
    for kind, content in ANSWERS.items():
        (tmp_path / "d").write_bytes(content)
        result = run("compare", "d", *SMALL, "--out", f"{kind}.html")
        assert result.exit_code == 0, (kind, result.output)
        assert (tmp_path / f"{kind}.html").stat().st_size < 2e6


def test_bad_options(run, tmp_path):
    """Several of them, and a loss that does not exist, are reported together."""
    wrong = {
        "--rules": {"AdaGrad,SGDX": "There is no rule 'sgdx'", "kat": "Did you mean 'kate'?"},
        "--budget": dict.fromkeys(("soon", "0", "1.5", "-3s"), "--budget must be a number of iter"),
        "--etas": dict.fromkeys(("1:2", "0,1", "a,b", "1:inf:3", "nan"), "--etas must be positive"),
        "--out": dict.fromkeys((".", "mixed.csv"), "which exists and is not a report"),
    }
    for option, values in wrong.items():
        for value, sentence in values.items():
            result = run(*ILL, option, value, "--loss", "hingee")
            assert result.exit_code == 2, (option, value, result.output)
            assert sentence in result.stderr, (option, value, result.stderr)
            assert "Did you mean 'hinge'?" in result.stderr
    below = run(*ILL, *SMALL, "--out", "mixed.csv/report.html")
    assert (below.exit_code, "directory cannot be written" in below.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["mixed.csv"]


def test_damaged_results(run):
    """What cannot be read is computed again: it holds nothing that is not known."""
    first = run(*ILL, *SMALL)
    folder = Path(first.stdout.splitlines()[-1].strip())
    kept = (folder / "run.json").read_text()
    for content in ("{", "[1]", "{}"):
        (folder / "run.json").write_text(content)
        assert run(*ILL, *SMALL).stdout == first.stdout
        assert (folder / "run.json").read_text() == kept


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.usefixtures("default_handler")
def test_interrupted_and_resumed(run, tmp_path):
    """After Ctrl-C the same command gives the numbers of an uninterrupted run."""
    arguments = [*ILL, *SMALL[:-1], "4000", "--out"]
    process = subprocess.Popen(
        [sys.executable, "-m", "adagrad_diff", *arguments, "cut.html"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    sweeps = "cut.results/*/checkpoint/*/sweep.npz"
    wait_until(lambda: list(tmp_path.glob(sweeps)) or process.poll() is not None, seconds=300)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert (out, "Traceback" in err) == ("", False)
    assert "the same command continues." in err.splitlines()[-1]
    assert not (tmp_path / "cut.html").exists()
    resumed, whole = run(*arguments, "cut.html", "--json"), run(*arguments, "whole.html", "--json")
    assert resumed.exit_code == whole.exit_code == 0, resumed.output
    assert "begun before and continues in cut.results/" in resumed.stderr
    one, other = json.loads(resumed.stdout), json.loads(whole.stdout)
    assert {**one, "report": 0, "results": 0} == {**other, "report": 0, "results": 0}


def test_what_is_not_installed_is_named(run, tmp_path, monkeypatch):
    """Before anything is computed, with its extra. A new interpreter never had pandas."""
    compare, fit = [*ILL, *SMALL], ["fit", *ILL[1:]]
    for missing, commands in (
        ("pandas", [compare, fit]),
        ("sklearn", [compare, fit]),
        ("jinja2", [compare]),
        ("xarray", [compare]),
    ):
        if missing == "pandas":
            ends = without(missing, *commands, cwd=tmp_path)
        else:
            with monkeypatch.context() as patch:
                patch.setitem(sys.modules, missing, None)
                found = [run(*command) for command in commands]
            ends = [(end.exit_code, end.stdout, end.stderr) for end in found]
        for code, out, err in ends:
            assert (code, out) == (2, ""), (missing, err)
            sentence = (
                f"This needs {missing}, which is not installed: pip install 'adagrad-diff[cli]'"
            )
            assert f"Error: {sentence}" in err, err


def test_a_scheduler_that_does_not_answer(run, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("adagrad_diff.cli.compare.CONNECT_TIME", "0.1s")
    for address in ("tcp://127.0.0.1:9", "nonsense"):
        result = run(*ILL, *SMALL, "--scheduler", address)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert f"--scheduler '{address}' does not answer" in result.stderr


@pytest.mark.slow
def test_a_cluster_computes_the_same(run):
    distributed = pytest.importorskip("distributed")
    here = run(*ILL, *SMALL, "--json")
    with distributed.LocalCluster(1, processes=False, dashboard_address=None) as cluster:
        options = ["--out", "there.html", "--scheduler", cluster.scheduler_address]
        there = run(*ILL, *SMALL, "--json", *options)
    assert there.exit_code == 0, there.output
    assert json.loads(there.stdout)["scores"] == json.loads(here.stdout)["scores"]
