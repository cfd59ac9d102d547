"""Five rules that the package does not have, each in a file of its own: what the contract of a rule must be able to say."""

from .adam import Adam
from .constant import Constant
from .dog import DoG
from .dual_averaging import DualAveraging
from .fista import FISTA

RULES = (Constant, Adam, DoG, DualAveraging, FISTA)

__all__ = ["FISTA", "RULES", "Adam", "Constant", "DoG", "DualAveraging"]
