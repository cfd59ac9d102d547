"""How fits end: the words for it, and the sentences of the warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..solvers.result import NO_MINIMIZER

if TYPE_CHECKING:
    from ._solve import Solution

REASONS = (
    "certified",
    "subgradient",
    "stalled",
    "max_iter",
    "no_minimizer",
    "failed",
)  # from the best to the worst


def is_converged(reason: str) -> bool:
    """Whether the tolerance was reached."""
    return reason in ("certified", "subgradient")


def severity(reason: str) -> int:
    """How bad an end is."""
    return REASONS.index(reason)


def proven(fun: float, gap: float) -> str:
    """What is known about an objective, as the end of a sentence."""
    if not gap < abs(fun):  # no more than that no loss is negative
        return "nothing is proven about its objective"
    return f"the certified relative gap of its objective is {gap / abs(fun):.1e}"


def count(reasons: Iterable[str]) -> str:
    """ "2 stalled, 1 at max_iter" """
    counts = Counter(reasons)
    words = {"max_iter": "at max_iter", "no_minimizer": "without a minimizer"}
    return ", ".join(
        f"{counts[reason]} {words.get(reason, reason)}" for reason in REASONS if counts[reason]
    )


def unconverged(
    owner: str, solution: Solution, where: str, tol: float, max_iter: int, easier: str
) -> str:
    """What happened, what is proven, what to do; `easier` is the change of the penalty that helps."""
    known = proven(solution.fun, solution.gap)
    if solution.reason == "max_iter":
        return (
            f"{owner} did not reach tol={tol} in max_iter={max_iter} iterations{where}: {known}. Increase max_iter, or tol if "
            f"such an answer is good enough; scaled features (StandardScaler) or {easier} also make the problem easier."
        )
    if solution.reason == "stalled":
        return (
            f"{owner} stalled after {solution.nit} iterations{where}: its objective hardly improves any more, but tol={tol} "
            f"is not reached, and {known}. Scaled features and targets (StandardScaler) or {easier} make the problem easier. "
            "Increase tol if such an answer is good enough."
        )
    if solution.reason == "no_minimizer":
        return f"{owner} did not converge{where}. {NO_MINIMIZER}, with {easier}, for example."
    return (
        f"{owner} kept the best point it found, but its run failed{where}, and {known}. {solution.message} Scale the features "
        f"and the target (StandardScaler), or use {easier}."
    )
