"""One panel: the two methods as lines with bands on a logarithmic axis, whatever happens to them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.extras import require

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Blue and vermillion of Okabe and Ito can be told apart with every kind of colour blindness, and differ in lightness; line
# style and markers do the same in black and white.
STYLES: dict[str, dict[str, Any]] = {
    "AdaGrad-Diff": {"color": "#0072B2", "linestyle": "-", "marker": "o", "markerfacecolor": "#0072B2"},
    "AdaGrad": {"color": "#D55E00", "linestyle": "--", "marker": "s", "markerfacecolor": "white"},
}
GREY, RED = "#555555", "#B00020"
SMALL, TEXT, TITLE = 7.0, 8.0, 9.0  # points at the printed size: figures are drawn at the width of a page

SETTINGS = {
    "font.family": "STIXGeneral",  # comes with matplotlib, so that figures look the same everywhere
    "mathtext.fontset": "stix",
    "font.size": TEXT,
    "axes.titlesize": TITLE,
    "axes.labelsize": TEXT,
    "xtick.labelsize": TEXT,
    "ytick.labelsize": TEXT,
    "legend.fontsize": TEXT,
    "axes.linewidth": 0.6,
    "axes.labelpad": 2.0,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.4,
    "lines.markeredgewidth": 0.8,
    "legend.frameon": False,
    "pdf.fonttype": 42,  # TrueType: journals refuse type 3
    "figure.dpi": 300,
    "savefig.dpi": "figure",
}

BAND = 0.2  # opacity
MARKS = 7  # markers per line
POINTS = 600  # drawn per line: more than a printed panel can show
OFF_CHART = 1e3  # a gap this many times the largest at the start is off the chart
FLOOR = 1e-16  # a gap below is rounding


def style() -> AbstractContextManager:
    """Our settings, on top of matplotlib's own defaults and not of what the user has changed."""
    return require("matplotlib.style", "paper").context(["default", SETTINGS])


def limits(frame: pd.DataFrame, quantity: str, ceiling: float = np.inf) -> tuple[float, float]:
    """Ends of a logarithmic axis for the means and bands of a table, as far as they are not above the ceiling."""
    mean, lower, upper = band(frame, quantity)
    shown = (mean > 0) & (mean <= ceiling)
    if not shown.any():
        return 1e-1, 1e1  # everything diverged at once, or every gap is zero
    top = min(upper[shown].max(), ceiling)
    bottom = max(lower[shown & (lower > 0)].min(initial=top), FLOOR)
    margin = max((top / bottom) ** 0.06, 1.2)
    return float(bottom / margin), float(top * margin)


def band(frame: pd.DataFrame, quantity: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, and the edges of the band of one standard deviation around it.

    On a logarithmic axis mean - std may be at minus infinity. No trajectory is below the smallest, so the band does not
    go below it either.
    """
    mean, std, smallest = (frame[f"{quantity}_{name}"].to_numpy() for name in ("mean", "std", "min"))
    return mean, np.maximum(mean - std, smallest), mean + std


def draw(ax: Axes, frame: pd.DataFrame, x: str, quantity: str) -> bool:
    """The methods of a tidy table, on axes whose limits are set. Returns whether something lies above them."""
    bottom, top = ax.get_ylim()
    above = False
    for k, (method, look) in enumerate(STYLES.items()):
        rows = frame[frame.method == method]
        rows = rows.iloc[thin(len(rows))]
        at = rows[x].to_numpy()
        mean, lower, upper = band(rows, quantity)
        here, off = ~np.isnan(mean), mean > top
        line = np.where(off, top**2 / bottom, np.maximum(mean, bottom))  # far above the top edge: that is where the line goes
        upper = np.where(off, line, upper)
        ax.fill_between(at, np.clip(lower, bottom, None), upper, color=look["color"], alpha=BAND, linewidth=0)
        ax.plot(at, line, **look, markevery=marks(ax, at, here & ~off, k), zorder=3 - 0.1 * k, label=method)
        if quantity == "gap":
            for first, last in runs(off):
                # Off the chart is a result: it stays visible along the top edge, one method below the other.
                edge = {**look, "marker": "^", "markersize": 4.5, "linewidth": 0.8, "clip_on": False, "zorder": 4}
                ax.plot(at[[first, last]], [0.965 - 0.06 * k] * 2, **edge, transform=ax.get_xaxis_transform())
        if here.any() and not here[-1]:  # a line that ends
            last = np.flatnonzero(here)[-1]
            ax.plot(at[last], line[last], **{**look, "marker": "x"}, markersize=5, zorder=4)
        above |= bool(off.any())
    return above


def thin(count: int, most: int = POINTS) -> np.ndarray:
    """Which of `count` points to draw: all if there are few, else evenly spaced ones and more of the first.

    The steep part of a curve is at its beginning: a third of the points are spaced evenly in the logarithm.
    """
    if count <= most:
        return np.arange(count)
    even, early = np.linspace(0, count - 1, 2 * most // 3), np.geomspace(1, count - 1, most // 3)
    return np.unique(np.concatenate([even, early]).round().astype(int))


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
    return [(int(first), int(last) - 1) for first, last in zip(edges[::2], edges[1::2], strict=True)]
