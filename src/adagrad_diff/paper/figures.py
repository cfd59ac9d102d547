"""The paper's figures, in its arrangement, each as PDF and PNG with the numbers behind it as CSV.

Figures 1 and 2 show how sensitive the methods are to eta, and what they reach when eta is tuned; Figure 3 and those of the
appendix follow them at 0.1, 1 and 10 times the reference eta.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from .._messages import require
from .._version import __version__
from ..study.files import write_all
from ..study.style import FINE_PRINT, GREY, METHODS, RED, TITLE, clear_ticks, style
from . import _numbers as numbers
from ._panels import BAND, OFF_CHART, draw, limits

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .protocol import Study

NONSMOOTH_PROBLEMS, SMOOTH_PROBLEMS = ("hinge", "lad"), ("news20", "splice", "2moons")
# Inches: a column or the page of a two-column paper, by the number of panels side by side.
FIGURE_WIDTH = {1: 3.35, 2: 6.75, 3: 6.75}
GAP, FINAL_GAP, STEP = (
    r"$F(x) - F_{\!\star}$",
    r"final $F(x) - F_{\!\star}$",
    r"mean of $\eta\,/\,w_i$",
)
EARLY = 0.01  # of the budget: the first steps can be a hundred times as large as all others, and set no limits
DIGITS = "%.10g"  # of the numbers in the CSV: the later ones differ from machine to machine

LINES = "Lines: mean over the starts. Bands: ± one standard deviation, cut off at the best start."
OFF = "Triangles at the top: diverged or off the chart."
FIRST_STEPS = "The first steps exceed the axis."
STAND_IN_NOTE = (
    "Generated data ({}), not the paper's: the numbers are not comparable with the paper's."
)


def figure_1(studies: Mapping[str, Study], out: Any) -> list[Path]:
    """Robustness to eta and tuned curves of the nonsmooth problems: hinge and LAD.

    Parameters
    ----------
    studies : dict of name -> Study
        Those of "hinge" and "lad" that are there are drawn; others are left alone.
    out : path
        The directory for fig1.pdf, fig1.png and fig1.csv.

    Returns
    -------
    list of Path
        The three files.
    """
    return _save(draw_figure_1(studies), _both(_chosen(studies, NONSMOOTH_PROBLEMS)), out, "fig1")


def figure_2(studies: Mapping[str, Study], out: Any) -> list[Path]:
    """Robustness to eta and tuned curves of the smooth problems: news20, splice, 2moons. As `figure_1`, named fig2."""
    return _save(draw_figure_2(studies), _both(_chosen(studies, SMOOTH_PROBLEMS)), out, "fig2")


def three_panels(study: Study, out: Any, stem: str) -> list[Path]:
    """Gap and mean step against the iteration at 0.1, 1 and 10 times the reference eta.

    Parameters
    ----------
    study : Study
    out : path
        The directory.
    stem : str
        The name of the files without the ending, such as "fig3_splice".

    Returns
    -------
    list of Path
        The PDF, the PNG and the CSV.
    """
    return _save(draw_three_panels(study), numbers.three_etas(study), out, stem)


def draw_figure_1(studies: Mapping[str, Study]) -> Figure:
    """Figure 1, not yet saved."""
    return _columns(_chosen(studies, NONSMOOTH_PROBLEMS))


def draw_figure_2(studies: Mapping[str, Study]) -> Figure:
    """Figure 2, not yet saved."""
    return _columns(_chosen(studies, SMOOTH_PROBLEMS))


def draw_three_panels(study: Study) -> Figure:
    """The figure of `three_panels`, not yet saved."""
    frame = numbers.three_etas(study)
    with style():
        figure, axes = _page(3, height=4.2, sharex="col", sharey="row")
        late = frame[frame.iteration >= study.n_iter * EARLY]
        axes[0, 0].set(yscale="log", ylim=limits(frame, "gap", _ceiling(frame)), ylabel=GAP)
        axes[1, 0].set(yscale="log", ylim=limits(late, "step"), ylabel=STEP)
        notes = {LINES: True}
        for column, (panel, rows) in zip(axes.T, frame.groupby("panel", sort=False), strict=True):
            factor, eta = str(panel).removesuffix(" x reference"), rows.eta.iloc[0]
            column[0].set_title(rf"$\eta = {_number(eta)}$  (${factor}\times$ reference)")
            notes[OFF] = _draw_curves(column[0], rows, "gap", study) or notes.get(OFF, False)
            notes[FIRST_STEPS] = _draw_curves(column[1], rows, "step", study) or notes.get(
                FIRST_STEPS, False
            )
            column[1].set_xlabel("iteration")
        about = f"{study.n_iter} iterations, {_counted(frame.seeds.iloc[0], 'start')}"
        inches = figure.get_figheight()
        figure.text(
            0.5, 1 - 0.06 / inches, _title(study), ha="center", va="top", fontsize=TITLE + 1
        )
        figure.text(
            0.5, 1 - 0.24 / inches, about, ha="center", va="top", fontsize=FINE_PRINT, color=GREY
        )
        _finish(figure, [study], notes, top=0.42, best=False)
    return figure


def _columns(studies: list[Study]) -> Figure:
    """One column per problem: robustness above, tuned curves below."""
    with style():
        figure, axes = _page(len(studies), height=4.9)
        notes = {LINES: True, OFF: False}
        for column, study in zip(axes.T, studies, strict=True):
            grid, curves = numbers.robustness(study), numbers.tuned(study)
            above = _draw_robustness(column[0], grid, study, _ceiling(curves), len(studies))
            column[1].set(
                yscale="log", ylim=limits(curves, "gap", _ceiling(curves)), xlabel="iteration"
            )
            below = _draw_curves(column[1], curves, "gap", study)
            _key(column[1], study.best_eta)
            notes[OFF] |= above or below
        axes[0, 0].set_ylabel(FINAL_GAP)
        axes[1, 0].set_ylabel(GAP)
        _finish(figure, studies, notes, top=0.03, best=True)
    return figure


def _draw_robustness(
    ax: Axes, frame: pd.DataFrame, study: Study, ceiling: float, columns: int
) -> bool:
    etas = frame.eta.to_numpy()
    ax.set(xscale="log", yscale="log", ylim=limits(frame, "gap", ceiling), xlabel=r"$\eta$")
    ax.set_xlim(min(etas.min(), study.paper_eta), max(etas.max(), study.paper_eta))
    about = f"{study.n_iter} iterations, {_counted(frame.seeds.iloc[0], 'start')}, {len(study.grid.eta)} values of $\\eta$"
    title, room = _title(study), FIGURE_WIDTH[columns] / columns * 72 / (0.45 * TITLE)
    ax.set_title(
        title if len(title) < room else title.replace(" on ", "\non ", 1), pad=12, linespacing=1.05
    )
    ax.text(
        0.5,
        1.02,
        about,
        transform=ax.transAxes,
        ha="center",
        va="bottom",
        fontsize=FINE_PRINT,
        color=GREY,
    )
    ax.axvline(study.paper_eta, color=GREY, linestyle=":", linewidth=0.9, zorder=1.5)
    for rule, method in numbers.TITLES_OF_RULES.items():
        look = METHODS[method]
        ax.axvline(
            study.best_eta[rule],
            color=look["color"],
            linestyle=look["linestyle"],
            linewidth=0.6,
            zorder=1.5,
        )
    _watermark(ax, study)
    return draw(ax, frame, "eta", "gap")


def _draw_curves(ax: Axes, frame: pd.DataFrame, quantity: str, study: Study) -> bool:
    ax.set_xlim(0, study.n_iter)
    _watermark(ax, study)
    return draw(ax, frame, "iteration", quantity)


def _ceiling(curves: pd.DataFrame) -> float:
    """The largest gap worth showing, measured by the gap at the start."""
    start = curves.gap_mean[curves.iteration == 0].max()
    return OFF_CHART * start if start > 0 else np.inf


def _page(columns: int, height: float, **shared: Any) -> tuple[Figure, np.ndarray]:
    """A figure with two rows of panels. No pyplot: a figure of its own does not meddle with the user's."""
    figure = require("matplotlib.figure", "paper").Figure(figsize=(FIGURE_WIDTH[columns], height))
    return figure, figure.subplots(2, columns, squeeze=False, **shared)


def _finish(
    figure: Figure, studies: list[Study], notes: Mapping[str, bool], *, top: float, best: bool
) -> None:
    """The legend and the small print, below the panels; the panels take the room that is left."""
    lines = require("matplotlib.lines", "paper")
    patches = require("matplotlib.patches", "paper")
    tuples = require("matplotlib.legend_handler", "paper").HandlerTuple(ndivide=None, pad=0.3)
    handles: list[Any] = []
    for look in METHODS.values():
        handles.append(
            (
                patches.Patch(facecolor=look["color"], alpha=BAND, linewidth=0),
                lines.Line2D([], [], **look),
            )
        )
    labels, special = list(METHODS), {}
    if best:
        upright = {"marker": "|", "linestyle": "", "markersize": 9}
        pair = tuple(
            lines.Line2D([], [], **upright, color=look["color"], markeredgewidth=0.7)
            for look in METHODS.values()
        )
        handles += [pair, lines.Line2D([], [], color=GREY, linestyle=":", linewidth=0.9)]
        labels += [r"best $\eta$ of each method", r"the paper's reference $\eta$"]
        special[pair] = tuples

    width, height = figure.get_size_inches()
    characters = int(width * 72 / (0.42 * FINE_PRINT))
    small_print = fill(" ".join(note for note, needed in notes.items() if needed), characters)
    stand_ins = [study for study in studies if not study.real]
    warning = (
        fill(STAND_IN_NOTE.format(", ".join(study.data for study in stand_ins)), characters)
        if stand_ins
        else ""
    )
    y = 0.05
    for text, colour in ((warning, RED), (small_print, GREY)):
        if text:
            figure.text(
                0.5,
                y / height,
                text,
                ha="center",
                va="bottom",
                fontsize=FINE_PRINT,
                color=colour,
                linespacing=1.15,
            )
            y += (text.count("\n") + 1) * FINE_PRINT * 1.25 / 72 + 0.03
    columns = len(handles) if width > 5 else 2
    figure.legend(
        handles,
        labels,
        handler_map=special,
        ncols=columns,
        loc="lower center",
        bbox_to_anchor=(0.5, y / height),
        borderaxespad=0.2,
        handlelength=2.8,
    )
    y += 0.2 * -(-len(handles) // columns) + 0.06
    figure.set_layout_engine(
        "constrained",
        rect=(0, y / height, 1, 1 - (y + top) / height),
        w_pad=0.03,
        h_pad=0.03,
        wspace=0.03,
    )
    for ax in figure.axes:
        clear_ticks(ax, whole=True)
    # The solver's last digits vary from run to run: lay out once and round, so that the same study gives the same file.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for ax in figure.axes:
        ax.set_position(tuple(round(edge, 4) for edge in ax.get_position().bounds))


def _key(ax: Axes, best_eta: Mapping[str, float]) -> None:
    """Above a tuned panel: which line has which eta."""
    labels = {
        method: rf"$\eta = {_number(best_eta[rule])}$"
        for rule, method in numbers.TITLES_OF_RULES.items()
    }
    shown = [line for line in ax.get_lines() if line.get_label() in labels]
    ax.legend(
        shown,
        [labels[str(line.get_label())] for line in shown],
        ncols=2,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        borderaxespad=0.1,
        handlelength=2.2,
        handletextpad=0.5,
        columnspacing=0.9,
    )


def _watermark(ax: Axes, study: Study) -> None:
    """Panels of stand-in data say so themselves, also when somebody cuts them out."""
    if not study.real:
        ax.text(
            0.5,
            0.5,
            "stand-in",
            transform=ax.transAxes,
            ha="center",
            va="center",
            fontsize=20,
            color=RED,
            alpha=0.13,
            zorder=0.5,
        )


def _title(study: Study) -> str:
    return study.title if study.real or "stand-in" in study.title else f"{study.title} (stand-in)"


def _number(value: float) -> str:
    r"""Three digits, as mathtext: 0.0623 or 6.2 x 10^-5.

    Examples
    --------
    >>> _number(0.06226), _number(0.0000123), _number(250000.0)
    ('0.0623', '1.23\\times 10^{-5}', '2.5\\times 10^{5}')
    """
    mantissa, _, exponent = f"{value:.3g}".partition("e")
    return rf"{mantissa}\times 10^{{{int(exponent)}}}" if exponent else mantissa


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _chosen(studies: Mapping[str, Study], names: tuple[str, ...]) -> list[Study]:
    chosen = [studies[name] for name in names if name in studies]
    if not chosen:
        raise ValueError(
            f"'studies' has none of {', '.join(names)}: there is nothing to draw. It has {list(studies)}."
        )
    return chosen


def _both(studies: list[Study]) -> pd.DataFrame:
    frames = [table(study) for study in studies for table in (numbers.robustness, numbers.tuned)]
    return require("pandas", "paper").concat(frames, ignore_index=True)


def _save(figure: Figure, frame: pd.DataFrame, out: Any, stem: str) -> list[Path]:
    """PDF, PNG and CSV. Neither has a date in it: the same study gives the same files."""
    about = {"Title": stem, "Creator": f"adagrad-diff {__version__}"}
    with style():
        return write_all(
            out,
            {
                f"{stem}.pdf": lambda path: figure.savefig(
                    path, format="pdf", metadata={**about, "CreationDate": None}
                ),
                f"{stem}.png": lambda path: figure.savefig(
                    path, format="png", metadata={"Software": about["Creator"]}
                ),
                f"{stem}.csv": lambda path: frame.to_csv(path, index=False, float_format=DIGITS),
            },
        )
