"""The rules of a sweep: functions of eta, their names, and the rules they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ..rules import Rule, has_eta
from ..solvers.fingerprint import describe, known_by_name


def by_names(rules: Any) -> dict[str, Callable[..., Any]]:
    """Names for the rules: their own, or those of a dict."""
    if not isinstance(rules, Mapping):
        several = list(rules) if isinstance(rules, Iterable) else [rules]
        names = [getattr(rule, "__name__", type(rule).__name__) for rule in several]
        clear = len(set(names)) == len(names) and "<lambda>" not in names
        rules = dict(
            zip(names if clear else [f"rule {k}" for k in range(len(names))], several, strict=True)
        )
    if not rules or not all(callable(rule) for rule in rules.values()):
        raise TypeError(
            "'rules' must be rule classes, such as AdaGradDiff, or functions eta -> rule."
        )
    by_name = {str(name): rule for name, rule in rules.items()}
    if len(by_name) < len(rules):
        raise ValueError(f"'rules' must have different names. Got {list(rules)} instead.")
    return by_name


def made(name: str, make: Callable[..., Any], eta: float) -> Any:
    """Return the rule for one eta; a class of rules that have none makes the same for all."""
    without = isinstance(make, type) and issubclass(make, Rule) and not has_eta(make)
    with noted(name, eta):
        rule = make() if without else make(eta)
    if not isinstance(rule, Rule):
        raise TypeError(
            f"'rules' must be rule classes or functions eta -> rule, but {name} made {rule!r}."
        )
    return rule


def together(rules: list[Any]) -> Any:
    """One rule with an array of etas, if only these differ, and they are numbers; or the one rule, if there are none."""

    def equal(one: Any, other: Any) -> bool:
        about = describe(one)
        return one is other or (
            about == describe(other) and not any(known_by_name(about))
        )  # a name does not make them equal

    def same(one: Any, other: Any) -> bool:
        pairs = [(item, vars(other).get(name)) for name, item in vars(one).items() if name != "eta"]
        return type(one) is type(other) and all(equal(*pair) for pair in pairs)

    if all(rule.eta is None and same(rules[0], rule) for rule in rules):
        return rules[0]
    etas = [rule.eta for rule in rules if isinstance(rule.eta, float) and same(rules[0], rule)]
    return replace(rules[0], eta=etas) if len(etas) == len(rules) else rules


@contextmanager
def noted(name: str, etas: Any) -> Iterator[None]:
    """Errors of what users write stay what they are, and say where in the sweep they were raised."""
    try:
        yield
    except Exception as error:
        low, high = float(np.min(etas)), float(np.max(etas))
        error.add_note(
            f"This was rule {name!r} of the sweep, eta = {f'{low} to {high}' if low < high else low}."
        )
        raise
