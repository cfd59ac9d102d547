"""AdaGrad-Diff: adaptive proximal gradient steps driven by differences of successive gradients.

w_i^n = eps + sqrt( sum_{k=1..n} ||g_i^k - g_i^{k-1}||^2 ),  g^0 = 0          (the metric)
x^{n+1} = prox^{W_n}_{eta phi}( x^n - eta W_n^{-1} g^n )                       (the step)
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ._deprecated import lookup
from ._version import __version__ as __version__

TYPE_CHECKING = False  # type checkers read it as True

# Subpackages whose public names are re-exported here.
_EXPORTED = (
    "solvers",
    "polishing",
    "sweeps",
    "experiments",
    "rules",
    "losses",
    "penalties",
    "duality",
    "testing",
)

if TYPE_CHECKING:
    from .duality import *
    from .experiments import *
    from .losses import *
    from .penalties import *
    from .polishing import *
    from .rules import *
    from .solvers import *
    from .sweeps import *
    from .testing import *

else:  # the same at the first use of a name: loading SciPy takes half a second

    @cache
    def _public():
        modules = [import_module(f".{package}", __name__) for package in _EXPORTED]
        return {name: getattr(module, name) for module in modules for name in module.__all__}

    def __getattr__(name):
        from pkgutil import iter_modules

        if name in [module.name for module in iter_modules(__path__) if module.name[0] != "_"]:
            return import_module(f".{name}", __name__)
        if name == "__all__":
            return [*_public(), "__version__"]
        if name.startswith("_") or name not in _public():
            return lookup(__name__, name)
        globals()[name] = _public()[name]
        return _public()[name]

    def __dir__():
        return sorted({*globals(), *_public(), "__all__"})
