"""`PathCV(client=...)`: folds by a client, with the scores of folds here; clones share it, pickles do without."""

import pickle
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from adagrad_diff.sklearn import Lasso, LogisticRegression, PathCV

pytestmark = pytest.mark.peer
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
Y = X[:, 0] - 2 * X[:, 3] + RNG.standard_normal(60)


class Client:
    """A cluster in threads that cannot be copied, and loses the first tasks."""

    def __init__(self, lose=0):
        self.pool, self.lose, self.tasks, self.sent, self.lock = (
            ThreadPoolExecutor(2),
            lose,
            0,
            [],
            threading.Lock(),
        )

    def scatter(self, parts, broadcast, hash):
        self.sent.append(parts)
        return list(parts)

    def submit(self, function, *arguments, pure):
        self.tasks += 1
        if self.tasks <= self.lose:
            future = Future()
            future.set_exception(CancelledError())
            return future
        return self.pool.submit(function, *arguments)


CASES = {
    "arrays": (Lasso(), X, Y, None),
    "weights": (Lasso(), X, Y, np.arange(60.0)),
    "sparse": (Lasso(), sparse.csr_array(X * (X > 0)), Y, None),
    "lists": (Lasso(), X.tolist(), Y.tolist(), None),
    "classes": (LogisticRegression(), X, np.where(Y > 0, "yes", "no"), None),
}


@pytest.mark.parametrize("case", CASES)
def test_the_same_scores(case):
    estimator, A, b, weight = CASES[case]
    options = {"n_alphas": 5, "cv": 3}
    here = PathCV(estimator, **options).fit(A, b, weight)
    for client in (Client(), Client(lose=2)):
        there = PathCV(estimator, **options, client=client).fit(A, b, weight)
        np.testing.assert_array_equal(there.score_path_, here.score_path_)
        assert there.alpha_ == here.alpha_
        np.testing.assert_array_equal(there.coef_, here.coef_)
        assert client.tasks == 3 + client.lose
        assert len(client.sent) == 1 + client.lose
    with ThreadPoolExecutor(2) as pool:
        np.testing.assert_array_equal(
            PathCV(estimator, **options, client=pool).fit(A, b, weight).coef_, here.coef_
        )


def test_clones_and_pickles():
    client = Client()
    model = PathCV(Lasso(alpha=0.5), client=client, cv=3, n_alphas=3)
    twin = clone(model)
    assert twin.client is model.client is client
    assert twin.estimator is not model.estimator
    assert twin.get_params()["estimator__alpha"] == 0.5
    assert clone(model.set_params(client=None)).client is None
    fitted = twin.fit(X, Y)
    with pytest.raises(NotFittedError):
        clone(fitted).predict(X)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.client is None
    assert fitted.client is client
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_errors_are_those_of_the_folds():
    def scoring(estimator, A, b):
        raise ZeroDivisionError("in the scoring")

    with pytest.raises(ZeroDivisionError, match="in the scoring"):
        PathCV(Lasso(), client=Client(), cv=3, n_alphas=3, scoring=scoring).fit(X, Y)
    with pytest.raises(
        TypeError, match=r"The 'client' parameter of PathCV must be a distributed\.Client"
    ):
        PathCV(Lasso(), client=3, cv=3, n_alphas=3).fit(X, Y)
