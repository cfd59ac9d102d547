"""AdaGrad-Diff for scikit-learn: linear models with any loss and any penalty, and no step size to choose.

Objectives are mean loss + alpha x penalty, with an intercept that is never penalised. After `fit`, `dual_gap_` says how far
from the optimum the objective can be at most, `converged_` whether that is as close as was asked for, and `stop_reason_` why
the run ended; whatever did not converge warns.

>>> import numpy as np
>>> from adagrad_diff.sklearn import LADRegressor
>>> X = np.random.default_rng(0).standard_normal((200, 5))
>>> model = LADRegressor(alpha=0.01).fit(X, 2 * X[:, 0] + 1)
>>> model.converged_, model.stop_reason_, bool(model.dual_gap_ <= 1e-4 * model.objective_)
(True, 'certified', True)
"""

from ..common.extras import require

require("sklearn", "sklearn")

from ._classifier import LinearClassifier  # noqa: E402
from ._classifiers import LinearSVC, LogisticRegression, SparseSVC  # noqa: E402
from ._kernel_svc import KernelSVC  # noqa: E402
from ._path_cv import PathCV  # noqa: E402
from ._poisson import PoissonRegressor  # noqa: E402
from ._quantile import QuantileRegressor  # noqa: E402
from ._regressor import LinearRegressor  # noqa: E402
from ._robust import HuberRegressor, LADRegressor  # noqa: E402
from ._squared import ElasticNet, GroupLasso, Lasso  # noqa: E402

__all__ = [
    "ElasticNet",
    "GroupLasso",
    "HuberRegressor",
    "KernelSVC",
    "LADRegressor",
    "Lasso",
    "LinearClassifier",
    "LinearRegressor",
    "LinearSVC",
    "LogisticRegression",
    "PathCV",
    "PoissonRegressor",
    "QuantileRegressor",
    "SparseSVC",
]
