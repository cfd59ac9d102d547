"""Quantile regression: a band that holds 80% of delivery times, with no step size to choose and a certificate."""

import numpy as np
from sklearn.linear_model import QuantileRegressor as ByLinearProgram

from adagrad_diff.sklearn import QuantileRegressor

SAMPLES, FEATURES, ALPHA = 1000, 8, 0.01


def deliveries(rng):
    """Times in minutes, which vary more over longer distances, with a few that went wrong."""
    X = rng.standard_normal((SAMPLES, FEATURES))
    X[:, 0] = rng.uniform(0.5, 10, SAMPLES)
    noise = X[:, 0] / 2 * rng.standard_normal(SAMPLES) + np.where(rng.random(SAMPLES) < 0.03, 60, 0)
    return X, 10 + 3 * X[:, 0] + 2 * X[:, 1] + noise


def pinball(model, X, y):
    t = y - model.predict(X)
    return np.maximum(model.quantile * t, (model.quantile - 1) * t).mean() + ALPHA * np.abs(model.coef_).sum()


def main():
    X, y = deliveries(np.random.default_rng(0))
    below = {}
    for quantile in (0.1, 0.5, 0.9):
        model = QuantileRegressor(quantile=quantile, alpha=ALPHA).fit(X, y)
        theirs = ByLinearProgram(quantile=quantile, alpha=ALPHA).fit(X, y)
        below[quantile] = (y < model.predict(X)).mean()
        ours, best = pinball(model, X, y), pinball(theirs, X, y)
        print(
            f"quantile {quantile}: objective {ours:.6f}, certified to {model.dual_gap_ / ours:.0e} ({model.stop_reason_} after "
            f"{model.n_iter_} iterations), {best:.6f} by a linear program; {below[quantile]:.1%} of the times are below"
        )
        assert ours <= best * (1 + 1e-3)
        assert ours - model.dual_gap_ <= best * (1 + 1e-9)
    print(f"{below[0.9] - below[0.1]:.1%} lie in the band")


if __name__ == "__main__":
    main()
