"""Tables for benchmarks: classic ones, made ones. (A, b), raw unless the name says otherwise."""

from __future__ import annotations

import numpy as np

from ._timing import optional

Table = tuple[np.ndarray, np.ndarray]


def correlated(samples: int, features: int, correlation: float = 0.9) -> Table:
    """Neighbouring columns are correlated, those further away less and less; 20 true coefficients."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((samples, features))
    for i in range(1, features):
        A[:, i] = correlation * A[:, i - 1] + np.sqrt(1 - correlation**2) * A[:, i]
    w = np.zeros(features)
    w[rng.choice(features, min(20, features), replace=False)] = rng.standard_normal(
        min(20, features)
    )
    return A, A @ w + rng.standard_t(3, samples)


def ordinary(samples: int = 3000, features: int = 38) -> Table:
    """Columns as people have them: units from 1e-3 to 1e4, far from zero, correlated, some counts, some flags."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((samples, features)) + rng.standard_normal(
        (samples, 6)
    ) @ rng.standard_normal((6, features))
    A[:, ::5] = np.exp(0.5 * A[:, ::5])
    A[:, 1::7] = A[:, 1::7] > 0
    A[:, 2::7] = np.floor(np.abs(A[:, 2::7]) * 3)
    b = A @ (rng.standard_normal(features) * (rng.random(features) < 0.6)) + rng.gamma(
        2.0, 1.0, samples
    )
    return (A + rng.uniform(-5, 20, features)) * rng.permutation(
        np.geomspace(1e-3, 1e4, features)
    ), 10 * b + 200


def wide(samples: int = 40, features: int = 800) -> Table:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((samples, features))
    return A, A[:, :5] @ rng.standard_normal(5) + 0.5 * rng.standard_t(3, samples)


def classic() -> dict[str, Table]:
    """Regression tables of scikit-learn, statsmodels and pinball-qr, as far as these are installed."""
    tables: dict[str, Table] = {}
    if optional("statsmodels"):
        from statsmodels import datasets

        for name in ("engel", "stackloss", "longley", "star98"):
            data = getattr(datasets, name).load_pandas()
            target = np.asarray(data.endog, dtype=float).reshape(len(data.endog), -1)[:, 0]
            A, b = np.asarray(data.exog, dtype=float).reshape(len(target), -1), target
            tables[name] = (
                (b[:, None], A[:, 0]) if name == "engel" else (A, b)
            )  # statsmodels explains income by food
    if optional("sklearn"):
        from sklearn.datasets import load_diabetes

        tables["diabetes"] = load_diabetes(return_X_y=True, scaled=False)
    if optional("pinball"):
        from pinball.datasets import load_barro

        data = load_barro()
        tables["barro"] = data.data, data.target
    return tables


def standardized(A: np.ndarray) -> np.ndarray:
    return (A - A.mean(axis=0)) / np.where(A.std(axis=0) > 0, A.std(axis=0), 1.0)


def binary() -> dict[str, Table]:
    """Tables with labels -1 and 1."""
    from sklearn.datasets import load_breast_cancer, load_digits

    A, y = load_breast_cancer(return_X_y=True)
    digits, digit = load_digits(return_X_y=True)
    return {
        "breast_cancer raw": (A, 2.0 * y - 1),
        "breast_cancer scaled": (standardized(A), 2.0 * y - 1),
        "digits even": (digits / 16, np.where(digit % 2 == 0, 1.0, -1.0)),
    }
