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
    "finishing",
    "sweeps",
    "study",
    "rules",
    "losses",
    "penalties",
    "certificates",
    "testing",
)

if TYPE_CHECKING:
    from .certificates import *
    from .finishing import *
    from .losses import *
    from .penalties import *
    from .rules import *
    from .solvers import *
    from .study import *
    from .sweeps import *
    from .testing import *

else:  # the same at the first use of a name: loading SciPy and Numba takes a second

    @cache
    def _contents():
        """Return the subpackage of each public name. Their `__all__` are parsed, not imported."""
        import ast
        import pkgutil

        contents = {}
        for package in _EXPORTED:
            for node in ast.parse(pkgutil.get_data(__name__, f"{package}/__init__.py")).body:
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                    contents |= dict.fromkeys(ast.literal_eval(node.value), package)
        return contents

    def _modules():
        import pkgutil

        modules = [module.name for module in pkgutil.iter_modules(__path__)]
        return [name for name in modules if not name.startswith("_")]

    def __getattr__(name):
        if name == "__all__":
            value = [*_contents(), "__version__"]
        elif name in _contents():
            value = getattr(import_module(f".{_contents()[name]}", __name__), name)
        elif name in _modules():
            value = import_module(f".{name}", __name__)
        else:
            return lookup(__name__, name)
        globals()[name] = value
        return value

    def __dir__():  # without the integrations, which help() would import
        return sorted({*globals(), *_contents(), "__all__", *_EXPORTED})
