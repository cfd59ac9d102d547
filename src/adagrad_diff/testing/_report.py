"""What a check found, in sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np


class NotTried(Exception):
    """Raised by a check that has nothing to look at; its message says why."""


@dataclass(frozen=True)
class Finding:
    """One statement: whether it holds as far as tried (None: it was not tried), and the sentence about it."""

    ok: bool | None
    sentence: str


@dataclass(repr=False)
class Report:
    """The findings of `check_loss`, `check_penalty` or `check_rule`: true if nothing is wrong, and printed as sentences.

    ``assert check_loss(mine)`` in a test fails with the sentences about what is wrong.
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
        verdict = (
            f"{wrong} of {count} statements {'is' if wrong == 1 else 'are'} false."
            if wrong
            else f"{count} statements, all of them true as far as tried."
        )
        words = {True: "yes", False: "NO ", None: " - "}
        return "\n".join(
            [
                f"{self.subject}: {verdict}",
                *(f"  {words[f.ok]} {f.sentence}" for f in self.findings),
            ]
        )

    def look(self, statement: str, find: Callable[[], str | None]) -> bool:
        """Add the statement, or what `find` says against it. Returns whether it holds."""
        try:
            with np.errstate(all="ignore"):
                fault = find()
        except NotTried as reason:
            self.findings.append(Finding(None, str(reason)))
            return True
        except Exception as error:
            said = (str(error).splitlines() or [""])[0].rstrip(".")
            fault = (
                f"{statement.rstrip('.')}: it could not be tried, {type(error).__name__}: {said}."
            )
        self.findings.append(Finding(fault is None, statement if fault is None else fault))
        return fault is None


def show(x: np.ndarray) -> str:
    """A point in a sentence."""
    return np.array2string(
        np.asarray(x), precision=4, threshold=6, edgeitems=2, separator=", "
    ).replace("\n", "")
