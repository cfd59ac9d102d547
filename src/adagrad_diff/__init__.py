"""AdaGrad-Diff: adaptive proximal gradient steps driven by differences of successive gradients.

w_i^n = eps + sqrt( sum_{k=1..n} ||g_i^k - g_i^{k-1}||^2 ),  g^0 = 0          (the metric)
x^{n+1} = prox^{W_n}_{eta phi}( x^n - eta W_n^{-1} g^n )                       (the step)
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ._version import __version__ as __version__

TYPE_CHECKING = (
    False  # what type checkers take for true; `typing` would take longer to load than all of this
)

# Whose names are ours, too.
_ROOMS = (
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

else:  # the same, when a name is first used: SciPy and Numba take a second, this module does not

    @cache
    def _contents():
        """The public names and their rooms: what each room lists as `__all__`, which is read, not imported."""
        import ast
        import pkgutil

        contents = {}
        for room in _ROOMS:
            for node in ast.parse(pkgutil.get_data(__name__, f"{room}/__init__.py")).body:
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                    contents |= dict.fromkeys(ast.literal_eval(node.value), room)
        return contents

    def _modules():
        import pkgutil

        return [
            module.name
            for module in pkgutil.iter_modules(__path__)
            if not module.name.startswith("_")
        ]

    def __getattr__(name):
        if name == "__all__":
            value = [*_contents(), "__version__"]
        elif not name.startswith("_") and name in _contents():
            value = getattr(import_module(f".{_contents()[name]}", __name__), name)
        elif name in _modules():
            value = import_module(f".{name}", __name__)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__():  # without the doors: whoever looks at everything, as help() does, would open them all
        return sorted({*globals(), *_contents(), "__all__", *_ROOMS})
