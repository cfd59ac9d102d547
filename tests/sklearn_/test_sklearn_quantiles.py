"""Several quantiles in one fit."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.metrics import d2_pinball_score, mean_pinball_loss

from adagrad_diff.sklearn import PathCV, QuantileRegressor
from sklearn_data import data

pytestmark = [
    pytest.mark.peer,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
TAUS = [0.1, 0.5, 0.9]


def fitted(quantile=TAUS, **options):
    return QuantileRegressor(quantile, alpha=0.02, tol=1e-2, **options).fit(
        *data("QuantileRegressor", samples=40)
    )


def test_each_is_the_quantile_by_itself():
    model = fitted()
    assert model.coef_.shape == (3, 6)
    assert (
        model.intercept_.shape
        == model.dual_gap_.shape
        == model.objective_.shape
        == model.n_iter_.shape
        == (3,)
    )
    for k, tau in enumerate(TAUS):
        alone = fitted(tau)
        assert model.objective_[k] == pytest.approx(alone.objective_, rel=2e-2)
    np.testing.assert_array_equal(fitted([0.3]).coef_, fitted(0.3).coef_[None])
    assert fitted([0.3]).dual_gap_.shape == (1,)
    assert isinstance(fitted(0.3).intercept_, float)


def test_each_starts_from_the_one_before():
    options = {"eta": 0.1, "max_iter": 100}
    single, model = fitted(TAUS[0], warm_start=True, **options), fitted(warm_start=True, **options)
    samples = data("QuantileRegressor", samples=40)
    chain = [single.set_params(quantile=tau).fit(*samples).coef_ for tau in TAUS[1:]]
    np.testing.assert_array_equal(model.coef_[1:], chain)
    objective = model.objective_.copy()
    assert (
        model.fit(*samples).objective_ < objective
    ).all()  # The second fit starts from the first one.


def test_predictions_do_not_cross_if_asked():
    X, y = data("QuantileRegressor", samples=40)
    taus = [0.5, 0.45, 0.55]  # close, and in no order
    crossing, sorted_ = (fitted(taus, noncrossing=flag) for flag in (False, True))
    np.testing.assert_array_equal(crossing.coef_, sorted_.coef_)
    far = 30 * X
    before, after = crossing.predict(far), sorted_.predict(far)
    np.testing.assert_array_equal(before, far @ crossing.coef_.T + crossing.intercept_)
    assert (before[:, 1] > before[:, 0]).any()
    assert (after[:, 1] <= after[:, 0]).all()
    assert (after[:, 0] <= after[:, 2]).all()
    np.testing.assert_array_equal(np.sort(before, axis=1), np.sort(after, axis=1))
    losses = [
        np.mean(
            [
                mean_pinball_loss(3 * y, z, alpha=tau)
                for tau, z in zip(taus, prediction.T, strict=True)
            ]
        )
        for prediction in (before, after)
    ]
    assert losses[1] < losses[0]


def test_score():
    X, y = data("QuantileRegressor", samples=40)
    weight = np.arange(len(y)) % 3 + 1.0
    model = fitted()
    columns = zip(TAUS, model.predict(X).T, strict=True)
    each = [d2_pinball_score(y, z, alpha=tau, sample_weight=weight) for tau, z in columns]
    assert model.score(X, y, weight) == pytest.approx(np.mean(each))
    assert fitted(0.5).score(X, y) > 0.8  # R^2


def test_paths_and_their_choice():
    X, y = data("QuantileRegressor", samples=40)
    model = QuantileRegressor([0.25, 0.75], tol=0.1)
    alphas, coefs, gaps, intercepts = model.path(X, y, n_alphas=3, eps=0.1, return_intercepts=True)
    assert coefs.shape == (2, 6, 3)
    assert gaps.shape == intercepts.shape == (2, 3)
    assert not coefs[..., 0].any()
    alone = [QuantileRegressor(tau).path(X, y, n_alphas=1)[0][0] for tau in (0.25, 0.75)]
    assert alphas[0] == max(alone)
    chosen = PathCV(model, alphas=[0.1, 0.01], cv=2).fit(X, y)
    assert chosen.predict(X).shape == (40, 2)
    assert chosen.score_path_.shape == (2, 2)


@pytest.mark.parametrize(
    "quantile",
    [[], [0.5, 1.0], [0.5, -0.1], [[0.5]], [0.5, None], ["a"], "0.5", True, 0.0, 1.5, None],
)
def test_what_is_no_quantile_is_refused(quantile):
    with pytest.raises(ValueError, match="'quantile' parameter of QuantileRegressor must"):
        fitted(quantile)


def test_what_is_no_flag_is_refused():
    with pytest.raises(
        ValueError, match="'noncrossing' parameter of QuantileRegressor must be True or False"
    ):
        fitted(noncrossing="yes")
