"""Measuring side by side, and the rows of a table.

Machines are noisy and differ, so every figure is a ratio of two quantities measured in the same run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from math import ceil
from time import perf_counter, sleep
from types import ModuleType
from typing import Any

PHASES = 7  # turns each contender gets
PHASE = 0.15  # seconds of measurement in one turn, at least
SAMPLE = 2e-3  # seconds of one sample, at least: the clock and the loop around it cost nothing then
DISTURBED = 0.1  # cores used by other processes from which on a ratio deserves no trust
PAUSE = 0.08  # seconds after which the worker threads of OpenBLAS, which spin for a while after a product, are asleep

COLUMNS = "{:<60} {:>8}  {:<28} {:>8} {:>8} {:>6} {:>5}  {}"
HEADINGS = ("", "ours", "peer", "peer's", "ratio", "must", "aim", "")


@dataclass(frozen=True)
class Row:
    """What we need and what the peer (or the budget) allows: their ratio is judged, and less is better."""

    name: str
    ours: float
    peer: str
    theirs: float | None  # None: the peer is not installed
    must: float | None = None  # the largest ratio that passes
    aim: float | None = None  # the ratio we would like
    unit: str = "s"  # or "B", bytes, or "" for a plain number

    @property
    def ratio(self) -> float | None:
        return None if self.theirs is None else self.ours / self.theirs

    @property
    def verdict(self) -> str:
        if self.ratio is None:
            return "peer not installed"
        if self.must is None:
            return ""
        return "OK" if self.ratio <= self.must else "OVER"

    def __str__(self) -> str:
        quantities = [quantity(v, self.unit) for v in (self.ours, self.theirs)]
        ratio = "" if self.ratio is None else f"{self.ratio:.4f}"
        limits = ["" if v is None else f"{v:.4g}" for v in (self.must, self.aim)]
        return COLUMNS.format(
            self.name, quantities[0], self.peer, quantities[1], ratio, *limits, self.verdict
        ).rstrip()


def quantity(value: float | None, unit: str) -> str:
    """A number with the prefix that suits it."""
    if value is None:
        return ""
    if not unit:
        return f"{value:.2e}"
    prefixes = {1e6: "M", 1e3: "k", 1.0: ""} if unit == "B" else {1.0: "", 1e-3: "m", 1e-6: "µ"}
    scale = next((s for s in prefixes if value >= s), min(prefixes))
    return f"{value / scale:.3g} {prefixes[scale]}{unit}"


def race(phases: int = PHASES, **contenders: Callable[[], Any]) -> dict[str, float]:
    """Seconds per call of each contender: the best sample of several turns, taken alternately.

    A sample is as many calls as take the time of the slowest contender's single call, so that noise hits all alike.
    """
    single = {
        name: min(_sample(call, 1) for _ in range(min(3, phases)))
        for name, call in contenders.items()
    }  # and warm up
    length = max(SAMPLE, *single.values())
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(phases):
        for name, call in contenders.items():
            sleep(PAUSE)
            end = perf_counter() + PHASE
            while True:
                best[name] = min(best[name], _sample(call, ceil(length / single[name])))
                if perf_counter() > end:
                    break
    return best


def _sample(call: Callable[[], Any], calls: int) -> float:
    begin = perf_counter()
    for _ in range(calls):
        call()
    return (perf_counter() - begin) / calls


def fresh(setup: str, statement: str, runs: int, **environment: str) -> float:
    """Seconds that `statement` takes in a new interpreter after `setup`: the best of some runs."""
    code = f"{setup}\nfrom time import perf_counter\nbegin = perf_counter()\n{statement}\nprint(perf_counter() - begin)"
    command, variables = [sys.executable, "-c", code], os.environ | environment
    outputs = [
        subprocess.run(command, env=variables, check=True, capture_output=True, text=True).stdout
        for _ in range(runs)
    ]
    return min(float(output.split()[-1]) for output in outputs)


def peak_memory(call: Callable[[], Any]) -> int:
    """Bytes that a call needs at its peak, its result included, beyond what was there before; after one call to warm up."""
    call()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def foreign_work() -> float | None:
    """CPU seconds that other processes have used so far, as far as the system tells (Linux)."""
    try:
        with open("/proc/stat") as file:
            user, nice, system, _, _, irq, softirq = map(int, file.readline().split()[1:8])
    except (OSError, ValueError):
        return None
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])


def optional(module: str) -> ModuleType | None:
    """A peer's module, or None if it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        return None
