"""What a problem is, for people: the data, the loss and the penalty; and how to compare rules on it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..losses import LinearModel

if TYPE_CHECKING:
    from .result import Sensitivity


def about_problem(loss: Any, penalty: Any) -> list[list[str]]:
    """Pairs of a label and a text."""
    rows = []
    if (source := getattr(loss, "A", None)) is not None and hasattr(source, "shape"):
        samples, features = source.shape
        rows += [
            ["Samples", str(samples)],
            ["Features", str(features)],
            ["Data", f"{type(source).__name__}, {source.dtype}"],
        ]
    elif loss.shape is not None:
        rows.append(["Coordinates", " x ".join(map(str, loss.shape))])
    if isinstance(loss, LinearModel):
        values = np.unique(loss.b)
        if values.size == 2:
            counts = [int((loss.b == value).sum()) for value in values]
            rows.append(["Target", f"two classes, {counts[0]} and {counts[1]} samples"])
        else:
            rows.append(["Target", f"numbers from {loss.b.min():.4g} to {loss.b.max():.4g}"])
    function = getattr(loss, "function", None)
    rows.append(
        [
            "Loss",
            type(loss).__name__
            if function is None
            else getattr(function, "__name__", type(function).__name__),
        ]
    )
    if getattr(loss, "intercept", False):
        rows[-1][1] += ", with an intercept"
    if getattr(loss, "l2", 0):
        rows[-1][1] += f", with a ridge term of {loss.l2:g}"
    return [*rows, ["Penalty", penalty_text(penalty)]]


def penalty_text(penalty: Any) -> str:
    """Its name, and its strength if that is one number."""
    parts = []
    for name in ("l1", "l2", "lam", "radius"):
        value = getattr(penalty, name, None)
        if value is not None and np.size(value) == 1 and np.all(np.asarray(value) != 0):
            parts.append(f"{name} = {float(np.ravel(value)[0]):g}")
    return f"{penalty.name}, {', '.join(parts)}" if parts else str(penalty.name)


def python_lines(found: Sensitivity) -> list[str]:
    """The same call, as far as it can be written down."""
    etas = ", ".join(f"{eta:.10g}" for eta in found.etas)
    names = ", ".join(repr(name) for name in found.rules)
    return [
        "from adagrad_diff import sensitivity",
        f"# loss, penalty and starts as they were: {found.data.sizes['seed']} starts",
        f"found = sensitivity(loss, penalty, rules=[{names}],",
        f"                    etas=[{etas}],",
        f"                    starts=starts, n_iter={found.n_iter})",
        'found.report("report.html")',
    ]
