"""Ways to damage a file, and a disk that takes no more."""

import contextlib
import itertools

import numpy as np
import pytest

REGIONS = 60  # pieces of a file that are damaged one after another


def damaged(content, fault, regions=REGIONS):
    """The content with one region damaged, for regions that cover all of it, the ends more finely."""
    size = len(content)
    cuts = np.unique(
        np.r_[np.linspace(0, size, regions + 1).astype(int), 1, 2, 3, 4, size - np.arange(1, 23)]
    )
    for low, high in itertools.pairwise(cuts.tolist()):
        middle, region = (low + high) // 2, content[low:high]
        if fault == "flipped":
            new = content[:low] + bytes(byte ^ 0xFF for byte in region) + content[high:]
        elif fault == "one bit":
            new = content[:middle] + bytes([content[middle] ^ 1 << low % 8]) + content[middle + 1 :]
        elif fault == "zeroed":
            new = content[:low] + bytes(high - low) + content[high:]
        elif fault == "cut out":
            new = content[:low] + content[high:]
        elif fault == "truncated":
            new = content[:low]
        elif fault == "doubled":
            new = content[:high] + content[low:]
        if new != content:
            yield new


@contextlib.contextmanager
def at_most(size):
    """No file gets longer than so many bytes: what a full disk does to a writer, without a disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def attempt(call, *arguments):
    """What a call returns, and the sentence of the ValueError that it raises instead."""
    try:
        return call(*arguments), None
    except ValueError as error:
        return None, str(error)
