"""Processes that are killed at random moments: python killing.py KIND DIRECTORY SEED KILLS [FILE ...].

The kinds are minimize, sweep, compare, reproduce and save.

Each kind kills forks of itself, which begin with everything imported and compiled, and lets the next one go on. What is
wrong ends in an error; what was seen is printed as JSON. The kills go on, to at most five times as many, until the files
that are named have been seen half done.
"""

import hashlib
import json
import os
import random
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np


def killed(work, seconds):
    """Whether a fork that does `work` was killed, after at most so many seconds, before it was through."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    time.sleep(random.uniform(0.0, seconds))
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, signal.SIGKILL), status
    return status == signal.SIGKILL


def names(directory):
    return (
        sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))
        if directory.exists()
        else []
    )


def resumed(directory, compute, kills, wanted, seconds, progress=lambda place: {}):
    """Kill `compute(directory)` so many times; whenever it gets through, its answer must be that of one in one go.

    `progress` tells how far each of the files is: none of them ever goes back.
    """
    begin = time.perf_counter()
    expected = json.loads(json.dumps(compute(directory / "whole")))
    whole, place, answer = names(directory / "whole"), directory / "cut", directory / "answer.json"
    took = time.perf_counter() - begin
    done, seen, completed, far = 0, set(), 0, {}

    def work():
        answer.write_text(json.dumps(compute(place)))

    while (more := done < kills or (done < 5 * kills and not wanted <= seen)) or completed == 0:
        if more and killed(work, seconds(took)):
            done += 1
            before, far = far, progress(place)
            assert all(far.get(name, -1) >= n for name, n in before.items()), (before, far)
            seen |= {
                kind for kind in (".partial", "sweep.npz.lock") if kind in " ".join(names(place))
            }
            continue
        if not answer.exists():
            assert os.waitpid(os.fork() or child(work), 0)[1] == 0
        completed += 1
        found = json.loads(answer.read_text())
        assert found == expected, [name for name in expected if found.get(name) != expected[name]]
        assert names(place) == whole
        shutil.rmtree(place)
        answer.unlink()
        far = {}
    return {"kills": done, "completed": completed, "seen": sorted(seen)}


def child(work):
    work()
    os._exit(0)


def minimize(directory, kills, wanted):
    """Runs with a given eta, several trajectories, minibatches, and a portfolio, with duality gaps.

    Gaps themselves are not compared: they are computed again by a run that resumes.
    """
    from adagrad_diff import L1, LAD, AdaGradDiff, Logistic, Minibatch, minimize
    from user_losses import data

    A, real, labels, _ = data(samples=60, features=6)
    runs = {
        "given": (
            LAD(A, real),
            {"eta": 0.3, "penalty": L1(0.02), "stop": "gap", "tol": 1e-12, "max_iter": 400},
        ),
        "several": (
            Logistic(A, labels),
            {"rule": AdaGradDiff([0.1, 0.3, 1.0]), "tol": 1e-3, "max_iter": 300},
        ),
        "minibatch": (
            Minibatch(Logistic(A, labels), 2),
            {"eta": 0.3, "penalty": L1(0.02), "max_iter": 300},
        ),
        "portfolio": (
            LAD(A, real, intercept=True),
            {"penalty": L1(0.02), "tol": 0.0, "max_iter": 300, "finish": False},
        ),
    }

    def compute(place):
        place.mkdir(exist_ok=True)
        answer = {}
        for name, (loss, options) in runs.items():
            found = minimize(
                loss, **options, checkpoint=place / f"{name}.npz", every=1e-3, on_failure="ignore"
            )
            history = [
                getattr(found.history, column)
                for column in ("iteration", "objective", "mean_step", "subgradient_norm")
            ]
            parts = [
                found.x,
                found.x_avg,
                found.x_best,
                found.jac,
                found.nit,
                found.nfev,
                found.status,
                *history,
            ]
            parts += [array for _, array in sorted(found.state.arrays().items())]
            data = b"".join(np.asarray(part).tobytes() for part in parts)
            message = found.message.partition(" The objective")[0]
            answer[name] = [hashlib.sha256(data).hexdigest(), message]
        return answer

    def progress(place):
        far = {}
        for path in place.glob("*.npz"):  # and each of them can be read at any time
            with np.load(path) as content:
                far[path.name] = int(content["n"].max())
        return far

    compute(directory / "first")
    shutil.rmtree(directory / "first")
    return resumed(directory, compute, kills, wanted, lambda took: 0.7 * took, progress)


def compare(directory, kills, wanted):
    """The command, on a file."""
    import contextlib

    import mixed_table
    from adagrad_diff.cli import main

    table = mixed_table.write(directory / "mixed.csv", mixed_table.columns(80))
    small = [
        "--rules",
        "AdaGradDiff,adagrad,dog",
        "--etas",
        "0.01:10:4",
        "--starts",
        "2",
        "--budget",
        "200",
    ]

    def compute(place):
        words = [
            "compare",
            str(table),
            *mixed_table.target("ill"),
            *small,
            "--out",
            str(place / "report.html"),
        ]
        with (
            open(os.devnull, "w") as nowhere,
            contextlib.redirect_stdout(nowhere),
            contextlib.redirect_stderr(nowhere),
        ):
            main(words, standalone_mode=False)
        page = next(place.rglob("page.html")).read_text()
        found = json.loads(re.search(r'<script[^>]*id="?data"?[^>]*>(.*?)</script>', page, re.S)[1])
        return {name: part for name, part in found.items() if name not in ("created", "command")}

    compute(directory / "first")
    shutil.rmtree(directory / "first")
    return resumed(directory, compute, kills, wanted, lambda took: 0.5 * took)


def sweep(directory, kills, wanted):
    import checkpointing as t

    t.uninterrupted()  # everything is compiled now
    return resumed(
        directory,
        lambda place: t.digest(t.sweep(*t.problem(300), **t.OPTIONS, checkpoint=place)),
        kills,
        wanted,
        lambda took: 0.6 * took,
    )


def reproduce(directory, kills, wanted):
    """Without the drawing, which takes most of the time: figures are files like others here."""
    from matplotlib.figure import Figure

    from adagrad_diff.experiments.paper import reproduce

    def savefig(figure, file, **options):
        for _ in range(20):
            file.write(bytes(10_000))
            time.sleep(1e-3)

    Figure.savefig, Figure.draw_without_rendering = savefig, lambda figure: None

    def compute(place):
        options = {
            "etas": 3,
            "starts": 2,
            "resume": True,
            "progress": False,
            "say": lambda line: None,
        }
        made = reproduce(["2moons"], out=place, **options)
        dated = {"run.json", "report_2moons.html"}
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in made.files
            if path.name not in dated
        }

    compute(directory / "first")
    return resumed(directory, compute, kills, wanted, lambda took: 1.2 * took)


def save(directory, kills, wanted):
    """A file that was complete once is complete ever after, and goes on exactly."""
    from adagrad_diff import load_state, minimize
    from user_losses import Bowl

    loss, x0 = Bowl(np.linspace(0.5, 3.0, 100_000)), np.linspace(-1.0, 1.0, 100_000)
    states = [minimize(loss, x0, eta=0.3, max_iter=n).state for n in range(3)]
    expected, path, left = minimize(loss, x0, eta=0.3, max_iter=5), directory / "run.npz", 0
    done = 0
    states[0].save(path)

    def work():
        while True:
            for state in states:
                state.save(path)

    while done < kills or (done < 5 * kills and wanted and not left):
        assert killed(work, 0.1)
        done += 1
        left += len(names(directory)) > 1
        found = load_state(path)
        rest = minimize(loss, eta=0.3, max_iter=5 - found.n, state=found)
        assert all(
            np.array_equal(rest[key], expected[key]) for key in ("x", "x_avg", "x_best", "fun")
        )
        found.save(path)
        assert names(directory) == ["run.npz"]
    return {"kills": done, "completed": done, "seen": [".partial"] * bool(left)}


if __name__ == "__main__":
    kind, place, seed, count, *files = sys.argv[1:]
    random.seed(int(seed))
    kinds = {
        "minimize": minimize,
        "sweep": sweep,
        "compare": compare,
        "reproduce": reproduce,
        "save": save,
    }
    print(json.dumps(kinds[kind](Path(place), int(count), set(files))))
