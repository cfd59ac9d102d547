"""F(x) in rational numbers, for data that are doubles: nothing is rounded. Nothing here calls the package."""

from fractions import Fraction

import numpy as np


def numbers(array):
    return [Fraction(float(value)) for value in np.ravel(array)]


def scalar_loss(kind, z, b, theta):
    t, theta = z - b, Fraction(theta)
    if kind == "LAD":
        return abs(t)
    if kind == "Quantile":
        return -theta * t if t < 0 else Fraction(1.0 - float(theta)) * t
    if kind == "Hinge":
        return max(Fraction(0), 1 - b * z)
    if kind == "SquaredHinge":
        return max(Fraction(0), 1 - b * z) ** 2
    if kind == "Huber" and abs(t) > theta:
        return theta * (abs(t) - theta / 2)
    return t * t / 2  # Squared, and Huber inside


def objective(loss, penalty, x):
    """F(x) for x of doubles or fractions that is in the penalty's set."""
    x = [value if isinstance(value, Fraction) else Fraction(float(value)) for value in x]
    features = loss.A.shape[1]
    offset = x[features] if loss.intercept else Fraction(0)
    total, dense = Fraction(0), loss.A.to_dense()
    for row, b, w in zip(dense, numbers(loss.b), numbers(loss.weight), strict=True):
        if w:
            z = offset + sum(Fraction(float(a)) * v for a, v in zip(row, x, strict=False))
            total += w * scalar_loss(type(loss).__name__, z, b, loss.theta)
    part = x[:features]
    total += Fraction(loss.l2) * sum(v * v for v in part) / 2
    for name, power in (("l1", 1), ("l2", 2)):
        strengths = numbers(np.broadcast_to(getattr(penalty, name, 0.0), features))
        total += sum(lam * abs(v) ** power / power for lam, v in zip(strengths, part, strict=True))
    return total


def solve(rows, right):
    """The solution of a square system, or None if it is singular: Gauss and Jordan."""
    table = [[*row, value] for row, value in zip(rows, right, strict=True)]
    size = len(table)
    for i in range(size):
        pivot = next((k for k in range(i, size) if table[k][i]), None)
        if pivot is None:
            return None
        table[i], table[pivot] = table[pivot], table[i]
        for k in range(size):
            if k != i and table[k][i]:
                ratio = table[k][i] / table[i][i]
                table[k] = [p - ratio * q for p, q in zip(table[k], table[i], strict=True)]
    return [row[size] / row[i] for i, row in enumerate(table)]


def vertex(loss, x):
    """The vertex nearest to x: as many predictions at their kinks as x has coefficients. x itself if that is none."""
    features = loss.A.shape[1]
    support = [i for i in range(len(x)) if abs(x[i]) > 1e-12 * np.abs(x).max()]
    dense = loss.A.to_dense().astype(float)
    full = np.column_stack([dense, np.ones(len(dense))])[:, : len(x)]
    distance = np.where(loss.weight > 0, np.abs(full @ x - loss.b), np.inf)
    kinks = np.argsort(distance)[: len(support)]
    rows = [[Fraction(float(full[j, i])) for i in support] for j in kinks]
    found = (
        solve(rows, [Fraction(float(loss.b[j])) for j in kinks])
        if len(kinks) == len(support)
        else None
    )
    if found is None:
        return x
    answer = [Fraction(0)] * len(x)
    for i, value in zip(support, found, strict=True):
        answer[i] = value
    assert features >= len(x) - 1
    return answer


def stationary(loss, penalty, x):
    """Least squares on the support and with the signs of x, in rational numbers."""
    features = loss.A.shape[1]
    dense = np.column_stack([loss.A.to_dense().astype(float), np.ones(loss.A.shape[0])])[
        :, : len(x)
    ]
    support = [i for i in range(len(x)) if x[i] != 0 or i == features]
    A = [[Fraction(float(row[i])) for i in support] for row in dense]
    b, w = numbers(loss.b), numbers(loss.weight)
    l1 = [*numbers(np.broadcast_to(getattr(penalty, "l1", 0.0), features)), Fraction(0)]
    l2 = [
        *(
            v + Fraction(loss.l2)
            for v in numbers(np.broadcast_to(getattr(penalty, "l2", 0.0), features))
        ),
        Fraction(0),
    ]
    rows, right = [], []
    for k, i in enumerate(support):
        rows.append(
            [
                sum(v * a[k] * a[m] for a, v in zip(A, w, strict=True)) + (l2[i] if k == m else 0)
                for m in range(len(support))
            ]
        )
        sign = int(np.sign(x[i]))
        right.append(sum(v * a[k] * t for a, v, t in zip(A, w, b, strict=True)) - l1[i] * sign)
    found = solve(rows, right)
    if found is None:
        return x
    answer = [Fraction(0)] * len(x)
    for i, value in zip(support, found, strict=True):
        answer[i] = value
    return answer
