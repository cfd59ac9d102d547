"""A run that is stopped, saved, loaded and continued is the run that was never stopped, bit for bit."""

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import (
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    Box,
    ElasticNet,
    Hinge,
    Logistic,
    Multinomial,
    Squared,
    Status,
    iterate,
    load_state,
    minimize,
)
from resuming import assert_same_run
from user_losses import Bowl, data

A, REAL, LABELS, CLASSES = data()
MANY = data(samples=2500, features=200)  # enough work for several threads
STARTS = np.random.default_rng(1).standard_normal((6, 3))


def decreasing(n):
    return 1.0 / np.sqrt(n)


CASES = {
    "AdaGradDiff": lambda: (LAD(A, REAL), {"rule": AdaGradDiff(0.3), "penalty": L1(0.02)}),
    "AdaGrad": lambda: (LAD(A, REAL), {"rule": AdaGrad(0.3), "penalty": Box(-0.3, 0.3)}),
    "one block": lambda: (
        Hinge(A, LABELS),
        {"rule": AdaGradDiff(0.3, blocks="all"), "x0": STARTS[:, 0]},
    ),
    "blocks": lambda: (Hinge(A, LABELS), {"rule": AdaGrad(0.3, blocks=[0, 1, 0, 2, 2, 1])}),
    "scale": lambda: (Squared(A, REAL), {"rule": AdaGradDiff(0.3, scale=np.linspace(0.5, 2.0, 6))}),
    "intercept": lambda: (
        Logistic(A, LABELS, intercept=True, l2=0.1),
        {"rule": AdaGradDiff(0.3), "penalty": L1(0.02)},
    ),
    "callable eta": lambda: (LAD(A, REAL), {"rule": AdaGradDiff(decreasing)}),
    "CSR": lambda: (LAD(sparse.csr_array(A * (A > 0)), REAL), {"rule": AdaGradDiff(0.3)}),
    "float32": lambda: (
        LAD(A.astype(np.float32), REAL),
        {"rule": AdaGradDiff(0.3), "penalty": ElasticNet(0.02, 0.1)},
    ),
    "threads": lambda: (Logistic(MANY[0], MANY[2]), {"rule": AdaGradDiff(0.3)}),
    "Multinomial": lambda: (
        Multinomial(A, CLASSES, intercept=True),
        {"rule": AdaGradDiff(0.3, blocks="row")},
    ),
    "function": lambda: (Bowl(), {"rule": AdaGradDiff(0.3), "x0": [1.0, 2.0, 3.0]}),
    "trajectories": lambda: (
        LAD(A, REAL),
        {"rule": AdaGradDiff([0.1, 0.3, 1.0]), "penalty": L1(0.02), "x0": STARTS},
    ),
    "trajectories of matrices": lambda: (
        Multinomial(A, CLASSES),
        {"rule": AdaGrad([0.1, 0.3], blocks="row")},
    ),
    "trajectories, callable eta": lambda: (
        LAD(A, REAL),
        {"rule": AdaGradDiff(decreasing), "x0": STARTS},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_37_and_63_iterations_are_100(case, tmp_path):
    loss, arguments = CASES[case]()
    whole = minimize(loss, **arguments, max_iter=100, history=3)
    first = minimize(loss, **arguments, max_iter=37, history=3)
    assert np.max(first.nit) == 37
    first.state.save(tmp_path / "state.npz")
    loaded = load_state(tmp_path / "state.npz")
    arguments.pop("x0", None)  # not needed any more
    for state in (
        first.state,
        first.state,
        loaded,
    ):  # the state is not modified by the call that continues it
        second = minimize(loss, **arguments, max_iter=63, history=3, state=state)
        assert_same_run(second, whole, history=False)
        for name in ("iteration", "objective", "mean_step", "subgradient_norm"):
            parts = [getattr(run.history, name) for run in (first, second)]
            assert np.array_equal(np.concatenate(parts), getattr(whole.history, name)), name


def test_iterate_continues_and_leaves_the_state_alone():
    first = minimize(LAD(A, REAL), eta=0.3, max_iter=10).state
    n_before, x_before = first.n, first.x.copy()
    states = iterate(LAD(A, REAL), rule=AdaGradDiff(0.3), state=first)
    for n in range(11, 16):
        state = next(states)
        assert state.n == n
    assert np.array_equal(state.x, minimize(LAD(A, REAL), eta=0.3, max_iter=15).x)
    assert first.n == n_before
    assert np.array_equal(first.x, x_before)


def test_result_and_state_share_no_memory_that_a_user_may_change():
    result = minimize(LAD(A, REAL), eta=0.3, max_iter=10)
    expected = minimize(LAD(A, REAL), eta=0.3, max_iter=20)
    for name in ("x", "jac", "x_avg", "x_best"):
        result[name][:] = np.nan
    assert_same_run(
        minimize(LAD(A, REAL), eta=0.3, max_iter=10, state=result.state), expected, history=False
    )


def test_the_tolerance_refers_to_the_first_gradient_of_all():
    loss = Logistic(A, LABELS, l2=0.1)
    whole = minimize(loss, STARTS[:, 0], eta=0.5, tol=1e-4)
    assert 10 < whole.nit < 900
    first = minimize(loss, STARTS[:, 0], eta=0.5, max_iter=10)
    assert_same_run(minimize(loss, eta=0.5, tol=1e-4, state=first.state), whole, history=False)


def test_trajectories_that_have_converged_stay_where_they_are():
    loss, arguments = (
        Logistic(A, LABELS, l2=0.3),
        {"eta": [0.02, 0.5, 1.0], "tol": 1e-4, "on_failure": "ignore"},
    )
    whole = minimize(loss, **arguments, max_iter=300)
    first = minimize(loss, **arguments, max_iter=100)
    assert set(first.status) == {Status.CONVERGED, Status.MAX_ITER}
    assert_same_run(
        minimize(loss, **arguments, max_iter=200, state=first.state), whole, history=False
    )


def test_trajectories_that_stopped_apart_go_on_from_their_own_n():
    loss, arguments = (
        Logistic(A, LABELS, l2=0.3),
        {"rule": AdaGradDiff(decreasing), "max_iter": 200},
    )
    first = minimize(loss, STARTS, **arguments, tol=1e-2)
    assert len(set(first.nit)) > 1
    second = minimize(loss, rule=AdaGradDiff(decreasing), max_iter=20, state=first.state)
    for k, n in enumerate(second.nit):
        assert n == first.nit[k] + 20
        alone = minimize(loss, STARTS[:, k], **{**arguments, "max_iter": n})
        np.testing.assert_allclose(second.x[:, k], alone.x, rtol=1e-11)
        np.testing.assert_allclose(second.x_avg[:, k], alone.x_avg, rtol=1e-11)


def test_a_failed_run_cannot_be_continued_into_a_success():
    run = {"loss": Bowl(at=5, fault=lambda f, g: (np.nan, g)), "eta": 0.3, "on_failure": "ignore"}
    first = minimize(**run, x0=np.zeros(3))
    second = minimize(**run, state=first.state)
    assert (second.status, second.success, second.nit) == (Status.NOT_FINITE, False, first.nit)
    assert np.array_equal(second.x, first.x)


def test_checkpoints_from_the_callback(tmp_path):
    loss = LAD(A, REAL)

    def checkpoint(intermediate_result):
        if intermediate_result.nit == 13:
            intermediate_result.state.save(str(tmp_path / "run"))  # a str, and no suffix is added

    whole = minimize(loss, eta=0.3, max_iter=40, callback=checkpoint)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert_same_run(
        minimize(loss, eta=0.3, max_iter=27, state=load_state(str(tmp_path / "run"))),
        whole,
        history=False,
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rule": AdaGrad(0.3)}, "another problem: rule.class is not the same"),
        ({"rule": AdaGradDiff(0.3, blocks="all")}, "another problem: rule.blocks is not the same"),
        (
            {"rule": AdaGradDiff(0.3, blocks=[0, 0, 1, 2, 3, 4])},
            "another problem: rule.blocks is not the same",
        ),
        ({"rule": AdaGradDiff([0.3, 0.5])}, "another problem: rule.eta is not the same"),
        ({"rule": AdaGradDiff(0.31)}, "another problem: rule.eta is not the same"),
        ({"rule": AdaGradDiff(0.3, eps=1e-6)}, "another problem: rule.eps is not the same"),
        (
            {"rule": AdaGradDiff(0.3, scale=np.ones(6))},
            "another problem: rule.scale is not the same",
        ),
        ({"rule": None, "eta": "auto"}, "another problem: rule.class is not the same"),
        ({"penalty": L1(0.3)}, "another problem: penalty.class is not the same"),
        ({"loss": Squared(A, REAL)}, "another problem: loss.class is not the same"),
        ({"loss": LAD(A, REAL + 1e-9)}, "another problem: loss.b.sha256 is not the same"),
        (
            {"loss": LAD(A, REAL, sample_weight=np.arange(40) + 1.0)},
            "another problem: loss.weight.sha256 is not the same",
        ),
        ({"loss": LAD(A, REAL, l2=0.1)}, "another problem: loss.l2 is not the same"),
        (
            {"loss": LAD(A * (1 + 1e-7), REAL)},
            "another problem: the data of the loss are not the same",
        ),
        ({"loss": lambda x: (x @ x, 2 * x)}, "another problem: loss.class is not the same"),
        (
            {"loss": LAD(A[:, :4], REAL)},
            r"'state' has x of shape \(6,\), but this loss needs \(4,\)",
        ),
        (
            {"loss": LAD(A, REAL, intercept=True)},
            r"'state' has x of shape \(6,\), but this loss needs \(7,\)",
        ),
        ({"loss": LAD(A.astype(np.float32), REAL)}, "'state' .*float64.*float32"),
        ({"x0": np.zeros(5)}, r"'x0' has shape \(5,\), but 'state' has x of shape \(6,\)"),
    ],
)
def test_states_that_do_not_fit(change, words):
    state = minimize(LAD(A, REAL), eta=0.3, max_iter=3).state
    with pytest.raises(ValueError, match=words):
        minimize(**{"loss": LAD(A, REAL), "rule": AdaGradDiff(0.3), "state": state, **change})


@pytest.mark.parametrize(
    ("options", "kind"), [({"eta": 0.3}, Squared), ({}, Logistic)], ids=["eta", "auto"]
)
def test_other_data_where_they_are_not_used(kind, options):
    """Of a column with a coefficient of zero: it is in the gradient."""
    b = REAL if kind is Squared else LABELS
    first = minimize(kind(A, b), penalty=L1(0.2), max_iter=3, **options)
    place = (7, int(np.flatnonzero(first.x == 0)[0]))
    other = A.copy()
    other[place] += 1e-3
    with pytest.raises(ValueError, match="the data of the loss are not the same"):
        minimize(kind(other, b), penalty=L1(0.2), state=first.state, **options)


@pytest.mark.parametrize(
    "state", ["run.npz", {"x": np.zeros(6)}, minimize(LAD(A, REAL), eta=0.3, max_iter=3)]
)
def test_only_a_state_is_a_state(state):
    with pytest.raises(TypeError, match="'state' must be"):
        minimize(LAD(A, REAL), eta=0.3, state=state)


# ------------------------------------------------------------ certified runs and those without a step size

OTHERS = {
    "auto": (lambda: LAD(A, REAL, intercept=True), {"penalty": L1(0.05)}),
    "auto, float32": (lambda: Squared(A.astype(np.float32), REAL), {"penalty": Box(-0.3, 0.3)}),
    "auto, classes": (lambda: Multinomial(A, CLASSES, intercept=True), {"penalty": L1(0.01)}),
    "auto, function": (Bowl, {"x0": [1.0, 2.0, 3.0], "tol": 1e-13, "on_failure": "ignore"}),
}


@pytest.mark.parametrize("case", OTHERS)
@pytest.mark.parametrize("first", [5, 16, 37])  # within a stage of the search and at its end
def test_runs_without_a_step_size(case, first, tmp_path):
    make, arguments = OTHERS[case]
    whole, part = (minimize(make(), **arguments, max_iter=n) for n in (100, first))
    part.state.save(tmp_path / "state.npz")
    rest = {name: value for name, value in arguments.items() if name != "x0"}
    for state in (part.state, load_state(tmp_path / "state.npz")):
        second = minimize(make(), **rest, max_iter=100 - first, state=state)
        for name in ("x", "fun", "nit", "nfev", "status"):
            np.testing.assert_array_equal(second[name], whole[name], err_msg=name)
        assert np.array_equal(
            np.concatenate([part.history.objective, second.history.objective]),
            whole.history.objective,
        )


CERTIFIED = {
    "nonsmooth": (lambda: LAD(A, REAL), {"eta": 0.1}, 1e-2),
    "smooth": (lambda: Logistic(A, LABELS), {"eta": 0.3}, 1e-9),
    "trajectories": (lambda: LAD(A, REAL), {"eta": [0.1, 0.3]}, 2e-2),
    "auto": (lambda: LAD(A, REAL, intercept=True), {"finish": False}, 1e-3),
    "auto, polished": (lambda: LAD(A, REAL, intercept=True), {}, 1e-10),
}


@pytest.mark.parametrize("case", CERTIFIED)
def test_certified_runs_in_pieces(case):
    """A certificate that is interrupted again and again is found nevertheless."""
    make, options, tol = CERTIFIED[case]
    options = {**options, "penalty": L1(0.05), "stop": "gap", "tol": tol, "on_failure": "ignore"}
    state = None
    for _ in range(60):
        result = minimize(make(), **options, max_iter=97, state=state)
        if np.all(result.success):
            break
        state = result.state
    assert np.all(result.success)
    assert np.all(result.gap <= tol * result.fun)


def test_data_changed_in_place():
    """The same objects, with other numbers in them."""
    X = A.copy()
    loss = LAD(X, REAL)
    state = minimize(loss, eta=0.3, max_iter=10).state
    X[3, 2] += 0.01
    with pytest.raises(ValueError, match="the data of the loss are not the same"):
        minimize(loss, eta=0.3, state=state)


@pytest.mark.parametrize(("intercept", "batch"), [(False, (2,)), (True, ())])
def test_rounding_may_decide_about_samples_at_nonsmooth_points(intercept, batch):
    """If x interpolates samples, another order of additions finds another subgradient."""
    loss = LAD(
        A, np.r_[A[:3].sum(axis=1), REAL[3:]], intercept=intercept
    )  # x = 1 interpolates three
    x = np.r_[np.ones(A.shape[1]), np.zeros(int(intercept))]
    x0 = np.tile(x[:, None], batch) if batch else x
    rule = AdaGradDiff(np.full(batch, 0.1) if batch else 0.1)
    state = next(iterate(loss, x0, rule=rule))
    f, g = loss.value_and_grad(x0)
    changed = g + (np.r_[A[0], np.ones(int(intercept))] / len(A)).reshape(-1, *[1] * len(batch))
    state = state._replace(iterate=state.iterate._replace(x=x0, f=f, g=changed))
    minimize(loss, rule=rule, max_iter=3, state=state)
    state = state._replace(iterate=state.iterate._replace(f=f + 1e-6))
    with pytest.raises(ValueError, match="the data of the loss are not the same"):
        minimize(loss, rule=rule, max_iter=3, state=state)
