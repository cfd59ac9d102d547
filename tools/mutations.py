"""Apply small deliberate bugs, one at a time, and report which of them the tests detect.

    python tools/mutations.py              all of tools/mutation_catalogue.py (also: make mutations)
    python tools/mutations.py Huber path   only those whose description contains one of these words
    python tools/mutations.py --check      only check that every bug can still be applied to the source

Each bug is applied to a copy of the checkout, and the fast tests of the affected packages run there until the first
failure. The test that failed must pass on a copy without the bug, otherwise nothing was detected. One bug runs per core.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

from mutation_catalogue import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = (
    ".git",
    ".venv*",
    "dist",
    "results",
    "_build",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
)
MAX_SECONDS = 240  # per run of pytest, after which a bug counts as not detected
FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) (\S+\.py(?:::.+?)?)(?: - .*)?$", re.MULTILINE)


def target(mutation: Mutation, source: Path) -> Path:
    """Return the only file that contains the code to be changed, exactly once."""
    files = [f for f in sorted(source.rglob(mutation.within)) if mutation.old in f.read_text()]
    count = sum(f.read_text().count(mutation.old) for f in files)
    if count != 1:
        raise LookupError(f"found {count} times instead of once: {mutation.old!r}")
    return files[0]


def copy_checkout(to: Path) -> Path:
    """Copy the checkout with hard links, so that kernels compiled for unchanged files are found again."""
    return Path(
        shutil.copytree(ROOT, to, copy_function=os.link, ignore=shutil.ignore_patterns(*SKIPPED))
    )


def pytest(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "--hypothesis-seed=0",
    ]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "NUMBA_NUM_THREADS": "1"}
    return subprocess.run(
        [*command, *arguments],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
        check=False,
    )


def run(mutation: Mutation, clean: Path) -> tuple[bool, str]:
    """Return whether a test detects the bug, and which one or why not."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        checkout = copy_checkout(Path(folder) / "checkout")
        try:
            file = target(mutation, checkout / "src")
        except LookupError as error:
            return False, str(error)
        text = file.read_text().replace(mutation.old, mutation.new)
        file.unlink()  # a hard link: the original must stay as it is
        file.write_text(text)
        try:
            result = pytest(
                checkout, "-m", "not slow", *(f"tests/{name}" for name in mutation.tests)
            )
            if result.returncode == 0:
                return False, "all tests passed"
            failed = FAILED_TEST.search(result.stdout)
            if failed is None:
                return (
                    False,
                    f"pytest ended with {result.returncode} without a failed test: {result.stdout[-300:]}",
                )
            if pytest(clean, failed[1]).returncode != 0:
                return False, f"{failed[1]} also fails without the bug"
        except subprocess.TimeoutExpired:
            return False, f"not finished after {MAX_SECONDS} s"
        return True, failed[1]


def main(words: list[str]) -> int:
    chosen = [
        m for m in MUTATIONS if not words or any(word.lower() in m.breaks.lower() for word in words)
    ]
    if "--check" in words:
        lost = 0
        for mutation in MUTATIONS:
            try:
                target(mutation, ROOT / "src")
            except LookupError as error:
                lost += 1
                print(f"{mutation.breaks}\n    {error}")
        print(f"{len(MUTATIONS) - lost} of {len(MUTATIONS)} can be applied.")
        return int(lost > 0)
    begin = perf_counter()
    with tempfile.TemporaryDirectory(prefix="mutation-clean-") as folder:
        clean = copy_checkout(Path(folder) / "checkout")
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            outcomes = pool.map(lambda mutation: run(mutation, clean), chosen)
            detected = 0
            for mutation, (found, detail) in zip(chosen, outcomes, strict=True):
                detected += found
                print(
                    f"{'detected' if found else 'MISSED  '}  {mutation.breaks}\n          {detail}",
                    flush=True,
                )
    print(f"{detected} of {len(chosen)} detected in {perf_counter() - begin:.0f} s.")
    return int(detected < len(chosen))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
