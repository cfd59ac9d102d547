"""Old public names. Renamed ones work for one more release, with a DeprecationWarning."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType

RENAMED = {  # old name -> new name, of modules and of names in modules
    "adagrad_diff.certificates": "adagrad_diff.duality",
    "adagrad_diff.checks": "adagrad_diff.testing",
    "adagrad_diff.data": "adagrad_diff.linalg",
    "adagrad_diff.Finish": "adagrad_diff.PolishReport",
    "adagrad_diff.finish": "adagrad_diff.polish",
    "adagrad_diff.finishing": "adagrad_diff.polishing",
    "adagrad_diff.kernels": "adagrad_diff.linalg.compiling",
    "adagrad_diff.paper": "adagrad_diff.experiments.paper",
    "adagrad_diff.solve": "adagrad_diff.solvers",
    "adagrad_diff.study": "adagrad_diff.experiments",
    "adagrad_diff.theory": "adagrad_diff.experiments.theory",
}
REMOVED = dict.fromkeys(  # old name -> what to do instead
    [f"adagrad_diff.rules.{name}" for name in ("BLOCK", "NUMBER", "POINT", "Memory", "View")],
    "Rules now define init and update: see help(adagrad_diff.Rule)",
)


def lookup(module: str, name: str) -> object:
    """Return what replaces an old name of a module, with a warning, or raise: for `__getattr__`."""
    old = f"{module}.{name}"
    if old in RENAMED:
        return _replacement(old)
    if old in REMOVED:  # `from module import name` would drop the text of an AttributeError
        raise ImportError(f"{old} was removed in version 0.3. {REMOVED[old]}.")
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def _replacement(old: str) -> object:
    from ._messages import warn

    warn(f"{old} is now {RENAMED[old]}. The old name will be removed.", DeprecationWarning)
    module, _, name = RENAMED[old].rpartition(".")
    parent = import_module(module)
    return getattr(parent, name) if hasattr(parent, name) else import_module(RENAMED[old])


class RenamedModules:
    """An importer of renamed modules, for `import adagrad_diff.solve` and the like."""

    @staticmethod
    def find_spec(name: str, *_: object) -> ModuleSpec | None:
        return ModuleSpec(name, RenamedModules) if name in RENAMED else None  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Use the default, an empty module."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Copy the public names, so that submodules are not loaded twice under two names."""
        new = vars(_replacement(module.__name__))
        vars(module).update({name: new[name] for name in ["__all__", *new["__all__"]]})


sys.meta_path.append(RenamedModules)
