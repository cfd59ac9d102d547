"""
Quantile regression: a band for delivery times
==============================================

A band that holds 80% of delivery times, with no step size to choose and a certificate.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import QuantileRegressor as ByLinearProgram

from adagrad_diff.experiments.style import GREY, METHODS, style
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
    return (
        np.maximum(model.quantile * t, (model.quantile - 1) * t).mean()
        + ALPHA * np.abs(model.coef_).sum()
    )


def picture(X, y, models):
    """Draw the quantiles over the distance for average values of the other features.

    Times beyond 70 minutes are left out.
    """
    distance = np.linspace(0.5, 10, 50)
    average = np.tile(X.mean(0), (50, 1))
    average[:, 0] = distance
    blue = METHODS["AdaGrad-Diff"]["color"]
    low, middle, high = (model.predict(average) for model in models)
    with style():
        _, axes = plt.subplots(figsize=(5.2, 3.0), layout="constrained")
        axes.plot(X[:, 0], y, ".", color=GREY, alpha=0.35, markersize=2.5)
        axes.fill_between(
            distance, low, high, color=blue, alpha=0.2, label="from the 0.1 to the 0.9 quantile"
        )
        axes.plot(distance, middle, color=blue, label="median")
        axes.set(xlabel="distance in km", ylabel="delivery time in minutes", ylim=(0, 70))
        axes.legend(loc="upper left")
        plt.show()


def main():
    X, y = deliveries(np.random.default_rng(0))
    below, models = {}, []
    for quantile in (0.1, 0.5, 0.9):
        model = QuantileRegressor(quantile=quantile, alpha=ALPHA).fit(X, y)
        theirs = ByLinearProgram(quantile=quantile, alpha=ALPHA).fit(X, y)
        below[quantile] = (y < model.predict(X)).mean()
        models.append(model)
        ours, best = pinball(model, X, y), pinball(theirs, X, y)
        print(
            f"quantile {quantile}: objective {ours:.6f}, certified to {model.dual_gap_ / ours:.0e} ({model.stop_reason_} after "
            f"{model.n_iter_} iterations), {best:.6f} by a linear program; {below[quantile]:.1%} of the times are below"
        )
        assert ours <= best * (1 + 1e-3)
        assert ours - model.dual_gap_ <= best * (1 + 1e-9)
    print(f"{below[0.9] - below[0.1]:.1%} lie in the band")
    picture(X, y, models)


if __name__ == "__main__":
    main()
