"""The colors, line styles and sizes of all figures."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from .._messages import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The color shows the family of a rule, dash and marker which member it is. Every color is readable
# on white and on dark pages (contrast at least 3), and any two can be told apart with every kind of
# color blindness. No two rules share a marker, and no two of a family a dash. Markers have
# matplotlib's names; those that end in "-open" are not filled.
SOLID, DASHED, DOTTED, DASH_DOT, LONG = (), (6, 3), (2, 2), (8, 3, 2, 3), (12, 4)
SHORT_DASHES, DOT_DOT = (4, 2), (8, 2, 2, 2, 2, 2)
FAMILIES: dict[str, dict[str, tuple[str, tuple[int, ...]]]] = {
    "#0072B2": {  # differences of gradients
        "AdaGradDiff": ("o", SOLID),
        "AdamDiff": ("D", DASHED),
        "RMSDiff": ("^", DOTTED),
        "FreeAdaGradDiff": ("P-open", DASH_DOT),
        "UniAdaGrad": ("p", LONG),
        "AdaPEG": ("p-open", SHORT_DASHES),
        "AGD": ("<", DOT_DOT),
    },
    "#D55E00": {  # sums of squared gradients
        "AdaGrad": ("s-open", DASHED),
        "AdaGradNorm": ("D-open", DOTTED),
        "DelayedAdaGrad": ("v-open", DASH_DOT),
        "DualAveraging": ("h-open", LONG),
        "KATE": ("*", SOLID),
    },
    "#3A9E8A": {  # averages of squared gradients
        "Adam": ("s", SOLID),
        "RMSProp": ("^-open", DASHED),
        "AdaDelta": ("v", DOTTED),
    },
    "#B82088": {  # distances: no step size to choose
        "DoG": ("o-open", SOLID),
        "DAdaptation": ("h", DASHED),
        "Prodigy": ("*-open", DOTTED),
    },
    "#8C5C44": {  # one step size for all coordinates
        "Constant": ("P", SOLID),
        "FISTA": ("X", DASHED),
        "AdaPG": ("x", DOTTED),
        "ACFGM": ("X-open", DASH_DOT),
        "UniXGrad": (">", LONG),
    },
}
OTHER_COLOR, OTHER_MARKERS = "#767676", "osD^vh*PX"  # of rules that are not in the package
GREY, RED = "#555555", "#B00020"
FINE_PRINT, TEXT, TITLE = 7.0, 8.0, 9.0  # points; figures are drawn at their printed size

MATPLOTLIB = {
    "font.family": "STIXGeneral",  # comes with matplotlib, so that figures look the same everywhere
    "mathtext.fontset": "stix",
    "font.size": TEXT,
    "axes.titlesize": TITLE,
    "axes.labelsize": TEXT,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "axes.axisbelow": True,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.4,
    "legend.frameon": False,
    "legend.fontsize": TEXT,
    "pdf.fonttype": 42,  # TrueType: journals do not accept type 3
    "figure.dpi": 300,
    "savefig.dpi": "figure",
}

POINTS = 600  # drawn per line: more than a printed panel can show


def style_of(rule_name: str) -> dict[str, Any]:
    """Return how the lines and points of a rule look, in every figure and on the report page.

    Parameters
    ----------
    rule_name : str
        The name of a class of `adagrad_diff.rules`, or any other, which gets a gray line: always
        the same for the same name.

    Returns
    -------
    dict
        `color` (hexadecimal), `dash` (lengths of strokes and gaps in pixels, empty for a solid
        line) and `marker`.

    Examples
    --------
    >>> style_of("AdaGradDiff")
    {'color': '#0072B2', 'dash': [], 'marker': 'o'}
    >>> style_of("AdaGrad")
    {'color': '#D55E00', 'dash': [6, 3], 'marker': 's-open'}
    """
    # Unlike hash(), this is the same in every process.
    which = zlib.crc32(rule_name.encode("utf-8", "replace"))
    dashes = (DASHED, DOTTED, DASH_DOT, LONG)
    color = OTHER_COLOR
    dash: tuple[int, ...] = dashes[which % len(dashes)]
    marker = OTHER_MARKERS[which // len(dashes) % len(OTHER_MARKERS)]
    for family, members in FAMILIES.items():
        if rule_name in members:
            color, (marker, dash) = family, members[rule_name]
    return {"color": color, "dash": list(dash), "marker": marker}


def line_of(rule_name: str) -> dict[str, Any]:
    """Return how a rule looks as keywords of matplotlib's `plot`.

    Examples
    --------
    >>> line_of("AdaGrad")
    {'color': '#D55E00', 'linestyle': (0, (6, 3)), 'marker': 's', 'markerfacecolor': 'white'}
    """
    look = style_of(rule_name)
    marker, _, is_open = look["marker"].partition("-")
    line = (0, tuple(look["dash"])) if look["dash"] else "-"
    fill = "white" if is_open else look["color"]
    return {"color": look["color"], "linestyle": line, "marker": marker, "markerfacecolor": fill}


# The two methods of the paper. Blue and vermilion of Okabe and Ito also differ in lightness, and
# line styles and markers in black and white.
METHODS = {"AdaGrad-Diff": line_of("AdaGradDiff"), "AdaGrad": line_of("AdaGrad")}


def style() -> Any:
    """Return a context with these settings on top of matplotlib's own defaults."""
    return require("matplotlib.style", "paper").context(["default", MATPLOTLIB])


def clear_ticks(axes: Axes, *, whole: bool = False) -> None:
    """Label axes whose limits are set without collisions, as on log axes of one or two decades.

    If there are at least two powers of ten, only these are labeled, else a few numbers between
    them. `whole` is for an x axis that counts.
    """
    ticker = require("matplotlib.ticker", "paper")
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        if axis.get_scale() == "log" and low > 0:  # the limits of empty axes have no meaning
            if np.floor(np.log10(high)) - np.ceil(np.log10(low)) < 1:
                axis.set_major_locator(ticker.MaxNLocator(3, steps=[1, 2, 5, 10]))
                axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
            axis.set_minor_formatter(ticker.NullFormatter())
    if whole:
        axes.xaxis.set_major_locator(ticker.MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))


def thin(count: int, most: int = POINTS) -> np.ndarray:
    """Return which of `count` points to draw: all of a few, else some, and more early ones.

    The steep part of a curve is at its beginning, so a third of the points are spaced evenly in the
    logarithm.
    """
    if count <= most:
        return np.arange(count)
    even, early = np.linspace(0, count - 1, 2 * most // 3), np.geomspace(1, count - 1, most // 3)
    return np.unique(np.concatenate([even, early]).round().astype(int))
