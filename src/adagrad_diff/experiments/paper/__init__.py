"""The paper's experiments: five problems (Section 4), the protocol that compares methods on them
(Appendix B), and `reproduce`, which draws the figures.

>>> from adagrad_diff.experiments.paper import hinge
>>> hinge(samples=50, features=10, nonzeros=3).x0s.shape
(10, 10)
"""

from .problems import PROBLEMS, Problem, hinge, lad, news20, splice, two_moons
from .protocol import RULES, Study, study
from .reproduction import Reproduction, reproduce

__all__ = [
    "PROBLEMS",
    "RULES",
    "Problem",
    "Reproduction",
    "Study",
    "hinge",
    "lad",
    "news20",
    "reproduce",
    "splice",
    "study",
    "two_moons",
]
