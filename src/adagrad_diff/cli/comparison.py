"""A comparison from the options of the command line to the content of its page."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from .._check import InputError
from .._messages import require
from .._version import __version__
from ..experiments import Sensitivity, report, sensitivity
from .choices import budget_of, etas_of, rules_of
from .problem import problem_of
from .runs import Run

SHORT_PROBE, LONG_PROBE = 5, 25  # iterations of two runs that show what one costs
CONNECTING = "10s"  # that a scheduler may take to answer
MARGIN = 0.85  # of the time: an iteration of a long run may take more than one of a short run
FEWEST_ITERATIONS = 10  # whatever the time is: fewer show nothing


class Comparison:
    """The problem, what to run on it, and where that is kept. Everything is checked before anything is run."""

    def __init__(
        self,
        options: dict[str, Any],
        rules: tuple[str, ...],
        budget: str,
        etas: str | None,
        starts: int,
        jobs: int | None,
        out: Path,
        scheduler: str | None = None,
    ):
        require("jinja2", "report")  # before any work is done
        self._client = None if scheduler is None else client_of(scheduler)
        self.n_iter, self.seconds = budget_of(budget)
        chosen, grid = rules_of(rules), None if etas is None else etas_of(etas)
        self.problem = problem_of(**options)
        self.options: dict[str, Any] = {
            "rules": chosen,
            "etas": grid,
            "starts": starts,
            "n_jobs": jobs,
            "client": self._client,
        }
        description = {
            "version": __version__,
            "problem": self.problem.description,
            "reading": {
                name: options[name]
                for name in ("drop", "missing", "header", "impute", "standardize")
            },
            "rules": None if chosen is None else [rule.__name__ for rule in chosen],
            "etas": None if grid is None else grid.tolist(),
            "starts": starts,
            "budget": self.n_iter or f"{self.seconds:g} s",
        }
        self.kept = Run(out, description)
        self.kept.refuse_foreign_page()
        self.notes = [*self.problem.table.notes, self.problem.task.sentence, self.kept.sentence]

    def run(self, command: str, say: Callable[[str], Any]) -> tuple[Sensitivity, dict[str, Any]]:
        """Compute, or go on, and write the page. Returns what was found, and the content of the page."""
        loss, penalty = self.problem.loss_object(), self.problem.penalty_object()
        n_iter = self.n_iter or self.kept.n_iter
        if n_iter is None:
            n_iter = self._affordable(loss, penalty)
            say(
                f"In {self.seconds:g} seconds there is time for {n_iter} iterations of each run, about."
            )
        self.kept.begin(n_iter)
        with nullcontext() if self._client is None else self._client:  # it is closed in the end
            found = sensitivity(
                loss, penalty, n_iter=n_iter, checkpoint=self.kept.checkpoint, **self.options
            )
        content = found.content(
            title=self.problem.title, about=self.problem.about, command=[command]
        )
        self.kept.finish(content, report.page)
        return found, content

    def _affordable(self, loss: Any, penalty: Any) -> int:
        """Iterations for which the time is enough: two short comparisons show what is fixed, and what each iteration adds."""
        begin, took = time.perf_counter(), {}
        for n_iter in (1, SHORT_PROBE, LONG_PROBE):  # the first one compiles and loads
            before = time.perf_counter()
            sensitivity(loss, penalty, n_iter=n_iter, progress=False, **self.options)
            took[n_iter] = time.perf_counter() - before
        each = max(took[LONG_PROBE] - took[SHORT_PROBE], 0.1 * took[LONG_PROBE]) / (
            LONG_PROBE - SHORT_PROBE
        )
        left = (
            (self.seconds or 0.0)
            - (time.perf_counter() - begin)
            - max(0.0, took[SHORT_PROBE] - SHORT_PROBE * each)
        )
        return max(FEWEST_ITERATIONS, int(MARGIN * left / each))


def client_of(address: str) -> Any:
    """A connection to a cluster."""
    distributed = require("distributed", "dask")
    try:
        return distributed.Client(address, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"--scheduler {address!r} does not answer: is it the address of a running Dask scheduler?"
        ) from error
