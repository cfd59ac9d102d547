"""The paper's figures, in its arrangement, with the numbers behind them.

Figures 1 and 2 show how sensitive the methods are to eta, and what they reach when eta is tuned.
Figure 3 and those of the appendix show them at 0.1, 1 and 10 times the reference eta.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._messages import counted, require
from ..figures import curve, logarithmic, new_figure
from ..style import FINE_PRINT, GREY, METHODS, RED, style
from .protocol import REFERENCE_FACTORS, TITLES, Study

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN_WIDTH, PAGE_WIDTH = 3.35, 6.75  # inches
CHARACTERS_PER_INCH = {"title": 15, "note": 24}
OFF_CHART = 1e3  # times the largest gap at the start
GAP, STEP = r"$F(x) - F_{\!\star}$", r"mean of $\eta\,/\,w_i$"
NOTE = (
    "Lines: mean over the starts. Bands: one standard deviation, cut off at the best start. "
    "Triangles at the top: diverged or off the chart."
)
VERTICAL = "Vertical lines: the best step size of each method and, dotted, the paper's."
STAND_IN = "Generated data ({}), not the paper's: the numbers are not comparable with the paper's."


def figure_columns(studies: Sequence[Study]) -> tuple[Figure, pd.DataFrame]:
    """Return Figure 1 or 2: a column per problem with robustness to eta and tuned curves."""
    frames = []
    with style():
        width = COLUMN_WIDTH if len(studies) == 1 else PAGE_WIDTH
        figure, axes = new_figure(width, 5.2, 2, len(studies))
        for (top, bottom), study in zip(axes.T, studies, strict=True):
            ceiling, last = _ceiling(study), study.grid.mean_step.isel(iteration=[-1])
            frames.append(
                _frame(study, "robustness", study.gap.expand_dims(iteration=last.iteration), last)
            )
            for rule, eta in study.best_eta.items():
                look = METHODS[TITLES[rule]]
                curve(
                    top,
                    study.comparison.etas,
                    study.gap.sel(rule=rule).values,
                    TITLES[rule],
                    **look,
                )
                frames.append(
                    _draw(bottom, study, "tuned", rule, eta, label=rf"$\eta = {_number(eta)}$")
                )
            top.set(xscale="log", xlabel=r"$\eta$")
            logarithmic(top, ceiling)
            for rule, eta in study.best_eta.items():
                look = {key: METHODS[TITLES[rule]][key] for key in ("color", "linestyle")}
                top.axvline(eta, linewidth=0.6, zorder=1.5, **look)
            top.axvline(study.paper_eta, color=GREY, linestyle=":", linewidth=0.9, zorder=1.5)
            about = f"{_sizes(study)}, {len(study.grid.eta)} values of $\\eta$"
            title = fill(_title(study), int(width / len(studies) * CHARACTERS_PER_INCH["title"]))
            top.set_title(f"{title}\n{about}")
            bottom.set(xlim=(0, study.n_iter), xlabel="iteration")
            logarithmic(bottom, ceiling, whole=True)
            bottom.legend(fontsize=FINE_PRINT)
        axes[0, 0].set_ylabel(f"final {GAP}")
        axes[1, 0].set_ylabel(GAP)
        _finish(figure, studies, f"{NOTE} {VERTICAL}", width)
    return figure, _join(frames)


def three_panels(study: Study) -> tuple[Figure, pd.DataFrame]:
    """Return gap and mean step against the iteration at 0.1, 1 and 10 times the reference eta."""
    frames = []
    with style():
        figure, axes = new_figure(PAGE_WIDTH, 4.4, 2, 3, sharex="col", sharey="row")
        panels = zip(axes.T, REFERENCE_FACTORS, study.panel_etas, strict=True)
        for (top, bottom), factor, eta in panels:
            top.set_title(rf"$\eta = {_number(eta)}$  (${factor:g}\times$ reference)")
            for rule in TITLES:
                frames.append(_draw(top, study, f"{factor:g} x reference", rule, eta, bottom))
            bottom.set(xlim=(0, study.n_iter), xlabel="iteration")
        axes[0, 0].set_ylabel(GAP)
        axes[1, 0].set_ylabel(STEP)
        for top, bottom in axes.T:
            logarithmic(top, _ceiling(study), whole=True)
            logarithmic(bottom, whole=True)
        _finish(figure, [study], NOTE, PAGE_WIDTH, f"{_title(study)}, {_sizes(study)}")
    return figure, _join(frames)


def _draw(
    ax: Axes, study: Study, panel: str, rule: str, eta: float, below: Any = None, label: str = ""
) -> pd.DataFrame:
    """Draw the gap of a rule at one eta by iteration, and the mean step into the panel below.

    Return the numbers, from the start (iteration 0, to which no step leads) on.
    """
    look = METHODS[TITLES[rule]]
    chosen = {"rule": [rule], "eta": study.curves.eta.sel(eta=[eta], method="nearest").values}
    start = (study.curves.objective_start - study.F_star).expand_dims(**chosen, iteration=[0])
    step = study.curves.mean_step.sel(**chosen)
    gap = require("xarray", "paper").concat([start, study.curve_gap.sel(**chosen)], "iteration")
    order = "iteration", "seed"
    values = gap.squeeze(("rule", "eta")).transpose(*order).values
    curve(ax, gap.iteration, values, label or TITLES[rule], **look)
    if below is not None:
        values = step.squeeze(("rule", "eta")).transpose(*order).values
        curve(below, step.iteration, values, TITLES[rule], **look)
    return _frame(study, panel, gap, step)


def _frame(study: Study, panel: str, gap: xr.DataArray, step: xr.DataArray) -> pd.DataFrame:
    """Return mean, standard deviation and minimum over the seeds, one row per point.

    A mean is infinite if one trajectory diverged: the mean of the others would flatter the method.
    """
    columns: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        for name, values in {"gap": gap, "step": step}.items():
            for how in ("mean", "std", "min"):
                columns[f"{name}_{how}"] = getattr(values, how)("seed", skipna=False)
    data = require("xarray", "paper").Dataset(
        columns | {"diverged": (np.isfinite(gap) == 0).sum("seed")}
    )
    frame = data.to_dataframe(dim_order=("rule", "eta", "iteration")).reset_index()
    first = {"panel": panel, "problem": study.name, "data": study.data}
    frame = frame.assign(**first, method=frame["rule"].map(TITLES), seeds=gap.sizes["seed"])
    return frame[[*first, "method", "eta", "iteration", *columns, "seeds", "diverged"]]


def _join(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    return require("pandas", "paper").concat(list(frames), ignore_index=True)


def _finish(
    figure: Figure, studies: Sequence[Study], note: str, width: float, title: str = ""
) -> None:
    """Add the legend above and the small print below the panels."""
    stand_ins = [study.data for study in studies if not study.real]
    notes = [STAND_IN.format(", ".join(stand_ins)), note] if stand_ins else [note]
    columns, color = int(width * CHARACTERS_PER_INCH["note"]), RED if stand_ins else GREY
    text = "\n".join(fill(line, columns) for line in notes)
    figure.supxlabel(text, fontsize=FINE_PRINT, color=color)
    lines = figure.axes[0].get_lines()[: len(METHODS)]
    figure.legend(lines, list(METHODS), title=title, ncols=2, loc="outside upper center")


def _ceiling(study: Study) -> float:
    """Return the largest gap on a chart."""
    start = study.curves.objective_start.mean() - study.F_star
    return OFF_CHART * float(start) if np.isfinite(start) else np.inf


def _sizes(study: Study) -> str:
    return f"{study.n_iter} iterations, {counted(study.x0s.shape[1], 'start')}"


def _title(study: Study) -> str:
    return study.title if study.real or "stand-in" in study.title else f"{study.title} (stand-in)"


def _number(value: float) -> str:
    r"""Return three digits as mathtext.

    Examples
    --------
    >>> _number(0.06226), _number(0.0000123), _number(250000.0)
    ('0.0623', '1.23\\times 10^{-5}', '2.5\\times 10^{5}')
    """
    mantissa, _, exponent = f"{value:.3g}".partition("e")
    return rf"{mantissa}\times 10^{{{int(exponent)}}}" if exponent else mantissa
