"""An undocumented public name fails the build: each name in `__all__` must be in the reference."""

from __future__ import annotations

import importlib

from sphinx.util import logging

# Packages whose names are all public. Names of the top level are documented as such.
PACKAGES = (
    "linalg",
    "experiments.paper",
    "experiments.theory",
    "datasets",
    "sklearn",
    "torch",
    "optax",
    "dask",
)


def public_names():
    """All of them, as users write them."""
    import adagrad_diff

    names = [f"adagrad_diff.{name}" for name in adagrad_diff.__all__ if name != "__version__"]
    for package in PACKAGES:
        names += [
            f"adagrad_diff.{package}.{name}"
            for name in importlib.import_module(f"adagrad_diff.{package}").__all__
        ]
    return names


def undocumented(documented, names=None):
    """A sentence for each public name that the reference does not have."""
    for name in names or public_names():
        if name not in documented:
            yield f"{name} is public, but not in the reference: list it on a page of docs/reference/, or not in __all__."


def check(app, env):
    """Warn, which fails a build with -W."""
    documented = {name for name, *_ in env.get_domain("py").get_objects()}
    for sentence in undocumented(documented):
        logging.getLogger(__name__).warning(sentence, type="public_names")


def setup(app):
    app.connect("env-check-consistency", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
