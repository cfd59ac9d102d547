"""`adagrad-diff compare`: files of all kinds, a page, folders that nobody else's results are lost in."""

import json
import os
import re
import shlex
import shutil
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
SMALL = [
    "--rules",
    "AdaGradDiff,adagrad,dog",
    "--etas",
    "0.01:10:4",
    "--starts",
    "2",
    "--budget",
    "20",
]


def everything(directory):
    return {path: path.read_bytes() for path in Path(directory).rglob("*") if path.is_file()}


def embedded(page):
    """The data of a page, as the browser reads them."""
    return json.loads(
        re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.S)[1]
    )


@pytest.mark.parametrize("name", ["ill", "grade", "score"])
def test_a_file_becomes_a_page(run, tmp_path, name):
    result = run(
        "compare", "mixed.csv", *mixed_table.target(name), *SMALL, "--standardize", "--json"
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    loss = {"ill": "logistic", "grade": "multinomial", "score": "squared"}[name]
    assert found["title"].startswith(f"mixed.csv: {loss} loss, l1 penalty, alpha ")
    assert found["n_iter"] == 20
    assert {score["rule"] for score in found["scores"]} == {"AdaGradDiff", "AdaGrad", "DoG"}
    assert found["verdict"]
    about = dict(found["about"])
    assert (about["Samples"], about["Left out"]) == ("300", "constant (constant)")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "AdaGradDiff" in page
    assert embedded(page)["f_star"] == found["f_star"]
    content = json.loads((tmp_path / found["results"] / "content.json").read_text())
    assert content["scores"] == found["scores"]
    fitted = run(
        "fit", "mixed.csv", *mixed_table.target(name), "--standardize", "--json", "--tol", "1e-9"
    )
    model = json.loads(fitted.stdout)
    assert found["f_star"]["how"] == "certified"
    assert found["f_star"]["value"] == pytest.approx(
        model["objective"], rel=3e-9
    )  # two roads to one optimum


def test_names_are_just_names(run, tmp_path):
    """In the page, in sentences, and on the terminal."""
    made = mixed_table.columns(80)
    odd = mixed_table.ODD
    mixed_table.write(
        tmp_path / "<img\x1b[31m.csv",
        {odd: made["ill"], "</script>\x1b[31m": np.full(80, 1), "x": made["x0"]},
    )
    result = run("compare", "<img\x1b[31m.csv", "--target", odd, *SMALL)
    assert result.exit_code == 0, result.output
    assert (
        "<img\\x1b[31m.csv: logistic loss" in result.stdout
    )  # shown, not obeyed: click would hide it, but on no terminal
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<img" not in page
    assert "&lt;img" in page
    assert page.count("</script>") == page.count("<script")
    refused = run("compare", "<img\x1b[31m.csv", "--target", "\x1b[31m", *SMALL)
    assert refused.exit_code == 2
    assert "\x1b" not in refused.output


def test_again_and_another(run, tmp_path):
    """The same command goes on, another problem has its own folder, where its page stays; so does a file of the user's own."""
    first = run("compare", "mixed.csv", *mixed_table.target("ill"), *SMALL)
    assert first.exit_code == 0, first.output
    assert "Results are kept in report.results/" in first.stderr
    assert "AdaGradDiff" in first.stdout
    folder = first.stdout.splitlines()[-1].strip()
    before = everything(".")
    again = run("compare", "mixed.csv", *mixed_table.target("ill"), *SMALL)
    assert again.exit_code == 0
    assert f"This comparison was begun before: it goes on in {folder}." in again.stderr
    assert again.stdout == first.stdout
    after = everything(".")
    changed = {path.name for path in after if before.get(path) != after[path]}
    assert changed <= {
        "report.html",
        "content.json",
        "page.html",
        "pages.json",
    }  # which have the date

    kept = Path(folder, "page.html")
    assert kept.read_bytes() == Path("report.html").read_bytes()
    others = (
        ["--alpha", "0.5"],
        ["--penalty", "l2"],
        ["--no-intercept"],
        ["--drop", "x3"],
        ["--standardize"],
    )
    before = everything("report.results")
    for k, other in enumerate(others):
        another = run("compare", "mixed.csv", *mixed_table.target("ill"), *SMALL, *other)
        assert another.exit_code == 0, (other, another.output)
        assert (
            "report.html shows another comparison now; a copy of that page stays in report.results/"
            in another.stderr
        )
        assert len([path for path in Path("report.results").iterdir() if path.is_dir()]) == 2 + k
        assert kept.read_bytes() != Path("report.html").read_bytes()
    after = everything("report.results")
    assert {path.name for path in before if before[path] != after[path]} == {"pages.json"}
    before = everything(".")
    moved = run(
        "compare",
        "mixed.csv",
        *mixed_table.target("ill"),
        *SMALL,
        "--alpha",
        "0.5",
        "--out",
        "sub/two.html",
    )
    assert moved.exit_code == 0, moved.output
    assert {
        path: content for path, content in everything(".").items() if "sub" not in path.parts
    } == before

    Path("report.html").write_text("mine")
    refused = run("compare", "mixed.csv", *mixed_table.target("ill"), *SMALL)
    assert refused.exit_code == 2
    assert Path("report.html").read_text() == "mine"
    Path("report.html").unlink()
    other = run("compare", "mixed.csv", *mixed_table.target("ill"), *SMALL, "--alpha", "0.5")
    assert other.exit_code == 0, other.output
    assert len([path for path in Path("report.results").iterdir() if path.is_dir()]) == 1 + len(
        others
    )


def test_a_file_that_has_changed_is_another_problem(run, tmp_path):
    first = run("compare", "mixed.csv", *mixed_table.target("ill"), *SMALL, "--alpha", "0.1")
    mixed_table.write(tmp_path / "mixed.csv", mixed_table.columns(seed=1))
    other = run(
        "compare",
        "mixed.csv",
        *mixed_table.target("ill"),
        *SMALL,
        "--alpha",
        "0.1",
        "--out",
        "b.html",
    )
    assert first.exit_code == other.exit_code == 0
    assert (
        first.stdout.splitlines()[-1].split("/")[-1] != other.stdout.splitlines()[-1].split("/")[-1]
    )


def test_a_time_as_budget(run):
    """As many iterations as the time allows, and the same number when it goes on."""
    arguments = ["compare", "mixed.csv", *mixed_table.target("ill"), *SMALL[:-1], "0.5s", "--json"]
    first, second = run(*arguments), run(*arguments)
    assert first.exit_code == second.exit_code == 0, first.output
    iterations = int(
        re.search(r"In 0.5 seconds there is time for (\d+) iterations of each run", first.stderr)[1]
    )
    assert iterations >= 1
    assert json.loads(first.stdout)["n_iter"] == json.loads(second.stdout)["n_iter"] == iterations


CONTENTS = {
    "empty": (b"", "is empty"),
    "binary": (bytes(range(256)) * 8, "is a binary file"),
    "one class": (
        b"x,y\n1,a\n2,a\n3,a\n",
        "has the same value in every row, 'a': there is nothing to learn",
    ),
    "NaN": (b"x,y\n1,a\nnan,b\n3,a\n", "Column 'x' of 'd' has no value in row 2"),
    "target NaN": (b"x,y\n1,a\n2,\n3,b\n", "The target 'y' of 'd' has no value in row 2"),
    "no target": (b"x,z\n1,a\n2,b\n", "has no column 'y', which --target names"),
    "two names": (b"x,x,y\n1,2,a\n2,3,b\n", "two columns called 'x'"),
    "dates": (b"x,day,y\n1,2024-02-01,a\n2,2024-02-02,b\n", "Column 'day' of 'd' holds dates"),
    "names": (
        b"x,y\n" + b"".join(b"%d,n%d\n" % (j, j) for j in range(60)),
        "has 60 different values in 60 rows: those are no classes",
    ),
    "ragged": (b"x,y\n1,a\n2,b,c,d\n", "is not a table"),
    "constant": (b"x,y\n1,a\n1,b\n1,a\n", "no column beside the target 'y' that is not constant"),
    "HTML": (b"<html><body>Please log in</body></html>\n", "has no rows"),
}


def test_garbage(run, tmp_path):
    """One sentence, exit code 2, nothing else."""
    for kind, (content, sentence) in CONTENTS.items():
        (tmp_path / "d").write_bytes(content)
        result = run("compare", "d", "--target", "y", *SMALL)
        assert result.exit_code == 2, (kind, result.output)
        assert sentence in result.stderr, (kind, result.stderr)
        assert result.stdout == ""
        assert len(result.stderr.splitlines()) == 1, (kind, result.stderr)
        assert isinstance(result.exception, SystemExit)
    for arguments in (["nowhere"], ["."], ["mixed.csv"]):
        result = run("compare", *arguments, *SMALL)
        assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1), result.output
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
        target = [] if kind == "svmlight" else ["--target", "y"]
        result = run("compare", "d", *target, *SMALL, "--out", f"{kind}.html")
        assert result.exit_code == 0, (kind, result.output)
        assert (tmp_path / f"{kind}.html").stat().st_size < 2e6


def test_bad_options(run, tmp_path):
    target = mixed_table.target("ill")
    for options, sentence in (
        (["--rules", "AdaGrad,SGDX"], "There is no rule 'SGDX'. The rules are: "),
        (
            ["--budget", "soon"],
            "--budget must be a number of iterations, such as 500, or a time, such as 60s or 5min",
        ),
        (["--budget", "0"], "--budget must be"),
        (["--budget", "1.5"], "--budget must be"),
        (["--etas", "1:2"], "--etas must be numbers with commas, or from:to:number"),
        (["--etas", "0,1"], "must be a positive number"),
        (["--etas", "a,b"], "--etas must be a number"),
        (["--out", "."], "which is a directory"),
        (["--out", "mixed.csv"], "is there already"),
        (["--out", "mixed.csv/report.html"], "cannot be written"),
    ):
        result = run("compare", "mixed.csv", *target, *options)
        assert result.exit_code == 2, (options, result.output)
        assert sentence in result.stderr, (options, result.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["mixed.csv"]


def test_damaged_results(run):
    arguments = ["compare", "mixed.csv", *mixed_table.target("ill"), *SMALL]
    folder = Path(run(*arguments).stdout.splitlines()[-1].strip())
    for name, content in (("run.json", "{"), ("run.json", "[1]"), ("run.json", "{}")):
        kept = (folder / name).read_text()
        (folder / name).write_text(content)
        result = run(*arguments)
        assert result.exit_code == 2, result.output
        assert "choose another --out" in result.stderr
        (folder / name).write_text(kept)
    assert run(*arguments).exit_code == 0


def test_ctrl_c_when_the_first_chunk_is_stored(run, monkeypatch):
    replace = os.replace

    def interrupted(source, target):
        if "chunk-" in str(target):
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    result = run("compare", "mixed.csv", *mixed_table.target("ill"), *SMALL)
    assert (result.exit_code, result.stdout) == (130, "")
    last = result.stderr.splitlines()[-1]
    assert re.fullmatch(
        r"Interrupted\. What is finished is kept in report\.results/\w{12}; the same command goes on\.",
        last,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.usefixtures("default_handler")
def test_interrupted_and_resumed(run, tmp_path):
    """A real Ctrl-C while it computes, then the same command: the numbers of a run that was never interrupted."""
    arguments = ["compare", "mixed.csv", *mixed_table.target("ill"), *SMALL[:-1], "4000", "--out"]
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
    assert "the same command goes on." in err.splitlines()[-1]
    assert not (tmp_path / "cut.html").exists()
    resumed, whole = run(*arguments, "cut.html", "--json"), run(*arguments, "whole.html", "--json")
    assert resumed.exit_code == whole.exit_code == 0, resumed.output
    assert "it goes on in cut.results/" in resumed.stderr
    one, other = json.loads(resumed.stdout), json.loads(whole.stdout)
    assert {**one, "report": 0, "results": 0} == {**other, "report": 0, "results": 0}


def test_the_page_says_how_to_run_it_again(run, tmp_path, monkeypatch):
    arguments = [
        "compare",
        "mixed.csv",
        *mixed_table.target("ill"),
        *SMALL,
        "--out",
        "my report; $(rm x).html",
    ]
    monkeypatch.setattr(sys, "argv", ["adagrad-diff", *arguments])
    assert run(*arguments).exit_code == 0
    content = embedded((tmp_path / arguments[-1]).read_text(encoding="utf-8"))
    assert shlex.split(content["command"][0]) == ["adagrad-diff", *arguments]


@pytest.mark.slow
def test_progress_with_the_time_left(run, tmp_path):
    """On a terminal, and only there."""
    pty = pytest.importorskip("pty")
    termios = pytest.importorskip("termios")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    command = [
        sys.executable,
        "-m",
        "adagrad_diff",
        "compare",
        "mixed.csv",
        *mixed_table.target("ill"),
        *SMALL[:-1],
        "300",
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=theirs
    ) as process:
        os.close(theirs)
        said = b""
        with os.fdopen(ours, "rb", buffering=0) as screen:
            while True:
                try:
                    part = screen.read(4096)
                except OSError:  # the other end is closed
                    break
                if not part:
                    break
                said += part
    assert process.returncode == 0, said
    assert re.search(rb"rules with a step size.*\d+%.*\[\d\d:\d\d<\d\d:\d\d", said), said


def test_what_is_not_installed_is_named(run, tmp_path, monkeypatch):
    """Before anything is computed, with the extra that brings it. An interpreter of its own never had pandas."""
    compare, fit = (
        ["compare", "mixed.csv", *mixed_table.target("ill"), *SMALL],
        ["fit", "mixed.csv", *mixed_table.target("ill")],
    )
    for missing, extra, commands in (
        ("pandas", "paper", [compare, fit]),
        ("sklearn", "sklearn", [fit]),
        ("jinja2", "report", [compare]),
        ("xarray", "sweep", [compare]),
    ):
        if missing == "pandas":
            ends = without(missing, *commands, cwd=tmp_path)
        else:
            with monkeypatch.context() as patch:
                patch.setitem(sys.modules, missing, None)
                ends = [
                    (end.exit_code, end.stdout, end.stderr)
                    for end in (run(*command) for command in commands)
                ]
        for code, out, err in ends:
            assert (code, out) == (2, ""), (missing, err)
            assert (
                f"Error: This needs {missing}, which is not installed: pip install 'adagrad-diff[{extra}]'"
                in err
            ), err


def test_real_data(run):
    real = Path(__file__).parents[2] / "shared" / "data"
    if not (real / "a9a").exists():
        pytest.skip("the LIBSVM files are not here")
    small = [
        "--rules",
        "AdaGradDiff,AdaGrad",
        "--etas",
        "0.1,1",
        "--starts",
        "1",
        "--budget",
        "10",
        "--json",
    ]
    one = run("compare", "a9a", "--data", str(real), *small, "--out", "one.html")
    two = run("compare", str(real / "a9a"), *small, "--out", "two.html")
    assert one.exit_code == two.exit_code == 0, (one.output, two.output)
    assert json.loads(one.stdout)["scores"] == json.loads(two.stdout)["scores"]
    assert dict(json.loads(one.stdout)["about"])["Samples"] == "32561"


@pytest.mark.slow
def test_killed_wherever_a_file_gets_its_name(run, tmp_path, monkeypatch):
    """Before and after: the same command goes on to the same numbers, and leaves nothing else behind."""
    from checkpointing import Crash, crash_at

    least = ["--rules", "AdaGradDiff", "--etas", "0.1:1:2", "--starts", "1", "--budget", "5"]
    arguments = [
        "compare",
        "mixed.csv",
        *mixed_table.target("ill"),
        *least,
        "--out",
        "sub/report.html",
    ]
    volatile = ("created", "command")

    def numbers():
        found = json.loads(next(Path("sub").rglob("content.json")).read_text())
        return {name: part for name, part in found.items() if name not in volatile}

    assert run(*arguments).exit_code == 0
    whole, names = numbers(), sorted(map(str, everything("sub")))
    for moment in range(1, 30):
        for before in (True, False):
            shutil.rmtree("sub")
            with monkeypatch.context() as patch:
                crash_at(patch, moment, before=before)
                try:
                    done = run(*arguments)
                except Crash:
                    done = None
            if done is None or isinstance(done.exception, Crash):
                for path in Path("sub").rglob("*.partial"):
                    pytest.fail(f"{path} is left by an exception")
                done = run(*arguments)
                assert done.exit_code == 0, (moment, before, done.output)
            assert done.exit_code == 0
            assert numbers() == whole
            assert sorted(map(str, everything("sub"))) == names
        if moment > len(names) and done.exception is None:
            break


def test_a_half_written_optimum_is_no_foreign_file(run, tmp_path):
    """What a kill has left before there was anything else."""
    arguments = ["compare", "mixed.csv", *mixed_table.target("ill"), *SMALL]
    assert run(*arguments).exit_code == 0
    folder = next(Path("report.results").rglob("optimum.npz")).parent
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / f"optimum.npz.{'0f' * 8}.partial").write_bytes(b"half")
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    assert not list(folder.rglob("*.partial"))
