"""Two workers in processes of their own, one thread each, which all tests of this directory share."""

from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("dask") and find_spec("distributed") else ["test_*"]


@pytest.fixture(scope="package")
def client():
    """Not the default one: who does not ask for it computes in threads. It ends with these tests: others would be slower."""
    import dask
    import distributed

    patience = {
        "distributed.comm.timeouts.connect": "4s"
    }  # with a worker that was killed: by default, half a minute
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with (
        dask.config.set(patience),
        distributed.LocalCluster(n_workers=2, **options) as cluster,
        distributed.Client(cluster, set_as_default=False) as found,
    ):
        yield found
