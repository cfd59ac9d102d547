"""Figures of comparisons: curves with bands on logarithmic axes, in one style, and their files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._files import write
from .._messages import counted, require
from .._version import __version__
from .style import FINE_PRINT, GREY, clear_ticks, line_of, style, thin

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .result import Sensitivity

BAND_OPACITY = 0.15
MARKERS_PER_LINE = 7
SMALLEST_VALUE = 1e-16  # of an axis: smaller gaps are rounding errors
FREE_DISTANCE = 10**0.4  # factor of eta between the grid and the rules without a step size
DIGITS = "%.10g"  # of numbers in CSV files: further ones differ from machine to machine


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **shared: Any) -> Any:
    """Return a figure and its axes, made without pyplot, which the user's figures need."""
    figure = require("matplotlib.figure", "paper").Figure((width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def curve(ax: Axes, x: Any, values: np.ndarray, label: str, **look: Any) -> None:
    """Draw the mean over the last axis and a band of one deviation, cut off at the minimum."""
    shown = thin(len(values))
    x, values = np.asarray(x)[shown], np.maximum(values[shown], 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        middle, spread = values.mean(axis=-1), values.std(axis=-1)
    every = max(1, x.size // MARKERS_PER_LINE)
    place = len(ax.get_lines()) * every // 3 % every  # of the first marker, by line
    ax.plot(x, middle, label=label, markevery=(place, every), **look)
    low, high = np.fmax(middle - spread, values.min(axis=-1)), middle + spread
    band = {"color": look["color"], "alpha": BAND_OPACITY, "linewidth": 0}
    ax.fill_between(x, low, high, where=np.isfinite(high), **band)


def logarithmic(ax: Any, ceiling: float = np.inf, whole: bool = False) -> None:
    """Fit a logarithmic axis to the curves. Triangles at the top mark values that are not on it."""
    same = ax.get_shared_y_axes().get_siblings(ax)
    curves = [(one, line) for one in same for line in one.get_lines() if line.get_label()[0] != "_"]
    heights = np.concatenate([np.asarray(line.get_ydata(), float) for _, line in curves])
    shown = heights[(heights > 0) & np.isfinite(heights) & (heights <= ceiling)]
    low, high = (max(shown.min(), SMALLEST_VALUE), shown.max()) if shown.size else (0.1, 10.0)
    margin = max((high / low) ** 0.06, 1.2)
    ax.set(yscale="log", ylim=(low / margin, high * margin))
    for k, line in enumerate(line for one, line in curves if one is ax):
        x, y = line.get_data()
        if (off := np.asarray(y) > high).any():
            mark = {"color": line.get_color(), "marker": "^", "linewidth": 0.8, "clip_on": False}
            ends, place = np.asarray(x)[off][[0, -1]], 0.965 - 0.06 * k  # one below the other
            ax.plot(ends, [place] * 2, transform=ax.get_xaxis_transform(), **mark)
    clear_ticks(ax, whole=whole)


def plot_gaps(found: Sensitivity, iterate: str) -> Figure:
    """Draw the gap against eta; rules without a step size stand on the right."""
    gaps, free = np.maximum(found.gap(iterate).values, found.floor), found.data.free.values
    with style():
        figure, ((axes,),) = new_figure(6.4, 3.6)
        axes.set(xscale="log", ylabel=f"{found.gap_name}, {iterate} iterate")
        position = found.etas[-1]
        for row, rule in enumerate(found.rules):
            if free[row]:
                position *= FREE_DISTANCE
                curve(axes, [position], gaps[row, :1], rule, **{**line_of(rule), "linestyle": ""})
            else:
                curve(axes, found.etas, gaps[row], rule, **line_of(rule))
        axes.set_xlabel(r"step size $\eta$" + ", and rules without one" * int(free.any()))
        if free.any() and not free.all():
            axes.axvline(found.etas[-1] * FREE_DISTANCE**0.5, color=GREY, linewidth=0.3)
        starts = counted(found.data.sizes["seed"], "start")
        axes.set_title(f"After {found.n_iter} iterations, {starts}")
        logarithmic(axes)
        figure.legend(loc="outside right upper", fontsize=FINE_PRINT)
    return figure  # type: ignore[no-any-return]


def save(figure: Figure, frame: pd.DataFrame, out: Path, stem: str) -> list[Path]:
    """Write a figure as PDF and PNG, and its numbers as CSV. The files have no date."""
    about = {"Title": stem, "Creator": f"adagrad-diff {__version__}", "CreationDate": None}
    writers = {
        "pdf": lambda file: figure.savefig(file, format="pdf", metadata=about),
        "png": lambda file: figure.savefig(file, format="png", metadata={"Title": stem}),
        "csv": lambda file: frame.to_csv(file, index=False, float_format=DIGITS),
    }
    with style():
        for ending, fill in writers.items():
            write(out / f"{stem}.{ending}", fill)
    return [out / f"{stem}.{ending}" for ending in writers]
