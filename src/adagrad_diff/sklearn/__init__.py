"""AdaGrad-Diff for scikit-learn: linear models with any loss and any penalty, and no step size to choose.

Objectives are mean loss + alpha x penalty, with an intercept that is never penalised. After `fit`, `dual_gap_` says how far
from the optimum the objective can be at most, `converged_` whether that is as close as was asked for, and `stop_reason_` why
the run ended; whatever did not converge warns.

When to use which:

=================================================== =====================================================================
you want                                            use
=================================================== =====================================================================
the median, robust to outliers in y                 `LADRegressor`; a smooth compromise is `HuberRegressor`
a quantile, or a range of likely outcomes           `QuantileRegressor`, e.g. of [0.1, 0.5, 0.9] in one fit
counts                                              `PoissonRegressor`
few features, by least squares                      `Lasso`, `ElasticNet` (correlated ones), `GroupLasso` (whole groups)
few features, for classes                           `SparseSVC`, `LogisticRegression(penalty="l1")` (with probabilities)
classes by a margin, all features                   `LinearSVC`; with a kernel `KernelSVC`
another loss, penalty or constraint                 `LinearRegressor`, `LinearClassifier`: any of either, your own too
the strength of the penalty                         `PathCV` around any of the linear ones; all strengths: their `path`
=================================================== =====================================================================

What these have that others do not: every loss with every penalty, and a proof of the answer's quality. Without need for
either, others are often the better tool:

- Least squares with a ridge penalty: scikit-learn's `Ridge` solves it directly.
- Least squares with L1: scikit-learn's `Lasso` and celer's descend coordinate by coordinate, with their own proof of the gap,
  and are faster, celer above all with many more features than samples.
- Logistic regression with a ridge penalty: scikit-learn's `LogisticRegression` (lbfgs, or newton-cholesky with few features).
- Very wide sparse data, such as text, with a ridge penalty: scikit-learn's `LinearSVC` and liblinear, if it does not matter
  that these penalise the intercept.
- Kernels and thousands of samples or more: scikit-learn's `SVC`, which never holds the whole kernel matrix.
- Data that do not fit into memory, and an answer that need not be exact: scikit-learn's `SGDRegressor` and `SGDClassifier`.
  (A `Source` of blocks does fit them exactly, in many passes.)

They are the tools of choice where scikit-learn solves a linear program (LAD, quantiles), has no exact solver (hinge with L1,
groups, constraints), or says nothing about how far the answer is from the optimum.

>>> import numpy as np
>>> from adagrad_diff.sklearn import LADRegressor
>>> X = np.random.default_rng(0).standard_normal((200, 5))
>>> model = LADRegressor(alpha=0.01).fit(X, 2 * X[:, 0] + 1)
>>> model.converged_, model.stop_reason_, bool(model.dual_gap_ <= 1e-4 * model.objective_)
(True, 'certified', True)
"""

from .._messages import require

require("sklearn", "sklearn")

from ._classifier import LinearClassifier  # noqa: E402
from ._classifiers import LinearSVC, LogisticRegression, SparseSVC  # noqa: E402
from ._kernel_svc import KernelSVC  # noqa: E402
from ._path_cv import PathCV  # noqa: E402
from ._quantile import QuantileRegressor  # noqa: E402
from ._regressor import LinearRegressor  # noqa: E402
from ._regressors import (  # noqa: E402
    ElasticNet,
    GroupLasso,
    HuberRegressor,
    LADRegressor,
    Lasso,
    PoissonRegressor,
)

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
