"""Step-size rules: how gradients become steps, one rule per file."""

from functools import partial

from .._deprecated import lookup
from .ac_fgm import ACFGM
from .ada_pg import AdaPG
from .adadelta import AdaDelta
from .adagrad import AdaGrad
from .adagrad_diff import AdaGradDiff
from .adagrad_norm import AdaGradNorm
from .adam import Adam
from .adam_diff import AdamDiff
from .adapeg import AdaPEG
from .agd import AGD
from .base import Rule
from .base import as_rule as as_rule
from .base import block_labels as block_labels
from .base import has_eta as has_eta
from .constant import Constant
from .d_adaptation import DAdaptation
from .delayed_adagrad import DelayedAdaGrad
from .dog import DoG
from .dual_averaging import DualAveraging
from .fista import FISTA
from .free_adagrad_diff import FreeAdaGradDiff
from .kate import KATE
from .prodigy import Prodigy
from .rms_diff import RMSDiff
from .rmsprop import RMSProp
from .uniadagrad import UniAdaGrad
from .unixgrad import UniXGrad

__all__ = [
    "ACFGM",
    "AGD",
    "FISTA",
    "KATE",
    "AdaDelta",
    "AdaGrad",
    "AdaGradDiff",
    "AdaGradNorm",
    "AdaPEG",
    "AdaPG",
    "Adam",
    "AdamDiff",
    "Constant",
    "DAdaptation",
    "DelayedAdaGrad",
    "DoG",
    "DualAveraging",
    "FreeAdaGradDiff",
    "Prodigy",
    "RMSDiff",
    "RMSProp",
    "Rule",
    "UniAdaGrad",
    "UniXGrad",
]

__getattr__ = partial(lookup, __name__)  # old names
