"""Tiny tensors: threads that wait for each other would be all the cost."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
