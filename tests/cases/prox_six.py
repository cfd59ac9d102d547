"""The six penalties that all doors share, on the same points: what their one statement says, to compare each door with."""

from functools import partial

import numpy as np

from adagrad_diff.penalties import group_root
from adagrad_diff.penalties import six_penalties as six

SHAPE = (6, 7)
STRENGTHS = (1e-6, 0.3, 1e4)
ARGUMENTS = {  # of a penalty of that strength
    "L1": lambda s: {"lam": s},
    "Ridge": lambda s: {"lam": s},
    "ElasticNet": lambda s: {"l1": s, "l2": 2 * s},
    "Box": lambda s: {"lower": -s, "upper": s / 2},
    "Box above": lambda s: {"upper": s},
    "NonNegative": lambda s: {},
    "GroupL2": lambda s: {"lam": s},
    "GroupL2 tensor": lambda s: {"lam": s, "over": "tensor"},
}
BAD = [  # arguments, and what the error says
    ("L1", {"lam": -1.0}, "'lam' parameter of L1 must be a number >= 0"),
    ("L1", {"lam": "much"}, "'lam' parameter of L1 must be a number >= 0"),
    ("L1", {"lam": None}, "'lam' parameter of L1 must be a number >= 0"),
    ("Ridge", {"lam": np.nan}, "'lam' parameter of Ridge must be a number >= 0"),
    ("ElasticNet", {"l1": 0.1, "l2": -1.0}, "'l2' parameter of ElasticNet must be a number >= 0"),
    ("Box", {"lower": 1.0, "upper": 0.0}, "Box is empty: lower must not exceed upper"),
    ("Box", {"lower": np.inf}, "Box is empty: lower must not exceed upper"),
]
BAD_IN_A_DOOR = [
    *BAD,
    ("Box", {"lower": np.nan, "upper": 0.0}, "Box is empty: lower must not exceed upper"),
    (
        "GroupL2",
        {"lam": 1.0, "over": "column"},
        "'over' parameter of GroupL2 must be one of 'row', 'tensor'",
    ),
]


def make(module, name, strength):
    """The penalty of that name in a module: `six`, or a door."""
    return getattr(module, name.split()[0])(**ARGUMENTS[name](strength))


def points():
    """z of any size, with zeros, and steps that are equal, differ, or differ wildly."""
    rng = np.random.default_rng(0)
    for wildness in (0.0, 1.0, 8.0):
        for size in (1e-4, 1.0, 1e5):
            z, step = (
                size * rng.standard_normal(SHAPE),
                10 ** rng.uniform(-wildness, wildness, SHAPE),
            )
            z[rng.random(SHAPE) < 0.1] = 0
            yield size, z, step


def value(penalty, x):
    if isinstance(penalty, six.GroupL2):
        return penalty.lam * group_root.group_norms(np, x, penalty.over).sum()
    return six.value(np, x, penalty.limits())


def prox(penalty, z, step):
    if isinstance(penalty, six.GroupL2):
        climb = partial(group_root.climb, np, arrived=np.array_equal)
        return group_root.group_prox(np, z, penalty.lam * step, penalty.over, climb)
    return six.prox(np, z, step, penalty.limits())
