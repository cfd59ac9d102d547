"""scikit-learn's own checks of estimators: all of them, for every estimator, with no expected failure."""

import pytest

pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks

from adagrad_diff import sklearn as door

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")]

ESTIMATORS = [getattr(door, name)() for name in door.__all__ if name != "PathCV"]
# What is handled differently: a matrix of coefficients, and another solver. Other losses and penalties take the same way as the
# estimators that are named after them.
ESTIMATORS += [door.LinearClassifier(loss="multinomial", penalty="group"), door.KernelSVC(fit_intercept=True)]


ESTIMATORS = [estimator.set_params(max_iter=10) for estimator in ESTIMATORS]  # they pass with 10000, too
ESTIMATORS += [door.PathCV(kind(max_iter=2), alphas=[1.0, 0.1], cv=2) for kind in (door.Lasso, door.LogisticRegression)]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)
