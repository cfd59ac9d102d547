"""What `verify` found, and how it is printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ._inequality import Inequality
from .rates import Rate

FALSE = "quasi-Fejer, printed"  # the one statement that is expected to fail somewhere


@dataclass(frozen=True)
class Row:
    """One statement on one problem: the smallest relative slack over all step sizes and blocks, and where it is."""

    problem: str
    statement: str
    relative: float
    n: int
    eta: float
    blocks: str
    rounding: float
    runs: int  # how many it was checked on
    refused: str = ""  # why it was not, on the others

    @property
    def holds(self) -> bool:
        """Whether no run violates it by more than rounding."""
        return self.relative >= -self.rounding


@dataclass(frozen=True)
class Bound:
    """The main bound and the truth along one run with single coordinates as blocks."""

    problem: str
    eta: float
    best_eta: (
        float  # of the bound: the eta that makes its two middle terms equal, sqrt(Delta_max / 2)
    )
    said: Inequality = field(repr=False)
    norm: Inequality = field(repr=False)  # the form of the main text


@dataclass
class Verification:
    """What `verify` found."""

    rows: list[Row] = field(default_factory=list)
    rates: list[tuple[str, float, Rate | str]] = field(
        default_factory=list
    )  # problem, eta, rate or why there is none
    bounds: list[Bound] = field(default_factory=list, repr=False)
    files: list[Path] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether every statement held; the one that is printed wrongly does not count."""
        return all(row.holds for row in self.rows if row.statement != FALSE)


def to_text(found: Verification) -> str:
    """The two tables in plain text."""
    head = f"{'problem':<8} {'statement':<22} {'runs':>4} {'least slack':>12} {'rounding':>9} {'n':>6} {'eta':>9} {'blocks':<12}"
    lines = [f"{head} result"]
    for row in found.rows:
        if not row.runs:
            lines.append(
                f"{row.problem:<8} {row.statement:<22} {0:>4} {'':>53} refused: {row.refused}"
            )
            continue
        result = "holds" if row.holds else "VIOLATED"
        if row.statement == FALSE:
            result = "not violated here" if row.holds else "violated, as it should be"
        where = f"{row.n:>6} {row.eta:>9.3g} {row.blocks:<12}"
        lines.append(
            f"{row.problem:<8} {row.statement:<22} {row.runs:>4} {row.relative:>12.1e} {row.rounding:>9.0e} {where} {result}"
        )
    lines += [
        "",
        f"{'problem':<8} {'eta':>9} {'slope':>7} {'needed':>7} {'from n':>7} {'to n':>7}  result",
    ]
    for name, eta, rated in found.rates:
        if isinstance(rated, str):
            lines.append(f"{name:<8} {eta:>9.3g} {'':>32} refused: {rated}")
            continue
        result = (
            ("holds" if rated.holds() else "TOO FLAT") if rated.settled else "not yet asymptotic"
        )
        first, last = rated.window
        lines.append(
            f"{name:<8} {eta:>9.3g} {rated.slope:>7.2f} {rated.needed:>7} {first:>7} {last:>7}  {result}"
        )
    return "\n".join(lines)
