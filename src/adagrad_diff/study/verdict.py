"""What a comparison over step sizes has shown, in sentences with numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .scores import WITHIN, Score, is_near

NAMED_RULES = 4  # rules that a sentence names


def verdict(scores: list[Score], etas: np.ndarray, n_iter: int) -> list[str]:
    """The headline, and what else is worth saying; all of it about last iterates unless it says otherwise."""
    last = [score for score in scores if score["iterate"] == "last"]
    tuned, free = (
        [score for score in last if not score["free"]],
        [score for score in last if score["free"]],
    )
    good = [score for score in last if score["best_gap"] is not None]
    if not good:
        return [
            "No run has ended well: every rule failed at every step size, from one start at least."
        ]
    sentences = [_headline(tuned, etas)] if tuned else []
    sentences += _advice(tuned, free)
    if tuned:
        sentences += _ours(tuned)
    best = min(good, key=_best_gap)
    where = "which has no step size" if best["free"] else f"with eta = {best['best_eta']:.2g}"
    sentences.append(
        f"The smallest gap after {n_iter} iterations is {best['best_gap']:.1e}, that of {best['rule']}, {where}."
    )
    if free:
        sentences.append(_free(free))
    sentences += _defaults(tuned)
    sentences += _iterates(scores)
    failed = [score["rule"] for score in last if score["best_gap"] is None]
    if failed:
        sentences.append(
            f"{_names(failed)} failed wherever {'they' if len(failed) > 1 else 'it'} ran."
        )
    return sentences


def _best_gap(score: Score) -> float:
    return float("inf") if score["best_gap"] is None else score["best_gap"]


def _headline(tuned: list[Score], etas: np.ndarray) -> str:
    span = float(np.log10(etas[-1] / etas[0]))
    first, *others = sorted(tuned, key=lambda score: -score["decades_10x"])
    if len(etas) == 1:
        best = min(tuned, key=_best_gap)
        return f"With the one step size eta = {etas[0]:.3g}, {best['rule']} has the smallest gap of the rules that have one."
    if first["decades_10x"] == 0:
        return f"No rule with a step size comes within {WITHIN:g} times the smallest gap at any of {span:.1f} decades of eta."
    text = f"{first['rule']} is within {WITHIN:g} times the smallest gap over {_width(first)} of {span:.1f} decades of eta"
    return (
        f"{text}; next is {others[0]['rule']} with {_width(others[0])}." if others else f"{text}."
    )


def _advice(tuned: list[Score], free: list[Score]) -> list[str]:
    """Which rule to take here, for those who do not know a step size, and for those who know one roughly."""
    parts = []
    if near := [score for score in free if is_near(score)]:
        best = min(near, key=_best_gap)
        parts.append(
            f"without a step size to choose, {best['rule']} (gap {_gap(best['best_gap'])})"
        )
    if (wide := max(tuned, key=_decades, default=None)) is not None and wide["decades_10x"] > 0:
        known = "with one that is roughly known, " if parts else ""
        parts.append(f"{known}{wide['rule']} with eta near {wide['best_eta']:.2g}")
    return [f"What to take here: {'; '.join(parts)}."] if parts else []


def _decades(score: Score) -> float:
    return score["decades_10x"]


def _width(score: Score) -> str:
    return f"{'at least ' if score['at_edge'] else ''}{score['decades_10x']:.1f}"


def _ours(tuned: list[Score]) -> list[str]:
    """AdaGrad-Diff beside AdaGrad, if both ran."""
    by_name = {score["rule"]: score for score in tuned}
    if not {"AdaGradDiff", "AdaGrad"} <= by_name.keys():
        return []
    diff, ada = by_name["AdaGradDiff"], by_name["AdaGrad"]
    text = f"AdaGradDiff is that near over {_width(diff)} decades, AdaGrad over {_width(ada)}"
    name = "1e-2"
    return [
        f"{text}; below a gap of {name} over {diff['decades_below'][name]:.1f} and {ada['decades_below'][name]:.1f}."
    ]


def _free(free: list[Score]) -> str:
    near = [score["rule"] for score in free if is_near(score)]
    far = [score for score in free if score["rule"] not in near]
    parts = []
    if near:
        parts.append(
            f"{_names(near)} {'come' if len(near) > 1 else 'comes'} within {WITHIN:g} times the smallest gap"
        )
    if far:
        gaps = ", ".join(f"{s['rule']} {_gap(s['best_gap'])}" for s in far[:NAMED_RULES])
        parts.append(
            f"{'farther away are' if near else f'none comes within {WITHIN:g} times the smallest gap'}: {gaps}"
        )
    return f"Of the rules without a step size, {'; '.join(parts)}."


def _defaults(tuned: list[Score]) -> list[str]:
    known = [score for score in tuned if score["regret"] is not None]
    if not known:
        return []
    parts = [
        f"{s['rule']} (eta = {s['default_eta']:g}) {_times(s['regret'])}"
        for s in known[:NAMED_RULES]
    ]
    return [
        f"At published step sizes the gap is larger than the smallest of all: {', '.join(parts)}."
    ]


def _gap(gap: float | None) -> str:
    return "failed" if gap is None else f"{gap:.1e}"


def _times(ratio: Any) -> str:
    return f"{ratio:.2g} times" if ratio < 1e4 else f"{ratio:.0e} times"


def _iterates(scores: list[Score]) -> list[str]:
    """Rules whose answer should be another iterate than the last."""
    gaps = {(score["rule"], score["iterate"]): score["best_gap"] for score in scores}
    better = []
    for rule in dict.fromkeys(score["rule"] for score in scores):
        last, average = gaps.get((rule, "last")), gaps.get((rule, "average"))
        if last is not None and average is not None and average * WITHIN < last:
            better.append(rule)
    if not better:
        return []
    what = "average is" if len(better) == 1 else "averages are"
    return [
        f"For {_names(better)} the {what} more than {WITHIN:g} times better than the last iterate."
    ]


def _names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
