"""The result of a run as it is printed: what came out, in a few lines. All of it is there by name."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from ..common.showing import counted

SUMMARY_WIDTH = 100  # of the lines
SHOWN_OF_X = 5  # of x
NAME_WIDTH = 14  # characters that the names take
TOLD = ("message", "success", "status", "fun", "fun_best", "gap", "bound", "nit", "nfev", "x", "rule", "eta")


class Result(OptimizeResult):  # type: ignore[misc]
    """SciPy's OptimizeResult, with a summary.

    Examples
    --------
    >>> from adagrad_diff import minimize
    >>> minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], eta=1.0, max_iter=50)
           message  The budget of iterations (max_iter) is used up (50 iterations; norm of the
                    subgradient 6.12e-06, of the first gradient 5.00e+00).
           success  True (status 1)
               fun  1.87094e-11; the smallest seen: 1.87094e-11
               nit  50 iterations, 51 evaluations
                 x  2 numbers: 3.48015e-08, -6.11699e-06
    <BLANKLINE>
       and by name  history, jac, state, subgradient_norm, x_avg, x_best
    """

    def __repr__(self) -> str:
        lines = {
            "message": str(self.get("message", "")),
            "success": f"{self._each('success')} (status {self._each('status')})",
            "fun": f"{self._numbers('fun')}; the smallest seen: {self._numbers('fun_best')}",
            "gap": f"{self._numbers('gap')}: no point has a smaller objective by more than that" if "gap" in self else "",
            "nit": f"{self._each('nit')} iterations, {self._each('nfev')} evaluations",
            "x": self._point(),
            "rule": f"{self.rule!r}" if self.get("rule") is not None else "",
        }
        if "gap" in self and not np.isfinite(np.max(self.gap)):
            lines["gap"] = "nothing is proven"
        shown = [_line(name, text) for name, text in lines.items() if text]
        others = sorted(name for name in self if name not in TOLD)
        return "\n".join([*shown, "", _line("and by name", ", ".join(others))])

    def _each(self, name: str) -> str:
        """One value, or of several trajectories how many have which."""
        values, counts = np.unique(np.atleast_1d(self.get(name, np.nan)), return_counts=True)
        if len(values) == 1:
            return str(values[0])
        if len(values) > SHOWN_OF_X:
            return f"{values[0]} to {values[-1]}"
        return ", ".join(f"{value} ({count} of {counts.sum()})" for value, count in zip(values, counts, strict=True))

    def _numbers(self, name: str) -> str:
        values = np.atleast_1d(np.asarray(self.get(name, np.nan), float))
        return f"{values[0]:.6g}" if values.size == 1 else f"{np.min(values):.6g} to {np.max(values):.6g}"

    def _point(self) -> str:
        x = np.asarray(self.get("x", ()))
        zeros = int((x == 0).sum())
        about = counted(x.size, "number") if x.ndim == 1 else f"an array of shape {x.shape}"
        first = ", ".join(f"{value:.6g}" for value in x.ravel()[:SHOWN_OF_X]) + (", ..." if x.size > SHOWN_OF_X else "")
        return f"{about}{f', {zeros} of them zero' if zeros else ''}: {first}"


def _line(name: str, text: Any) -> str:
    """A name, right-aligned, and a text that goes on below itself."""
    indent = " " * (NAME_WIDTH + 2)
    return fill(text, SUMMARY_WIDTH, initial_indent=f"{name:>{NAME_WIDTH}}  ", subsequent_indent=indent, break_on_hyphens=False)
