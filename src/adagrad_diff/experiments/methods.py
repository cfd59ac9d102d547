"""The methods of a comparison: what users pass as `rules`, and each at a step size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from .. import rules as library
from .._check import InputError
from ..penalties import Penalty
from ..rules import Rule, has_eta
from .style import FAMILIES

WANTED = "'rules' must be rules, rule classes or functions eta -> rule"


class Method(NamedTuple):
    """A rule of a comparison."""

    make: Callable[[float], Any]  # a rule with this step size
    free: bool  # whether it has no step size
    published: float | None  # the step size that its authors recommend, if any


def as_methods(rules: Any, penalty: Penalty) -> dict[str, Method]:
    """Return methods by name: what users pass, or all rules of the package that fit the penalty."""
    known = {name: getattr(library, name) for family in FAMILIES.values() for name in family}
    if rules is None:
        rules = [rule for rule in known.values() if penalty.accepts == "diagonal" or _shared(rule)]
    pairs = list(rules.items() if isinstance(rules, Mapping) else _named(rules))
    methods = {str(name): _method(str(name), rule, known, penalty) for name, rule in pairs}
    if not methods:
        raise InputError("'rules' is empty: give at least one rule, such as AdaGradDiff.")
    if len(methods) < len(pairs):
        names = [name for name, _ in pairs]
        raise InputError(f"'rules' has a name twice: {names}. Give a dict of names of your own.")
    return methods


def _named(rules: Any) -> Iterable[tuple[str, Any]]:
    """Return the rules of a list with the names of their classes or functions."""
    single = isinstance(rules, str | Rule) or not isinstance(rules, Iterable)
    for k, rule in enumerate([rules] if single else rules):
        name = rule if isinstance(rule, str) else getattr(rule, "__name__", type(rule).__name__)
        yield f"rule {k}" if name == "<lambda>" else name, rule


def _method(name: str, rule: Any, known: dict[str, type[Rule]], penalty: Penalty) -> Method:
    if isinstance(rule, str):
        if rule not in known:
            raise InputError(f"'rules' has {rule!r}, which is none of {', '.join(known)}.")
        rule = known[rule]
    make = _factory(rule, penalty)
    made = make(1.0)
    if not isinstance(made, Rule):
        raise TypeError(f"{WANTED}, but {name} made {made!r}.")
    return Method(make, made.eta is None, None if made.eta is None else made.published)


def _factory(rule: Any, penalty: Penalty) -> Callable[[float], Any]:
    """Return a function eta -> rule. The eta of a rule that was given is replaced."""
    if isinstance(rule, Rule):
        return lambda eta: rule if rule.eta is None else replace(rule, eta=eta)
    if not callable(rule):
        raise TypeError(f"{WANTED}. Got {rule!r} instead.")
    if not (isinstance(rule, type) and issubclass(rule, Rule)):
        return rule  # type: ignore[no-any-return]
    shared = penalty.accepts == "scalar" and _shared(rule, init=True)
    options: Any = {"blocks": "all"} if shared else {}
    return (lambda eta: rule(eta=eta, **options)) if has_eta(rule) else lambda eta: rule(**options)


def _shared(rule: type[Rule], init: bool = False) -> bool:
    """Return whether all coordinates can share a weight, as the prox of some penalties needs it."""
    (blocks,) = (field for field in fields(rule) if field.name == "blocks")
    return blocks.init or (not init and blocks.default == "all")
