"""Compare a run that was stopped and resumed with the uninterrupted one."""

import numpy as np
import pytest

from adagrad_diff import minimize

HISTORY = ("iteration", "objective", "mean_step", "subgradient_norm", "passes")
RESULT = (
    "x",
    "x_avg",
    "x_best",
    "fun",
    "fun_best",
    "jac",
    "nit",
    "nfev",
    "subgradient_norm",
    "status",
    "success",
)


class Crash(Exception):
    """The process ends here."""


def crash_at(n):
    """Return a callback that ends the run after iteration n."""

    def callback(intermediate_result):
        if np.max(intermediate_result.nit) == n:
            raise Crash

    return callback


def assert_same_run(found, expected, history=True):
    """All numbers of the results are bitwise identical, except for times, certificates and polishing."""
    pairs = {name: (found[name], expected[name]) for name in RESULT if name in expected}
    arrays = found.state.arrays()
    pairs |= {name: (arrays[name], array) for name, array in expected.state.arrays().items()}
    if history:
        pairs |= {
            name: (getattr(found.history, name), getattr(expected.history, name))
            for name in HISTORY
        }
    for name, (one, other) in pairs.items():
        np.testing.assert_array_equal(one, other, err_msg=name)
        assert np.asarray(one).dtype == np.asarray(other).dtype, name
    assert found.keys() == expected.keys()
    assert (
        found.message.partition(" The objective ")[0]
        == expected.message.partition(" The objective ")[0]
    )


def check_crashes(make, path, at, **options):
    """Compare an uninterrupted run with one that crashes after each iteration of `at`, keeping a checkpoint after each one."""
    options = {"max_iter": 40, "on_failure": "ignore", "history": 2, **options}
    whole = minimize(make(), **options)
    for n in at:
        with pytest.raises(Crash):
            minimize(make(), **options, checkpoint=path, every=0.0, callback=crash_at(n))
    for _ in range(2):  # the second call finds an ended run
        assert_same_run(minimize(make(), **options, checkpoint=path), whole)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    return whole
