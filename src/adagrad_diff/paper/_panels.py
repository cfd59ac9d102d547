"""One panel: the two methods as lines with bands on a logarithmic axis, whatever happens to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..study.style import METHODS, thin

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

BAND = 0.2  # opacity
MARKS = 7  # markers per line
OFF_CHART = 1e3  # a gap this many times the largest at the start is off the chart
GAP_FLOOR = 1e-16  # a gap below is rounding


def limits(frame: pd.DataFrame, quantity: str, ceiling: float = np.inf) -> tuple[float, float]:
    """Ends of a logarithmic axis for the means and bands of a table, as far as they are not above the ceiling."""
    mean, lower, upper = band(frame, quantity)
    shown = (mean > 0) & (mean <= ceiling)
    if not shown.any():
        return 1e-1, 1e1  # everything diverged at once, or every gap is zero
    top = min(upper[shown].max(), ceiling)
    bottom = max(lower[shown & (lower > 0)].min(initial=top), GAP_FLOOR)
    margin = max((top / bottom) ** 0.06, 1.2)
    return float(bottom / margin), float(top * margin)


def band(frame: pd.DataFrame, quantity: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, and the edges of the band of one standard deviation around it.

    On a logarithmic axis mean - std may be at minus infinity. No trajectory is below the smallest, so the band does not
    go below it either.
    """
    mean, std, smallest = (
        frame[f"{quantity}_{name}"].to_numpy() for name in ("mean", "std", "min")
    )
    return mean, np.maximum(mean - std, smallest), mean + std


def draw(ax: Axes, frame: pd.DataFrame, x: str, quantity: str) -> bool:
    """The methods of a tidy table, on axes whose limits are set. Returns whether something lies above them."""
    bottom, top = ax.get_ylim()
    above = False
    for k, (method, look) in enumerate(METHODS.items()):
        rows = frame[frame.method == method]
        rows = rows.iloc[thin(len(rows))]
        at = rows[x].to_numpy()
        mean, lower, upper = band(rows, quantity)
        here, off = ~np.isnan(mean), mean > top
        line = np.where(
            off, top**2 / bottom, np.maximum(mean, bottom)
        )  # far above the top edge: that is where the line goes
        upper = np.where(off, line, upper)
        ax.fill_between(
            at, np.clip(lower, bottom, None), upper, color=look["color"], alpha=BAND, linewidth=0
        )
        ax.plot(
            at,
            line,
            **look,
            markevery=marks(ax, at, here & ~off, k),
            zorder=3 - 0.1 * k,
            label=method,
        )
        if quantity == "gap":
            for first, last in runs(off):
                # Off the chart is a result: it stays visible along the top edge, one method below the other.
                edge = {
                    **look,
                    "marker": "^",
                    "markersize": 4.5,
                    "linewidth": 0.8,
                    "clip_on": False,
                    "zorder": 4,
                }
                ax.plot(
                    at[[first, last]],
                    [0.965 - 0.06 * k] * 2,
                    **edge,
                    transform=ax.get_xaxis_transform(),
                )
        if here.any() and not here[-1]:  # a line that ends
            last = np.flatnonzero(here)[-1]
            ax.plot(at[last], line[last], **{**look, "marker": "x"}, markersize=5, zorder=4)
        above |= bool(off.any())
    return above


def marks(ax: Axes, at: np.ndarray, shown: np.ndarray, k: int) -> list[int]:
    """Points near evenly spaced places on the axis; the methods' places alternate so that no marker hides another."""
    if not shown.any():
        return []
    places = np.log(at) if ax.get_xscale() == "log" else at
    span = places[shown][-1] - places[shown][0]
    wanted = places[shown][0] + span * (np.arange(MARKS) + (0.25, 0.75)[k % 2]) / MARKS
    candidates = np.flatnonzero(shown)
    return sorted({int(candidates[np.argmin(np.abs(places[shown] - place))]) for place in wanted})


def runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """First and last index of each run of true values.

    Examples
    --------
    >>> runs(np.array([True, False, True, True]))
    [(0, 0), (2, 3)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return [
        (int(first), int(last) - 1) for first, last in zip(edges[::2], edges[1::2], strict=True)
    ]
