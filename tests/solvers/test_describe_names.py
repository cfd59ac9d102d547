"""Functions and foreign objects are known by names: their own, or those that a user gives them."""

import functools
import math

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

from adagrad_diff import LAD, AdaGradDiff, Penalty, Rule, minimize, named
from adagrad_diff.losses import as_loss
from adagrad_diff.penalties import as_penalty
from adagrad_diff.solvers.fingerprint import describe, describe_problem, known_by_name
from describing import CHANGED, REAL, A, text


def quadratic(x):
    return 0.5 * np.sum(x**2, axis=0), x


class Hidden:
    """A loss and a penalty that keep their numbers to themselves."""

    def __init__(self, c):
        self._c = c

    def value_and_grad(self, x):
        return 0.5 * self._c * np.sum(x**2, axis=0), self._c * x

    def value(self, x):
        return 0.0

    def prox(self, z, step):
        return z


class Slots:
    __slots__ = ("c",)


class Mine(Penalty):
    def __init__(self, c):
        self.c, self._secret = c, object()

    def value(self, x):
        return 0.0

    def apply(self, z, step, out):
        out[...] = z


def test_what_a_module_knows_has_its_name():
    here = quadratic.__module__
    assert describe(quadratic) == f"{here}.quadratic"
    assert describe(as_loss(quadratic)) == {
        "class": "FunctionLoss",
        "function": f"{here}.quadratic",
    }
    assert describe([math.exp, np.linalg.norm, dict, np]) == [
        "math.exp",
        "numpy.linalg.norm",
        "builtins.dict",
        "numpy",
    ]
    assert describe([minimize, AdaGradDiff]) == ["minimize", "AdaGradDiff"]
    assert describe(Hidden) == f"{here}.Hidden"


def test_what_has_no_name():
    def inner(x):
        return quadratic(x)

    nameless = {
        "lambda": lambda x: quadratic(2 * x),
        "inner": inner,
        "partial": functools.partial(quadratic, 1.0),
        "Hidden": Hidden(1.0),
        "Slots": Slots(),
        "MatrixLinearOperator": aslinearoperator(A),
        "Generator": np.random.default_rng(0),
    }
    for name, thing in nameless.items():
        assert describe(thing) == {"unnamed": name}
        assert list(known_by_name({"a": [1, {"b": describe(thing)}]})) == [("a[1].b", None)]
    assert not list(known_by_name(describe([LAD(A, REAL), AdaGradDiff(0.1), quadratic])))


def test_names_that_a_user_gives():
    function = lambda x: quadratic(2 * x)
    assert named("half the square", function) is function
    assert describe(function) == {"named": "half the square"}
    assert list(known_by_name(describe([function]))) == [("[0]", "half the square")]
    loss = as_loss(named("mine", Hidden(1.0)))
    assert describe(loss)["function"] == {"method": "value_and_grad", "of": {"named": "mine"}}
    assert describe(as_penalty(named("mine", Hidden(1.0))))["penalty"] == {"named": "mine"}
    assert describe(LAD(named("A", aslinearoperator(A)), REAL))["A"]["whole"]["operator"] == {
        "named": "A"
    }
    assert describe(AdaGradDiff(named("slower", lambda n: 1 / n)))["eta"] == {"named": "slower"}
    assert describe(named("another", function)) == {"named": "another"}
    assert text(Hidden(1.0)) == text(Hidden(2.0))  # the name was given to one object only


def test_what_cannot_have_a_name():
    for thing in (Slots(), Hidden(1.0).value, 1.0, max, A):
        with pytest.raises(TypeError, match="cannot keep a name: put it into a function"):
            named("x", thing)
    for name in ("", None, 3):
        with pytest.raises(ValueError, match="'name' parameter of named must be a text"):
            named(name, quadratic)
    assert describe(quadratic) == f"{quadratic.__module__}.quadratic"


def test_classes_derived_from_ours():
    """The class by its name, what it holds by what is in it."""
    assert describe(Mine(1.0)) == {"class": f"{Mine.__module__}.Mine", "c": 1.0}
    assert text(Mine(A)) == text(Mine(A.copy())) != text(Mine(CHANGED))

    class Local(Rule):
        def init(self, x, g):
            return {}

        def update(self, memory, n, x, g):
            return memory, x - 0.1 * g, 0.1

    assert describe(Local(0.1))["class"] == {"unnamed": "Local"}
    assert describe(named("squares", Local(0.1))) == {
        "class": {"named": "squares"},
        **without_class(AdaGradDiff(0.1)),
    }


def without_class(thing):
    return {name: item for name, item in describe(thing).items() if name != "class"}


def test_the_identity_of_a_problem_leaves_the_data_out():
    about = describe_problem(LAD(A, REAL), as_penalty(None), AdaGradDiff(0.1))
    assert "A" not in about["loss"]
    assert about["loss"]["b"] == describe(REAL)
    assert about["rule"] == describe(AdaGradDiff(0.1))
    functions = [
        describe_problem(as_loss(loss), as_penalty(None), None)
        for loss in (quadratic, lambda x: quadratic(2 * x))
    ]
    assert functions[0] == functions[1]  # told apart by their values
    assert functions[0]["loss"] == {"class": "FunctionLoss"}
