"""Small data for every estimator by name."""

import numpy as np

from adagrad_diff import sklearn as door

NAMES = [name for name in door.__all__ if name != "PathCV"]
REGRESSORS = [
    name for name in NAMES if "Regressor" in name or "Lasso" in name or name == "ElasticNet"
]


def data(name, samples=80, features=6, classes=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((samples, features))
    score = X[:, 0] - 2 * X[:, 1] + 0.5 * rng.standard_normal(samples)
    if name not in REGRESSORS:
        return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    return X, rng.poisson(np.exp(0.3 * score)) if "Poisson" in name else score + 1


def make(name, **options):
    model = getattr(door, name)(**options)
    return model.set_params(alpha=0.05) if options.get("alpha") is None else model
