"""scikit-learn's own checks of estimators: all of them, for every estimator, with no expected failure."""

import pytest

pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks

from adagrad_diff import sklearn as door

pytestmark = [
    pytest.mark.peer,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

QUICK = [door.Lasso(), door.LogisticRegression(), door.KernelSVC()]  # one of each base class
OTHERS = [
    getattr(door, name)()
    for name in door.__all__
    if name not in ("PathCV", *(type(m).__name__ for m in QUICK))
]
# These have a matrix of coefficients and another solver.
OTHERS += [
    door.LinearClassifier(loss="multinomial", penalty="group"),
    door.KernelSVC(fit_intercept=True),
]
for estimator in (*QUICK, *OTHERS):
    estimator.set_params(max_iter=10)  # They also pass with 10000.
OTHERS += [
    door.PathCV(kind(max_iter=2), alphas=[1.0, 0.1], cv=2)
    for kind in (door.Lasso, door.LogisticRegression)
]


@parametrize_with_checks(QUICK)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHERS)
def test_checks_of_scikit_learn_for_the_other_estimators(estimator, check):
    check(estimator)
