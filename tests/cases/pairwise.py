"""Covering arrays: a few cases that contain every pair of values of any two options."""

import pytest
from allpairspy import AllPairs


def pairwise(**options):
    """Return a decorator that runs a test on a pairwise covering array of its options.

    `@pairwise(a=[1, 2], b="xy", c=[True, False])` is short for four or five cases instead of the eight of the full product.
    Most faults depend on one option or on the interaction of two, so such an array finds nearly all that the product finds.
    """
    names = list(options)
    rows = [tuple(row) for row in AllPairs([list(values) for values in options.values()])]
    return pytest.mark.parametrize(names, rows)
