"""Frozen references: what the code computed before the refactoring, and whether a checkout still does.

    python tools/references.py                 compare the checkout on PYTHONPATH with the file
    python tools/references.py --only rules    some sections only
    python tools/references.py --reproduce     all sections and the complete quick table of `reproduce`
    python tools/references.py write           write the file (once, from the commit before the series)

`tools/references.json` has six sections.

- rules: objectives, the final iterate and the status of every rule on five problems in two dtypes.
- ends: status, success and iterations of runs that converge, diverge or are stopped.
- defaults: objective, gap and success of runs without a step size, and the optimum by independent
  solvers. A success is confirmed if its objective, evaluated by plain formulas in double precision,
  is within the tolerance of that optimum. Every confirmed success must remain one. A run that was
  not a confirmed success may end in any way except a success that the optimum refutes.
- reproduce: the table of `adagrad-diff reproduce` with four step sizes and one start, on data that
  come with the package, and the complete quick table, which takes two minutes of CPU time.
- sweep: a small sweep over dense and CSR data.
- errors: types of the exceptions for bad inputs.

Tolerances: 1e-10 for smooth losses in float64, otherwise 1e-6 for objectives (float32: 1e-4). If a
rule disagrees with the file, the plain formulas in `tests/cases` decide: a checkout that agrees with
them is right, and the difference is only noted. Everything is relative, and every run is seeded.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import adagrad_diff as package
from reference_cases import (
    ENDS,
    LOOKS,
    RULE_PROBLEMS,
    RULES,
    SMOOTH,
    Default,
    Problem,
    default_runs,
    run_rule,
    run_rule_naively,
    run_to_end,
    start,
)
from reference_errors import ERRORS, outcome, public_type

FILE = Path(__file__).with_suffix(".json")
BUNDLED = ("hinge", "lad", "splice", "2moons")  # problems whose data need no download
PERTURBATION = {"float64": 1e-15, "float32": 1e-7}  # relative, of the start: a rounding error
SECTIONS = ["rules", "ends", "defaults", "sweep", "errors", "reproduce"]
Entry = dict[str, Any]
Verdict = tuple[list[str], list[str]]  # differences, and notes that are no failures


def tolerance(problem: Problem) -> float:
    if problem.dtype == "float32":
        return 1e-4
    return 1e-10 if problem.loss in SMOOTH else 1e-6


def distance(a: Any, b: Any) -> float:
    """Return the largest difference, relative to the larger array; infinite if only one is finite."""
    a, b = np.ravel(np.asarray(a, dtype=float)), np.ravel(np.asarray(b, dtype=float))
    if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return np.inf
    known = np.isfinite(a)
    size = max(np.abs(a[known]).max(initial=0.0), np.abs(b[known]).max(initial=0.0))
    return float(np.abs(a - b)[known].max(initial=0.0) / size) if size else 0.0


def digits(values: Any, count: int = 17) -> Any:
    """Return nested lists of numbers with so many digits."""
    if isinstance(values, np.ndarray | list | tuple):
        return [digits(value, count) for value in values]
    return float(f"{float(values):.{count}g}") if np.isfinite(values) else None


# ------------------------------------------------------------------------------ rules


def rule_cases() -> Iterator[tuple[str, tuple[Problem, str, Any]]]:
    for problem, blocks in RULE_PROBLEMS:
        for dtype in ("float64", "float32"):
            for rule in RULES:
                case = replace(problem, dtype=dtype)
                yield f"{rule}: {case.name}", (case, rule, blocks)


def rule_entry(problem: Problem, rule: str, blocks: Any) -> Entry:
    result = run_rule(problem, rule, blocks)
    return {
        "fun": float(result.fun),
        "status": package.Status(result.status).name,
        "path": digits(result.history.objective[np.array(LOOKS) - 1]),
        "x": digits(np.ravel(result.x), 17 if tolerance(problem) == 1e-10 else 8),
    }


def write_rule(problem: Problem, rule: str, blocks: Any) -> Entry:
    """Return the entry, with its sensitivity to a rounding error at the start where that matters."""
    entry, x0, rng = rule_entry(problem, rule, blocks), start(problem), np.random.default_rng(33)
    factors = 1 + PERTURBATION[problem.dtype] * rng.standard_normal((3, *x0.shape))
    spread = max(
        distance(run_rule(problem, rule, blocks, x0 * f).fun, entry["fun"]) for f in factors
    )
    return entry | ({"spread": digits(spread, 2)} if 10 * spread > tolerance(problem) else {})


def rule_distances(problem: Problem, a: Entry, b: Entry) -> dict[str, float]:
    names = ["fun", "path", "x"] if tolerance(problem) == 1e-10 else ["fun", "path"]
    return {
        name: distance(a[name], b[name])
        for name in names
        if a[name] is not None and b[name] is not None
    }


def compare_rule(stored: Entry, found: Entry, problem: Problem, rule: str, blocks: Any) -> Verdict:
    if stored["status"] != found["status"]:
        return [f"status {found['status']}, was {stored['status']}"], []
    allowed = max(tolerance(problem), 10 * stored.get("spread", 0.0))
    apart = {name: d for name, d in rule_distances(problem, stored, found).items() if d > allowed}
    if not apart:
        return [], []
    plain = run_rule_naively(problem, rule, blocks)
    right = [
        max(rule_distances(problem, plain, entry).values()) <= allowed for entry in (stored, found)
    ]
    which = {(True, False): "file", (False, True): "checkout", (True, True): "both"}.get(
        tuple(right), "neither"
    )
    text = ", ".join(f"{name} differs by {d:.1e}" for name, d in apart.items())
    text += f" (allowed {allowed:.0e}); the naive implementation agrees with: {which}"
    return ([], [text]) if which == "checkout" else ([text], [])


def end_entry(end: str) -> Entry:
    result = run_to_end(end)
    return {
        "status": package.Status(result.status).name,
        "success": bool(result.success),
        "nit": int(result.nit),
    }


def compare_end(stored: Entry, found: Entry) -> Verdict:
    return [
        f"{name} {found[name]}, was {value}"
        for name, value in stored.items()
        if found[name] != value
    ], []


# ------------------------------------------------------------------------------ default runs


def default_entry(default: Default) -> Entry:
    x, fun, gap, success = default.run()
    plain = default.problem.objective(x)
    return {
        "fun": digits(fun, 12),
        "gap": digits(gap, 3),
        "success": success,
        "plain": digits(plain, 12),
    }


def write_default(default: Default) -> Entry:
    from reference_optimum import optimum

    entry, (best, accuracy) = default_entry(default), optimum(default.problem)
    entry |= {"optimum": digits(best, 14), "accuracy": digits(accuracy, 2)}
    entry["verdict"] = (
        ("confirmed" if reaches(default, entry, entry) else "refuted")
        if entry["success"]
        else "no success"
    )
    return entry


def reaches(default: Default, reference: Entry, found: Entry) -> bool:
    """Whether the point found is within the tolerance of the optimum, as far as that is known."""
    if found["plain"] is None:
        return False
    return (
        found["plain"] - reference["optimum"]
        <= default.tol * abs(reference["optimum"]) + reference["accuracy"]
    )


def compare_default(stored: Entry, found: Entry, default: Default) -> Verdict:
    excess = np.inf if found["plain"] is None else found["plain"] - stored["optimum"]
    text = f"objective - optimum = {excess:.1e}, tol {default.tol:g}, gap {found['gap']}"
    if stored["verdict"] != "confirmed":
        if not found["success"] or reaches(default, stored, found):
            return [], [] if found["success"] == stored["success"] else [
                f"success is now {found['success']}"
            ]
        false = f"a success that the optimum refutes: {text}"
        return ([], [false]) if stored["verdict"] == "refuted" else ([false], [])
    differences = [] if found["success"] else [f"a confirmed success is none any more: {text}"]
    if not reaches(default, stored, found):
        differences.append(f"the optimum is not reached: {text}")
    allowed = 1e-4 if default.problem.dtype == "float32" else 1e-6
    if distance(found["fun"], stored["fun"]) > allowed + default.tol:
        differences.append(f"fun {found['fun']}, was {stored['fun']}")
    if distance(found["fun"], found["plain"]) > allowed:
        differences.append(f"fun {found['fun']} is not the objective at x, {found['plain']}")
    return differences, []


# ------------------------------------------------------------------------------ reproduce, sweep, errors


def table(targets: tuple[str, ...], out: str | None = None, **options: Any) -> dict[str, Entry]:
    """Return the rows of the table that `adagrad-diff reproduce` prints."""
    from adagrad_diff.experiments.paper import reproduce

    os.environ.pop("ADAGRAD_DIFF_DATA", None)
    with TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = (
            folder  # a downloaded file would take the place of the stand-in
        )
        place = {"out": folder} if out is None else {"out": out, "resume": True}
        rows = reproduce(
            targets, say=lambda line: None, progress=False, **place, **options
        ).table.to_dict("records")
    plain = lambda value: value if isinstance(value, str | bool) else digits(value, 15)
    return {
        f"{row['problem']}: {row['method']}": {k: plain(v) for k, v in row.items()} for row in rows
    }


def compare_row(stored: Entry, found: Entry) -> Verdict:
    if stored["data"] != found["data"]:
        return [], [f"not compared: the data are {found['data']}, were {stored['data']}"]
    differences = []
    for name, before in stored.items():
        now = found.get(name)
        if isinstance(before, float) and isinstance(now, float):
            # Gaps are differences of objectives. Widths are read off a curve of their logarithms.
            absolute = (
                1e-6 * abs(stored["F_star"])
                if name == "gap_at_best"
                else 1e-3
                if "decades" in name
                else 0.0
            )
            same = abs(now - before) <= 1e-6 * abs(before) + absolute
        else:
            same = now == before
        differences += [] if same else [f"{name} {now}, was {before}"]
    return differences, []


SWEEPS = {
    problem.name: problem
    for problem in (Problem("Logistic", "dense", "L1"), Problem("LAD", "csr", "L1"))
}


def sweep_entry(problem: Problem) -> Entry:
    loss, x0s = problem.package_loss(), np.random.default_rng(34).standard_normal((8, 2))
    rules, etas = [package.AdaGradDiff, package.AdaGrad], [0.03, 0.3, 3.0]
    data = package.sweep(
        loss, problem.package_penalty(), rules, etas, x0s, 100, averages=True, progress=False
    )
    final = data.objective.transpose("rule", "eta", "seed", "iteration").values[..., -1]
    entry = {
        name: digits(data[name].transpose("rule", "eta", "seed").values)
        for name in ("objective_best", "objective_average")
    }
    x = digits(np.moveaxis(data.x.values, data.x.dims.index("rule"), 0))
    return entry | {
        "objective": digits(final),
        "x": x,
        "status": digits(data.status.transpose("rule", "eta", "seed").values),
    }


def compare_sweep(stored: Entry, found: Entry, problem: Problem) -> Verdict:
    names = [name for name in stored if name != "x" or tolerance(problem) == 1e-10]
    apart = {name: distance(stored[name], found[name]) for name in names}
    return [f"{name} differs by {d:.1e}" for name, d in apart.items() if d > tolerance(problem)], []


def compare_error(stored: str, names: list[str]) -> Verdict:
    if stored in names:
        return [], []
    text = f"{names[0]}, was {stored}"
    return ([], [text]) if names[0].startswith("missing") else ([text], [])


# ------------------------------------------------------------------------------ the file


def write(results: str | None) -> None:
    source = Path(package.__file__).parent
    git = lambda *words: subprocess.check_output(["git", "-C", source, *words], text=True).strip()
    if git("status", "--porcelain", "."):
        sys.exit(
            f"{source} has changes that are not committed: references are written from a commit."
        )
    content = {
        "about": {"about": {"commit": git("rev-parse", "HEAD"), "version": package.__version__}},
        "rules": {name: write_rule(*case) for name, case in rule_cases()},
        "ends": {end: end_entry(end) for end in ENDS},
        "defaults": {default.name: write_default(default) for default in default_runs()},
        "reproduce": table(BUNDLED, etas=4, starts=1),
        "reproduce quick": table((), results),
        "sweep": {name: sweep_entry(problem) for name, problem in SWEEPS.items()},
        "errors": {name: public_type(outcome(call)) for name, call in ERRORS.items()},
    }
    lines = [
        f"{json.dumps(section)}: {{\n"
        + ",\n".join(
            f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'), allow_nan=False)}"
            for k, v in entries.items()
        )
        + "\n}"
        for section, entries in content.items()
    ]
    FILE.write_text("{" + ",\n".join(lines) + "}\n")
    verdicts = [entry["verdict"] for entry in content["defaults"].values()]
    counts = {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))}
    widened = sum("spread" in entry for entry in content["rules"].values())
    print(
        f"{FILE}: {FILE.stat().st_size:,} bytes; default runs {counts}; {widened} rule runs with a wider tolerance"
    )


def judged(verdict: Callable[[], Verdict]) -> Verdict:
    """Return the verdict; an exception is a difference."""
    try:
        return verdict()
    except Exception as error:
        return [f"{type(error).__name__}: {error}"], []


def compare_table(
    stored: dict[str, Entry], make: Callable[[], dict[str, Entry]]
) -> dict[str, Verdict]:
    try:
        rows = make()
    except Exception as error:
        return {name: ([f"{type(error).__name__}: {error}"], []) for name in stored}
    missing: Verdict = (["the row is missing"], [])
    return {
        name: compare_row(row, rows[name]) if name in rows else missing
        for name, row in stored.items()
    }


def compare(sections: list[str]) -> int:
    """Print what agrees and what differs. Return the exit code."""
    stored = json.loads(FILE.read_text())
    about = stored["about"]["about"]
    print(
        f"References: commit {about['commit'][:7]}, version {about['version']}. Checkout: {package.__file__}"
    )

    def each(section: str, cases: Any, judge: Callable[[Any, Any], Verdict]) -> dict[str, Verdict]:
        return {
            name: judged(lambda n=name, c=case: judge(stored[section][n], c))
            for name, case in cases
        }

    steps: dict[str, Callable[[], dict[str, Verdict]]] = {
        "rules": lambda: each(
            "rules", rule_cases(), lambda old, case: compare_rule(old, rule_entry(*case), *case)
        ),
        "ends": lambda: each(
            "ends", zip(ENDS, ENDS, strict=True), lambda old, end: compare_end(old, end_entry(end))
        ),
        "defaults": lambda: each(
            "defaults",
            ((default.name, default) for default in default_runs()),
            lambda old, default: compare_default(old, default_entry(default), default),
        ),
        "sweep": lambda: each(
            "sweep", SWEEPS.items(), lambda old, p: compare_sweep(old, sweep_entry(p), p)
        ),
        "errors": lambda: each(
            "errors", ERRORS.items(), lambda old, call: compare_error(old, outcome(call))
        ),
        "reproduce": lambda: compare_table(
            stored["reproduce"], lambda: table(BUNDLED, etas=4, starts=1)
        ),
        "reproduce quick": lambda: compare_table(stored["reproduce quick"], lambda: table(())),
    }
    verdicts = {section: steps[section]() for section in sections}
    print(f"{'section':16s}{'entries':>8s}{'agree':>8s}{'differ':>8s}{'notes':>8s}")
    for section, entries in verdicts.items():
        differ, noted = (sum(bool(verdict[k]) for verdict in entries.values()) for k in (0, 1))
        print(f"{section:16s}{len(entries):8d}{len(entries) - differ:8d}{differ:8d}{noted:8d}")
    for section, entries in verdicts.items():
        for name, (differences, notes) in entries.items():
            for line in [f"DIFFERS: {text}" for text in differences] + [
                f"note: {text}" for text in notes
            ]:
                print(f"{section}: {name}: {line}")
    return int(any(verdict[0] for entries in verdicts.values() for verdict in entries.values()))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", nargs="?", default="compare", choices=("compare", "write"))
    parser.add_argument(
        "--reproduce", action="store_true", help="compare the complete quick table as well"
    )
    parser.add_argument(
        "--only", nargs="+", choices=SECTIONS, default=SECTIONS, help="sections to compare"
    )
    parser.add_argument(
        "--results", help="for write: a directory of `reproduce` to take the quick table from"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.action == "write":
        write(options.results)
        return 0
    return compare([*options.only, *(["reproduce quick"] if options.reproduce else [])])


if __name__ == "__main__":
    sys.exit(main())
