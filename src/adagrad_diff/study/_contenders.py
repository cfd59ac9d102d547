"""The rules that are compared: what makes them, whether they have a step size, and which one their authors name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from .. import rules as room
from .._check import InputError
from ..penalties import Penalty
from ..rules import Rule, has_eta
from .style import FAMILIES

PROBE = 1.0  # an eta to see what a rule is like


@dataclass(frozen=True)
class Contender:
    """One rule of a comparison."""

    name: str
    make: Callable[[float], Any]  # of eta, which a rule without a step size does not look at
    free: bool  # whether there is no step size
    published: float | None  # the step size of its authors, if they name one


def ring() -> list[type[Rule]]:
    """All rules of the package, in the order in which figures list them."""
    order = [name for members in FAMILIES.values() for name in members]
    known = [name for name in room.__all__ if name != "Rule"]
    return [
        getattr(room, name)
        for name in sorted(
            known, key=lambda name: order.index(name) if name in order else len(order)
        )
    ]


def contenders(rules: Any, penalty: Penalty) -> list[Contender]:
    """What the user has given, or all that the penalty can do with, by their names."""
    if rules is None:
        rules = [rule for rule in ring() if penalty.accepts == "diagonal" or _has_one_weight(rule)]
    found = [_contender(name, rule, penalty) for name, rule in _named(rules)]
    if not found:
        raise InputError("'rules' is empty: give at least one rule, such as AdaGradDiff.")
    names = [contender.name for contender in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"'rules' has {twice!r} more than once: give a dict of names of your own.")
    return found


def _named(rules: Any) -> list[tuple[str, Any]]:
    if isinstance(rules, Mapping):
        return [(str(name), rule) for name, rule in rules.items()]
    several = (
        [rules] if isinstance(rules, str | Rule) or not isinstance(rules, Iterable) else list(rules)
    )
    return [(_name(rule, f"rule {k}"), rule) for k, rule in enumerate(several)]


def _name(rule: Any, nameless: str) -> str:
    if isinstance(rule, str):
        return rule
    name = str(getattr(rule, "__name__", type(rule).__name__))
    return nameless if name == "<lambda>" else name


def _contender(name: str, rule: Any, penalty: Penalty) -> Contender:
    if isinstance(rule, str):
        known = {found.__name__: found for found in ring()}
        if rule not in known:
            raise InputError(f"'rules' has {rule!r}, which is none of {', '.join(known)}.")
        rule = known[rule]
    make = _maker(rule, penalty)
    made = make(PROBE)
    if not isinstance(made, Rule):
        raise TypeError(
            f"'rules' must be rules, rule classes or functions eta -> rule, but {name} made {made!r}."
        )
    return Contender(
        name, make, made.eta is None, None if made.eta is None else type(made).published
    )


def _maker(rule: Any, penalty: Penalty) -> Callable[[float], Any]:
    """eta -> rule. A rule that was given has its eta replaced."""
    if isinstance(rule, Rule):
        return lambda eta: rule if rule.eta is None else replace(rule, eta=eta)
    if not (isinstance(rule, type) and issubclass(rule, Rule)):
        if not callable(rule):
            raise TypeError(
                f"'rules' must be rules, rule classes or functions eta -> rule. Got {rule!r} instead."
            )
        return rule  # type: ignore[no-any-return]
    blocks = any(field.name == "blocks" and field.init for field in fields(rule))
    options: dict[str, Any] = {"blocks": "all"} if penalty.accepts == "scalar" and blocks else {}
    # Without a step size, the first argument is something else.
    return (lambda eta: rule(eta=eta, **options)) if has_eta(rule) else lambda eta: rule(**options)


def _has_one_weight(rule: type[Rule]) -> bool:
    """Whether it can do with one weight for all coordinates: some proximal operators need that."""
    return any(
        field.name == "blocks" and (field.init or field.default == "all") for field in fields(rule)
    )
