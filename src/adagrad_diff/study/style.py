"""One place for the colours, styles and sizes of all figures."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from .._messages import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The rules: colour says which family a rule belongs to, dash and marker which member it is. Every colour can be read on white
# and on a dark page (contrast 3 at least), any two can be told apart with every kind of colour blindness, no two rules share a
# marker, and no two of a family a dash. Markers have Plotly's names.
SOLID, DASHED, DOTTED, DASH_DOT, LONG = (), (6, 3), (2, 2), (8, 3, 2, 3), (12, 4)
FAMILIES: dict[str, dict[str, tuple[str, tuple[int, ...]]]] = {
    "#0072B2": {  # differences of gradients
        "AdaGradDiff": ("circle", SOLID),
        "AdamDiff": ("diamond", DASHED),
        "RMSDiff": ("triangle-up", DOTTED),
        "FreeAdaGradDiff": ("cross-open", DASH_DOT),
    },
    "#D55E00": {  # sums of squared gradients
        "AdaGrad": ("square-open", DASHED),
        "AdaGradNorm": ("diamond-open", DOTTED),
        "DelayedAdaGrad": ("triangle-down-open", DASH_DOT),
        "DualAveraging": ("hexagon-open", LONG),
        "KATE": ("star", SOLID),
    },
    "#3A9E8A": {  # averages of squared gradients
        "Adam": ("square", SOLID),
        "RMSProp": ("triangle-up-open", DASHED),
        "AdaDelta": ("triangle-down", DOTTED),
    },
    "#B82088": {  # distances: no step size to choose
        "DoG": ("circle-open", SOLID),
        "DAdaptation": ("hexagon", DASHED),
        "Prodigy": ("star-open", DOTTED),
    },
    "#8C5C44": {  # one step size for all coordinates
        "Constant": ("cross", SOLID),
        "FISTA": ("x", DASHED),
        "AdaPG": ("asterisk", DOTTED),
    },
}
STRANGER = "#767676"  # a rule of the user's own
MARKERS = {  # in matplotlib's words
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "hexagon": "h",
    "star": "*",
    "cross": "P",
    "x": "X",
    "asterisk": (8, 2, 0),
}

GREY, RED = "#555555", "#B00020"
FINE_PRINT, TEXT, TITLE = (
    7.0,
    8.0,
    9.0,
)  # points at the printed size: figures are drawn at the width of a page

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
SHOWN_POINTS = 60  # kept of a curve of a comparison, of which there are hundreds


def style_of(rule_name: str) -> dict[str, Any]:
    """How the lines and points of a rule look, in every figure and on the report page.

    Parameters
    ----------
    rule_name : str
        The name of a class of `adagrad_diff.rules`, or any other: it gets a grey line, the same one whenever it is asked for.

    Returns
    -------
    dict
        `color` (hexadecimal), `dash` (lengths of strokes and gaps in pixels, empty for a solid line) and `marker` (a name).

    Examples
    --------
    >>> style_of("AdaGradDiff")
    {'color': '#0072B2', 'dash': [], 'marker': 'circle'}
    >>> style_of("AdaGrad")
    {'color': '#D55E00', 'dash': [6, 3], 'marker': 'square-open'}
    """
    for color, members in FAMILIES.items():
        if rule_name in members:
            marker, dash = members[rule_name]
            return {"color": color, "dash": list(dash), "marker": marker}
    which = zlib.crc32(
        rule_name.encode("utf-8", "replace")
    )  # the same in every process, which hash() is not
    dashes = (DASHED, DOTTED, DASH_DOT, LONG)
    marker = list(MARKERS)[which // len(dashes) % len(MARKERS)]
    return {"color": STRANGER, "dash": list(dashes[which % len(dashes)]), "marker": marker}


def line_of(rule_name: str) -> dict[str, Any]:
    """The same as keywords of matplotlib's `plot`.

    Examples
    --------
    >>> line_of("AdaGrad")
    {'color': '#D55E00', 'linestyle': (0, (6, 3)), 'marker': 's', 'markerfacecolor': 'white'}
    """
    look = style_of(rule_name)
    marker = look["marker"]
    return {
        "color": look["color"],
        "linestyle": (0, tuple(look["dash"])) if look["dash"] else "-",
        "marker": MARKERS[marker.removesuffix("-open")],
        "markerfacecolor": "white" if marker.endswith("-open") else look["color"],
    }


# The paper's two: blue and vermillion of Okabe and Ito differ in lightness, too; line style and markers do the same in black
# and white.
METHODS: dict[str, dict[str, Any]] = {
    "AdaGrad-Diff": line_of("AdaGradDiff"),
    "AdaGrad": {**line_of("AdaGrad"), "linestyle": "--"},
}


def style() -> Any:
    """Our settings, on top of matplotlib's own defaults and not of what the user has changed."""
    return require("matplotlib.style", "paper").context(["default", MATPLOTLIB])


def clear_ticks(axes: Axes, *, whole: bool = False) -> None:
    """Numbers of an axis whose limits are set do not collide: matplotlib's do, on a logarithmic axis of one or two decades.

    Powers of ten if there are two of them at least, otherwise a few numbers between them, too. `whole` is for an x axis that
    counts: it has no half iterations.
    """
    ticker = require("matplotlib.ticker", "paper")
    for axis, scale, ends in (
        (axes.xaxis, axes.get_xscale(), axes.get_xlim()),
        (axes.yaxis, axes.get_yscale(), axes.get_ylim()),
    ):
        if (
            scale == "log" and min(ends) > 0
        ):  # an axis without anything on it has limits that it does not mean
            low, high = np.log10(sorted(ends))
            if np.floor(high) - np.ceil(low) >= 1:
                axis.set_minor_formatter(ticker.NullFormatter())
            else:
                axis.set_major_locator(ticker.MaxNLocator(3, steps=[1, 2, 5, 10]))
                axis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
                axis.set_minor_formatter(ticker.NullFormatter())
    if whole and axes.get_xscale() == "linear":
        axes.xaxis.set_major_locator(ticker.MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))


def thin(count: int, most: int = POINTS) -> np.ndarray:
    """Which of `count` points to draw: all if there are few, else evenly spaced ones and more of the first.

    The steep part of a curve is at its beginning: a third of the points are spaced evenly in the logarithm.
    """
    if count <= most:
        return np.arange(count)
    even, early = np.linspace(0, count - 1, 2 * most // 3), np.geomspace(1, count - 1, most // 3)
    return np.unique(np.concatenate([even, early]).round().astype(int))
