"""The command line, as a user meets it."""

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lacking import without

click_testing = pytest.importorskip("click.testing")
from adagrad_diff import datasets  # noqa: E402
from adagrad_diff.cli import main  # noqa: E402
from adagrad_diff.experiments.paper import reproduction  # noqa: E402

pytestmark = pytest.mark.peer
TINY = ["--etas", "5", "--starts", "2"]
BRIEF = 100  # iterations instead of 1000


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a command in an empty directory, with an empty cache, no network and few iterations."""
    for name in ("2moons", "hinge", "lad", "splice"):
        monkeypatch.setitem(reproduction.RUN_SCALES["quick"], name, (6, {"n_iter": BRIEF}))
    monkeypatch.setitem(reproduction.RUN_SCALES["quick"], "news20", (6, {"n_iter": 3}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ADAGRAD_DIFF_DATA", raising=False)
    monkeypatch.setattr(datasets._registry, "BASE_URL", "https://127.0.0.1:9/")
    return lambda *args: click_testing.CliRunner().invoke(main, list(args))


@pytest.fixture
def interrupted(monkeypatch):
    """Ctrl-C when the first file gets its name."""

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)


def contents(directory):
    return {
        p.name: hashlib.sha256(p.read_bytes()).hexdigest()
        for p in Path(directory).iterdir()
        if p.is_file()
    }


def commands(group, path=()):
    """Every command with the words that lead to it."""
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


@pytest.mark.parametrize("width", [80, 200])
def test_help_is_whole(run, monkeypatch, width):
    """Nothing is cut, or wider than the terminal or 100 characters."""
    monkeypatch.setattr(
        "shutil.get_terminal_size", lambda *args, **options: os.terminal_size((width, 24))
    )
    for path, command in commands(main):
        text = run(*path, "--help").output
        assert max(map(len, text.splitlines())) <= min(width, 100), text
        assert not re.search(r"\w\.\.\.$", text, re.MULTILINE), text
        if path:
            assert len(command.get_short_help_str(1000)) <= 60


def test_info(run):
    info = run("info")
    assert info.exit_code == 0
    for package in ("numpy", "scikit-learn", "torch", "jax", "optax", "dask"):
        assert f"  {package} " in info.stdout


@pytest.mark.parametrize("command", [("where",), ("fetch", "splice")])
def test_a_data_set_that_is_none(run, command):
    """The message is about what was typed, and nothing is fetched before it."""
    refused = run("datasets", *command, "nonsense")
    assert refused.exit_code == 1
    assert refused.stderr.startswith(
        "Error: There is no data set 'nonsense'. Choose one of: 'splice.t', 'splice', "
    )
    assert refused.stdout == ""


def test_a_reader_that_has_read_enough():
    """As in `adagrad-diff datasets list | head -0`."""
    end, beginning = os.pipe()
    os.close(end)
    command = [sys.executable, "-m", "adagrad_diff", "datasets", "list"]
    done = subprocess.run(
        command, stdout=beginning, stderr=subprocess.PIPE, text=True, timeout=120, check=False
    )
    os.close(beginning)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.usefixtures("unsaved")
def test_reproduce(run, tmp_path):
    result = run("reproduce", "2moons", *TINY, "--out", "out")
    assert result.exit_code == 0, result.output
    assert "AdaGrad-Diff" in result.stdout
    assert "5 etas x 2 starts" in result.stderr
    named = [line.strip() for line in result.stdout.split("Files:")[1].splitlines() if line.strip()]
    assert {Path(name).name for name in named} >= {
        "fig2.pdf",
        "fig2.png",
        "fig2.csv",
        "figA_2moons.png",
        "table.csv",
        "table.md",
        "report_2moons.html",
    }
    assert all((tmp_path / name).stat().st_size for name in named)

    before = contents("out")
    refused = run("reproduce", "2moons", *TINY, "--out", "out")
    assert refused.exit_code == 1
    assert "--resume" in refused.stderr
    assert contents("out") == before

    again = run("reproduce", "2moons", *TINY, "--out", "out", "--resume")
    assert again.exit_code == 0
    same = {name for name, digest in contents("out").items() if before[name] == digest}
    assert same >= before.keys() - {"run.json", "report_2moons.html"}  # which have the date


@pytest.mark.usefixtures("unsaved")
def test_results_of_another_problem_stay(run, tmp_path):
    first = run("reproduce", "2moons", *TINY, "--out", "out")
    assert first.exit_code == 0, first.output
    table, picture = Path("out/table.csv").read_text(), Path("out/figA_2moons.csv").read_text()
    second = run("reproduce", "lad", "--etas", "3", "--starts", "2", "--out", "out", "--resume")
    assert second.exit_code == 0, second.output
    assert "out holds 2moons as well: figures, table and pages show all." in second.stderr
    assert set(table.splitlines()) < set(Path("out/table.csv").read_text().splitlines())
    assert Path("out/figA_2moons.csv").read_text() == picture
    assert "2moons" in Path("out/fig2.csv").read_text()
    assert "report_2moons.html" in Path("out/report_lad.html").read_text()
    assert "report_lad.html" in Path("out/report_2moons.html").read_text()
    assert "--etas 5 --starts 2" in Path("out/report_2moons.html").read_text()
    apart = run("reproduce", "lad", "--etas", "3", "--starts", "2", "--out", "apart")
    assert apart.exit_code == 0
    assert Path("apart/figA_lad.csv").read_text() == Path("out/figA_lad.csv").read_text()

    # Results that cannot be drawn again are not touched.
    shutil.rmtree("out/checkpoints")
    for damaged in ("{", "[]", '{"problems": {"lad": 1}}'):
        Path("out/run.json").write_text(damaged)
        left = contents("out")
        refused = run("reproduce", "2moons", *TINY, "--out", "out")
        assert refused.exit_code == 1
        assert "hoose another --out" in refused.stderr
        left.pop("checkpoints", None)
        assert contents("out") == left
        Path("out/checkpoints").rmdir()


def test_verify(run, tmp_path):
    result = run(
        "verify", "lad", "--eta", "0.01", "--eta", "0.1", "--iterations", "60", "--out", "out"
    )
    assert result.exit_code == 0, result.output
    assert "Lemma 1, smooth" in result.stdout
    assert "VIOLATED" not in result.stdout
    assert "LAD regression" in result.stderr
    named = [line.strip() for line in result.stdout.split("Files:")[1].splitlines() if line.strip()]
    assert {Path(name).name for name in named} == {"bounds.csv", "inequalities.csv"}
    assert all((tmp_path / name).stat().st_size for name in named)


def test_verify_that_fails(run, monkeypatch):
    from adagrad_diff.experiments import theory

    bad = {"problem": "lad", "statement": "Lemma 1", "slack": -1.0, "n": 1, "result": "VIOLATED"}
    found = theory.Verification([bad], [{"problem": "lad"}])
    monkeypatch.setattr(theory, "verify", lambda *args, **options: found)
    result = run("verify")
    assert result.exit_code == 1
    assert "VIOLATED" in result.stdout


@pytest.mark.usefixtures("unsaved")
def test_stand_in_is_named_everywhere(run):
    result = run("reproduce", "news20", "--etas", "3", "--starts", "1", "--out", "out")
    assert result.exit_code == 0, result.output
    assert "stand-in for news20" in result.stdout
    assert "--data" in result.stderr
    for name in ("table.csv", "table.md", "figA_news20.csv", "run.json"):
        assert "stand-in" in Path("out", name).read_text()


def test_damaged_data(run, tmp_path):
    own = tmp_path / "mine"
    own.mkdir()
    (own / "splice.t").write_text("+1 1:2 2:3\n")
    result = run("reproduce", "splice", *TINY, "--data", "mine", "--out", "out")
    assert result.exit_code == 1
    assert "sha256" in result.stderr
    assert "Traceback" not in result.output
    assert (own / "splice.t").read_text() == "+1 1:2 2:3\n"


@pytest.mark.parametrize("kind", ["a file", "below a file", "read-only"])
def test_unwritable_output(run, tmp_path, kind):
    place = tmp_path / "out"
    if kind == "read-only":
        if os.geteuid() == 0:
            pytest.skip("root may write anywhere")
        place.mkdir(mode=0o500)
    else:
        place.write_text("mine")
    result = run(
        "reproduce",
        "2moons",
        *TINY,
        "--out",
        str(place / "deeper" if kind == "below a file" else place),
    )
    assert result.exit_code in (1, 2)
    assert "out" in result.stderr
    assert kind == "read-only" or place.read_text() == "mine"


def test_usage_errors(run):
    for command, code, sentence in (
        (["reproduce", "nonsense"], 2, "nonsense"),
        (["reproduce", "--scale", "huge"], 2, "huge"),
        (["reproduce", "--etas", "1"], 2, "--etas"),
        (["reproduce", "--data", "nowhere"], 2, "nowhere"),
        (["reproduce", "2moons", *TINY, "--memory", "much"], 1, "memory"),
        (["verify", "fig1"], 2, "fig1"),
        (["verify", "--iterations", "0"], 2, "--iterations"),
        (["verify", "lad", "--eta", "-1"], 1, "must be a number between 1e-100 and 1e+100"),
    ):
        result = run(*command)
        assert (result.exit_code, sentence in result.stderr) == (code, True), result.output


def test_datasets(run, tmp_path):
    listing = run("datasets", "list")
    assert listing.exit_code == 0
    places = {line.split()[0]: line.split(maxsplit=4)[4] for line in listing.stdout.splitlines()}
    assert list(places) == datasets.names()
    assert places["splice.t"].endswith("inside/splice.t.bz2")
    assert places["a9a"] == "not here"
    missing = run("datasets", "where", "a9a")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert run("datasets", "where", "splice.t").stdout == places["splice.t"] + "\n"
    written = run("datasets", "fetch", "splice", "--out", "mine")
    assert (written.exit_code, written.stdout) == (0, "mine/splice\n")
    assert run("datasets", "list", "--data", "mine").stdout.splitlines()[1].endswith(" mine/splice")
    fetched = run("datasets", "fetch", "heart_scale")
    assert fetched.exit_code == 1
    assert "--data DIR" in fetched.stderr


@pytest.mark.usefixtures("interrupted")
def test_the_hint_can_be_pasted(run, tmp_path, monkeypatch):
    """Names with spaces and worse come back as they were given."""
    arguments = ["reproduce", "hinge", "--out", "my results; $(rm x) 'now'", "--memory", "1 GB"]
    monkeypatch.setattr(sys, "argv", ["adagrad-diff", *arguments, "--resume"])
    result = run(*arguments, "--resume")
    assert result.exit_code == 130
    assert result.stdout == ""
    assert shlex.split(result.stderr.splitlines()[-1]) == ["adagrad-diff", *arguments, "--resume"]


@pytest.mark.usefixtures("interrupted")
@pytest.mark.parametrize(
    "arguments",
    [["datasets", "fetch", "splice"], ["verify", "lad", "--iterations", "5", "--out", "out"]],
)
def test_ctrl_c_in_other_commands(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 130, result.output
    assert "Interrupted. The same command begins again." in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.usefixtures("default_handler")
def test_ctrl_c_from_outside(tmp_path):
    """While it computes: 130 and a sentence, no traceback."""
    arguments = ["verify", "hinge", "--iterations", "1000000", "--out", "out"]
    process = subprocess.Popen(
        [sys.executable, "-m", "adagrad_diff", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    first = process.stderr.readline()  # it has begun
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=300)[1]
    assert process.returncode == 130, err
    assert "hinge" in first.lower()
    assert "Interrupted." in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("interrupted")
def test_leftovers_of_killed_runs_are_removed(run, tmp_path):
    """At the start of the next one."""
    out = tmp_path / "out"
    out.mkdir()
    ours = [
        out / f"{name}.0123456789abcdef.partial" for name in ("fig2.pdf", "fig1.pdf", "table.md")
    ]
    theirs = [out / "film.partial", out / "fig2.pdf.partial"]
    for path in (*ours, *theirs):
        path.write_text("half")
    assert run("reproduce", "2moons", *TINY, "--out", "out").exit_code == 130
    assert not any(path.exists() for path in ours)
    assert all(path.read_text() == "half" for path in theirs)


def test_what_is_missing(tmp_path):
    """With click alone some commands work, and the others say what they need."""
    import adagrad_diff

    about = f"adagrad-diff, version {adagrad_diff.__version__}\n"
    missing = "xarray tqdm threadpoolctl pandas sklearn matplotlib"
    version, info, listing, fetched, *refused = without(
        missing,
        ["--version"],
        ["info"],
        ["datasets", "list"],
        ["datasets", "fetch", "splice"],
        ["reproduce", "hinge"],
        ["fit", "splice"],
        cwd=tmp_path,
    )
    assert version == [0, about, ""]
    assert (info[0], listing[0], fetched[0]) == (0, 0, 0)
    for _, _, err in refused:
        sentence = r"This needs \w+, which is not installed: pip install 'adagrad-diff\[\w+\]'"
        assert re.search(sentence, err), err
    *refused, version, info = without(
        "click", [], ["reproduce"], ["info", "more"], ["--version"], ["info"], cwd=tmp_path
    )
    for code, out, _ in refused:
        sentence = "This needs click, which is not installed: pip install 'adagrad-diff[cli]'"
        assert (code, out) == (sentence, "")
    assert version == [0, about, ""]
    assert "numba" in info[1]


def test_installed_command():
    command = shutil.which("adagrad-diff", path=str(Path(sys.executable).parent))
    assert command, "the console script is not installed"
    assert (
        "reproduce"
        in subprocess.run([command, "--help"], capture_output=True, text=True, check=True).stdout
    )
