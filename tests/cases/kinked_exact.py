"""Problems with kinks in rational numbers: their objective, their optimum if there are few coordinates, and what is near it.

Nothing here calls the package; of its losses only the data are read.
"""

from fractions import Fraction
from itertools import combinations

import numpy as np

import rational


class Exact:
    """sum_j w_j l(<a_j, x> + c, b_j) + sum_i l1_i |x_i| + l2_i / 2 x_i^2 between bounds, the intercept c being the last x."""

    def __init__(self, loss, l1=0.0, l2=0.0, lower=-np.inf, upper=np.inf):
        dense, features = loss.A.to_dense(), loss.A.shape[1]
        self.kind, self.theta, self.intercept = type(loss).__name__, loss.theta, loss.intercept
        used = np.flatnonzero(loss.weight > 0)
        self.rows = [rational.numbers(dense[j]) + [Fraction(1)] * loss.intercept for j in used]
        self.b, self.w = rational.numbers(loss.b[used]), rational.numbers(loss.weight[used])
        whole = lambda values: (
            rational.numbers(np.broadcast_to(values, features)) + [Fraction(0)] * loss.intercept
        )
        self.l1, self.l2 = whole(l1), [value + Fraction(loss.l2) for value in whole(l2)]
        self.l2[features:] = [Fraction(0)] * loss.intercept
        ends = [np.broadcast_to(end, features).astype(float).tolist() for end in (lower, upper)]
        free = [(-np.inf, np.inf)] * loss.intercept
        self.bounds = [*zip(*ends, strict=True), *free]

    def at(self, x):
        """F(x), None outside the bounds."""
        x = [value if isinstance(value, Fraction) else Fraction(float(value)) for value in x]
        if any(
            value < low or value > high for value, (low, high) in zip(x, self.bounds, strict=True)
        ):
            return None
        total = sum(
            lam * abs(v) + mu * v * v / 2 for lam, mu, v in zip(self.l1, self.l2, x, strict=True)
        )
        for row, b, w in zip(self.rows, self.b, self.w, strict=True):
            total += w * rational.scalar_loss(self.kind, _dot(row, x), b, self.theta)
        return total

    def least(self):
        """F_star, for at most two coordinates and no l2: the least value at a point where lines of kinks and bounds cross.

        Lines x_i = 0 are among them: where F is constant along a line, that line meets one.
        """
        size = len(self.l1)
        planes = [(row, b) for row, b in zip(self.rows, self.b, strict=True)]
        for i in range(size):
            unit = [Fraction(int(k == i)) for k in range(size)]
            planes += [
                (unit, Fraction(end)) for end in (0, *self.bounds[i]) if np.isfinite(float(end))
            ]
        points = (
            rational.solve([row for row, _ in some], [end for _, end in some])
            for some in combinations(planes, size)
        )
        return min(value for x in points if x is not None and (value := self.at(x)) is not None)

    def near(self, x):
        """The stationary point on the face of F that x is on but for rounding; None if that is not one point."""
        x = [float(value) for value in x]
        size, scale = (
            len(x),
            np.array([max(abs(float(row[i])) for row in self.rows) for i in range(len(x))]),
        )
        unit = float(np.max(np.abs(x) * scale)) + max(abs(float(b)) for b in self.b)
        held = {
            i: Fraction(x[i])
            for i in range(size)
            if (x[i] == 0 and self.l1[i]) or x[i] in self.bounds[i]
        }
        free = [i for i in range(size) if i not in held]
        base = [held.get(i, Fraction(0)) for i in range(size)]
        kinks, pull = [], [self.l1[i] * int(np.sign(x[i])) for i in free]
        for row, b, w in zip(self.rows, self.b, self.w, strict=True):
            t = float(_dot(row, [Fraction(value) for value in x]) - b)
            if abs(t) <= 1e-9 * unit:
                kinks.append((row, b))
                continue
            slope = {
                "LAD": np.sign(t),
                "Quantile": -self.theta if t < 0 else 1.0 - self.theta,
                "Hinge": -float(b) * (float(b) * t < 0),
            }
            pull = [
                p + w * Fraction(float(slope[self.kind])) * row[i]
                for p, i in zip(pull, free, strict=True)
            ]
        rows, right = [], []
        for k, i in enumerate(free):
            rows.append(
                [self.l2[i] if m == k else Fraction(0) for m in range(len(free))]
                + [row[i] for row, _ in kinks]
            )
            right.append(-pull[k])
        for row, b in kinks:
            rows.append([row[i] for i in free] + [Fraction(0)] * len(kinks))
            right.append(b - _dot(row, base))
        found = rational.solve(rows, right) if len(rows) <= 14 else None
        if found is None:
            return None
        for i, value in zip(free, found, strict=False):
            base[i] = value
        return base


def _dot(row, x):
    return sum((a * v for a, v in zip(row, x, strict=True)), Fraction(0))
