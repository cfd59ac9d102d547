"""Ctrl-C in a sweep: it ends as Interrupted, with what is there; nothing is swallowed and no checkpoint is damaged."""

import signal

import numpy as np
import pytest

from adagrad_diff import AdaGrad, AdaGradDiff, Interrupted, Status, named, sweep
from checkpointing import Pressing, digest
from user_losses import Bowl

pytestmark = pytest.mark.peer  # xarray, tqdm, threadpoolctl


def run(loss, checkpoint=None, n_jobs=1):
    rules = [AdaGradDiff, AdaGrad]
    return sweep(
        named("loss", loss),
        None,
        rules,
        [0.1, 0.2],
        np.zeros((3, 2)),
        2000,
        record=50,
        n_jobs=n_jobs,
        checkpoint=checkpoint,
    )


@pytest.mark.parametrize(
    ("kept", "at", "n_jobs"), [(True, 500, 2), (True, 2500, 1), (False, 500, 2)]
)
def test_a_signal(tmp_path, default_handler, kept, at, n_jobs):
    """Finished trajectories are as in a whole sweep, others as far as they are; the same call continues exactly."""
    checkpoint, whole = tmp_path if kept else None, run(Bowl(), n_jobs=n_jobs)
    words = (
        rf"The same call with checkpoint='{tmp_path}' resumes from here\."
        if kept
        else r"With a directory as 'checkpoint', the same call would resume from here\."
    )
    with pytest.raises(
        Interrupted,
        match=rf"^The sweep was interrupted: \d of 8 trajectories are finished\. {words}$",
    ) as caught:
        run(Pressing(at), checkpoint, n_jobs)
    assert signal.getsignal(signal.SIGINT) is default_handler
    result = caught.value.result
    assert result.attrs == whole.attrs
    ended, reached = result.status != Status.INTERRUPTED, result.iteration <= result.nit
    assert int(ended.sum()) == (4 if at > 2000 else 0)
    assert (result.nit > 0).all()
    for name in ("status", "nit", "objective_best", "x"):
        np.testing.assert_array_equal(
            result[name].where(ended), whole[name].where(ended), err_msg=name
        )
    for name in ("objective", "mean_step"):
        np.testing.assert_array_equal(result[name], whole[name].where(reached), err_msg=name)
    if kept:
        counting = Pressing(10**9)
        assert digest(run(counting, checkpoint, n_jobs)) == digest(whole)
        assert (
            counting.calls < (2000 if at > 2000 else 4000) + 10
        )  # finished chunks are not computed again
        assert not list(tmp_path.glob("*.partial"))


def test_a_loss_that_is_interrupted(tmp_path):
    """A KeyboardInterrupt in a thread of the sweep counts as well: the chunk is not taken for finished."""

    def loss(x):
        if np.abs(x).max() > 0.5:
            raise KeyboardInterrupt
        return Bowl()(x)

    with pytest.raises(Interrupted, match="The sweep was interrupted: 0 of 8") as caught:
        run(loss, tmp_path)
    assert (caught.value.result.status == Status.INTERRUPTED).all()
    assert not list(tmp_path.glob("chunk-????.npz"))


def test_a_signal_before_it_begins(default_handler):
    def loss(x):  # at the starts
        signal.raise_signal(signal.SIGINT)
        return Bowl()(x)

    with pytest.raises(Interrupted, match="0 of 8") as caught:
        run(loss)
    result = caught.value.result
    assert (result.status == Status.INTERRUPTED).all()
    assert (result.nit == 0).all()
    assert np.isnan(result.x).all()
    assert np.isfinite(result.objective_start).all()
