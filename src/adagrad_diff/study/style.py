"""One place for the colours, styles and sizes of all figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.extras import require

# Blue and vermillion of Okabe and Ito can be told apart with every kind of colour blindness, and differ in lightness; line
# style and markers do the same in black and white.
METHODS: dict[str, dict[str, Any]] = {
    "AdaGrad-Diff": {"color": "#0072B2", "linestyle": "-", "marker": "o", "markerfacecolor": "#0072B2"},
    "AdaGrad": {"color": "#D55E00", "linestyle": "--", "marker": "s", "markerfacecolor": "white"},
}
GREY, RED = "#555555", "#B00020"
FINE_PRINT, TEXT, TITLE = 7.0, 8.0, 9.0  # points at the printed size: figures are drawn at the width of a page

MATPLOTLIB = {
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

POINTS = 600  # drawn per line: more than a printed panel can show


def style() -> Any:
    """Our settings, on top of matplotlib's own defaults and not of what the user has changed."""
    return require("matplotlib.style", "paper").context(["default", MATPLOTLIB])


def thin(count: int, most: int = POINTS) -> np.ndarray:
    """Which of `count` points to draw: all if there are few, else evenly spaced ones and more of the first.

    The steep part of a curve is at its beginning: a third of the points are spaced evenly in the logarithm.
    """
    if count <= most:
        return np.arange(count)
    even, early = np.linspace(0, count - 1, 2 * most // 3), np.geomspace(1, count - 1, most // 3)
    return np.unique(np.concatenate([even, early]).round().astype(int))
