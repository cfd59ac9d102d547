"""What a comparison over step sizes has shown, in sentences with numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .scores import FACTORS, LEVELS, Score

if TYPE_CHECKING:
    from .result import Sensitivity

NAMED_RULES = 4  # in a list of gaps


def verdict(found: Sensitivity) -> list[str]:
    """Return the headline and further sentences, all about last iterates."""
    ranked, gap = found.ranked("last"), found.gap_name.removeprefix("relative ")
    good = [one for one in ranked if one["best_gap"] is not None]
    if not good:
        return [
            "No run has ended well: every rule failed at every step size, from one start at least."
        ]
    width, factor = f"decades_{found.within}", FACTORS[found.within]
    near = f"within {factor:g} times the smallest {gap}"
    tuned, free = ([one for one in ranked if one["free"] == kind] for kind in (False, True))
    sentences = []
    if tuned and len(found.etas) > 1:
        sentences = [f"No rule with a step size is {near} over a range of step sizes."]
        if wide := [one for one in tuned if one[width] > 0]:
            span, rule = np.log10(found.etas[-1] / found.etas[0]), wide[0]["rule"]
            widths = [
                f"{'at least ' * one[f'at_edge_{found.within}']}{one[width]:.1f}" for one in wide
            ]
            second = f"{wide[1]['rule']} over {widths[1]}" if wide[1:] else "no other rule is"
            sentences = [
                f"{rule} is {near} over {widths[0]} of {span:.1f} decades of step sizes, {second}.",
                f"Without tuning, take {rule} with eta near {wide[0]['best_eta']:.2g}.",
            ]
    rules = {one["rule"]: one for one in tuned}
    if found.within == "10x" and {"AdaGradDiff", "AdaGrad"} <= rules.keys():
        sentences.append(_both(rules["AdaGradDiff"], rules["AdaGrad"]))
    best = min(good, key=lambda one: one["best_gap"])
    where = "which has no step size" if best["free"] else f"with eta = {best['best_eta']:.2g}"
    text = f"The smallest {gap} after {found.n_iter} iterations is {best['best_gap']:.1e}"
    sentences.append(f"{text}, that of {best['rule']}, {where}.")
    if free:
        close = [one for one in free if one["regret"] is not None and one["regret"] < factor]
        far = [one for one in free if one not in close and one in good][:NAMED_RULES]
        parts = [f"{_names(close)} {'are' if close[1:] else 'is'} {near}"] if close else []
        parts += [f"{one['rule']} ends at {one['best_gap']:.1e}" for one in far]
        sentences.append(f"Of the rules without a step size, {', '.join(parts)}." if parts else "")
    if failed := [one for one in ranked if one not in good]:
        sentences.append(f"{_names(failed)} failed wherever {'they' if failed[1:] else 'it'} ran.")
    return [sentence for sentence in sentences if sentence]


def _both(*both: Score) -> str:
    """Compare AdaGrad-Diff with AdaGrad at the smallest gap that both reach, or one."""
    for reached in (min, max):
        for level in reversed(LEVELS):
            widths = [one[f"decades_{level}"] for one in both]
            if reached(widths) > 0:
                texts = [
                    f"over {width:.1f} decades" if width > 0 else "nowhere" for width in widths
                ]
                gap = f"{LEVELS[level]:g}"
                return f"AdaGradDiff reaches a gap of {gap} {texts[0]}, AdaGrad {texts[1]}."
    return f"Neither AdaGradDiff nor AdaGrad reaches a gap of {max(LEVELS.values())}."


def _names(scores: list[Score]) -> str:
    *most, last = [one["rule"] for one in scores]
    return f"{', '.join(most)} and {last}" if most else last
