"""Covering arrays: a few cases that contain every pair of values of any two options."""

import pytest
from allpairspy import AllPairs


def covering(**options):
    """Return the cases of a pairwise covering array, as dicts of options."""
    rows = AllPairs([list(values) for values in options.values()])
    return [dict(zip(options, row, strict=True)) for row in rows]


def pairwise(**options):
    """Return a decorator that runs a test on a pairwise covering array of its options.

    `@pairwise(a=[1, 2], b="xy", c=[True, False])` is short for four or five cases instead of the eight of the full product.
    Most faults depend on one option or on the interaction of two, so such an array finds nearly all that the product finds.
    """
    return pytest.mark.parametrize(list(options), [tuple(c.values()) for c in covering(**options)])
