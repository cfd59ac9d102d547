"""Two workers in processes of their own, one thread each, which all tests of this directory share."""

import pytest

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as found:
        yield found


@pytest.fixture
def client(cluster):
    """Not the default one: who does not ask for it computes in threads."""
    with distributed.Client(cluster, set_as_default=False) as found:
        found.wait_for_workers(2)
        yield found
