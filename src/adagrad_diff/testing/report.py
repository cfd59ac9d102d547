"""Collect the results of checks, and show them in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MARKS = {True: "yes", False: "NO ", None: " - "}  # how reports show the results of checks


class Fault(Exception):
    """Raised by a check whose statement is false. The message says what is wrong."""


class NotApplicable(Exception):
    """Raised by a check that cannot be made for this object. The message says why."""


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    `ok` is True if the statement held in all trials, False if not, and None if it does not apply.
    """

    ok: bool | None
    sentence: str


@dataclass(repr=False)
class Report:
    """The findings of `check_loss`, `check_penalty` or `check_rule`.

    A report is true if no check failed, and prints as one sentence per check. So a test can say
    ``assert check_loss(my_loss)``, and a failure of the test shows what is wrong.
    """

    subject: str
    findings: list[Finding] = field(default_factory=list)

    @property
    def failures(self) -> list[str]:
        """The sentences about what is wrong."""
        return [finding.sentence for finding in self.findings if finding.ok is False]

    def __bool__(self) -> bool:
        return not self.failures

    def __repr__(self) -> str:
        count, wrong = len(self.findings), len(self.failures)
        verdict = f"{wrong} of {count} statements false."
        if not wrong:
            verdict = f"{count} statements, all of them true as far as tried."
        lines = [f"  {MARKS[finding.ok]} {finding.sentence}" for finding in self.findings]
        return "\n".join([f"{self.subject}: {verdict}", *lines])

    @contextmanager
    def check(self, statement: str) -> Iterator[None]:
        """Record whether a statement is true: code in this context raises a `Fault` if not."""
        finding = Finding(True, statement)
        try:
            with np.errstate(all="ignore"):
                yield
        except NotApplicable as reason:
            finding = Finding(None, str(reason))
        except Fault as fault:
            finding = Finding(False, str(fault))
        except Exception as error:  # user code may raise anything
            message = str(error).partition("\n")[0].rstrip(".")
            found = f"the check raised {type(error).__name__}: {message}"
            finding = Finding(False, f"{statement[:-1]}: {found}.")
        self.findings.append(finding)


def first(bad: Any) -> tuple[int, ...] | None:
    """Return the index of the first True, or None."""
    return next(map(tuple, np.argwhere(bad)), None)


def show(value: Any) -> str:
    """Return an array, or None or a string, in a short form in one line."""
    line = np.array2string(np.asarray(value), precision=4, threshold=6, edgeitems=2, separator=", ")
    return line.replace("\n", "")


def call_unchanged(name: str, call: Callable[..., Any], **arguments: Any) -> Any:
    """Return call(**arguments), or raise a `Fault` if it changes one of them."""
    before = {key: np.copy(argument) for key, argument in arguments.items()}
    result = call(**arguments)
    for key, argument in arguments.items():
        if not np.array_equal(argument, before[key], equal_nan=True):
            change = f"{show(before[key])} becomes {show(argument)}"
            raise Fault(f"{name} changes its argument {key}: {change}. Use a copy.")
    return result
