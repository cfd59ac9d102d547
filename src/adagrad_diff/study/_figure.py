"""The figure of a comparison: gap against eta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._messages import counted, require
from .style import FINE_PRINT, clear_ticks, line_of, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .result import Sensitivity

BESIDE_GRID = 10**0.4  # beyond the grid, where rules without a step size stand


def draw(found: Sensitivity, iterate: str) -> Figure:
    """One line per rule, through the mean over the starts, with the range of these; rules without a step size to the right."""
    gaps = np.maximum(found.gap(iterate).values, found.floor)  # (rule, eta, seed)
    free = found.data.free.values
    with style():
        figure: Figure = require("matplotlib.figure", "paper").Figure(
            figsize=(6.4, 3.6), layout="constrained"
        )
        axes: Any = figure.subplots()
        beside = found.etas[-1]
        for row, rule in enumerate(found.rules):
            line = line_of(rule)
            if free[row]:
                beside = beside * BESIDE_GRID
                low, mean, high = _range(gaps[row, :1])
                if np.isfinite(mean[0]):
                    axes.errorbar(
                        [beside],
                        mean,
                        [mean - low, high - mean],
                        label=rule,
                        capsize=2,
                        **{**line, "linestyle": ""},
                    )
                continue
            low, mean, high = _range(gaps[row])
            axes.plot(found.etas, np.where(np.isfinite(mean), mean, np.nan), label=rule, **line)
            there = np.isfinite(high)
            axes.fill_between(
                found.etas, low, high, where=there, color=line["color"], alpha=0.12, linewidth=0
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(r"step size $\eta$" + (", and rules without one" if free.any() else ""))
        axes.set_ylabel(f"{found.gap_name}, {iterate} iterate")
        if free.any() and not free.all():
            axes.axvline(found.etas[-1] * BESIDE_GRID**0.5, color="#BBBBBB", linewidth=0.6)
        axes.set_title(
            f"After {found.n_iter} iterations, {counted(found.data.sizes['seed'], 'start')}"
        )
        clear_ticks(axes)
        figure.legend(loc="outside right upper", fontsize=FINE_PRINT)
    return figure


def _range(gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The smallest, the mean and the largest over the starts; all infinite if one of them failed."""
    whole = np.isfinite(gaps).all(axis=-1)
    low, mean, high = gaps.min(axis=-1), gaps.mean(axis=-1), gaps.max(axis=-1)
    return np.where(whole, low, np.inf), mean, high
