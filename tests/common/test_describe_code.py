"""Descriptions of what a user writes: functions, what they use, objects and classes; the same in every process."""

import functools
import json
import os
import subprocess
import sys

import numpy as np

import adagrad_diff as ad
from adagrad_diff import Rule, minimize
from adagrad_diff.common.describe import describe
from adagrad_diff.losses import LinearModel, as_loss
from describing import CHANGED, REAL, A, text


def test_objects_that_contain_themselves():
    items = [1.0]
    items.append(items)
    table = {"a": 1}
    table["b"] = {"c": table}
    boxed = np.array([None, 1.0], dtype=object)
    boxed[0] = boxed

    class Node:
        def __init__(self, value):
            self.value, self.parent = value, self

        def __call__(self, x):
            return self.value * x

    for thing in (items, table, boxed, Node(1.0), Node(1.0).__call__):
        assert json.loads(text(thing)) == describe(thing)
    assert text(Node(1.0)) != text(Node(2.0))
    shared = [0.5]
    assert describe([shared, shared]) == [[0.5], [0.5]]  # twice beside each other is not inside itself

    def recursive(x):
        return recursive(x - 1) if x > 0 else x

    assert "..." in text(recursive)


FACTOR, UNUSED = 2.0, 0.0


def using_a_global(x):
    return [FACTOR * y for y in x.UNUSED]


def using_a_function(x):
    return using_a_global(x) + 1


def quadratic(x, c, *, scale=1.0):
    return scale * 0.5 * c * np.sum(x**2, axis=0), scale * c * x


def test_functions(monkeypatch):
    def closing_over(c, scale=1.0):
        return lambda x, power=2, *, factor=scale: (c * np.sum(x**power, axis=0) * factor, 2 * c * x)

    assert text(closing_over(1.0)) == text(closing_over(1.0))
    different = [closing_over(1.0), closing_over(2.0), closing_over(A), closing_over(CHANGED), closing_over(1.0, scale=3.0)]
    different += [
        lambda x: (x @ x, 2 * x),
        lambda x: (x @ x, 3 * x),
        lambda x, p=1: (x @ x, 3 * x),
        lambda x, y: x,
        lambda y, x: x,
    ]
    different += [lambda x: [y + 1 for y in x], lambda x: [y + 2 for y in x], lambda x: x.sum(), lambda x: x.max()]
    assert len({text(as_loss(function)) for function in different}) == len(different)

    before = [text(using_a_global), text(using_a_function)]
    monkeypatch.setitem(globals(), "UNUSED", 1.0)  # the name of an attribute only
    assert [text(using_a_global), text(using_a_function)] == before
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert text(using_a_global) != before[0]
    assert text(using_a_function) != before[1]


def test_functions_stay_the_same_when_they_are_called():
    def function(x):
        return sum(y * 2.0 for y in range(x)), FACTOR

    before = text(function)
    for _ in range(200):  # the interpreter has specialised its code by now
        function(10)
    assert text(function) == before


def test_partial_functions():
    partials = [functools.partial(quadratic, c=c, scale=scale) for c in (1.0, 2.0, A, CHANGED) for scale in (1.0, 2.0)]
    partials += [functools.partial(quadratic, 1.0), functools.partial(minimize, 1.0)]
    assert len({text(function) for function in partials}) == len(partials)
    assert text(functools.partial(quadratic, c=A)) == text(functools.partial(quadratic, c=A.copy()))


def test_compiled_functions():
    from numba import njit

    def source(c):
        return njit(lambda x: c * x)

    function = source(1.0)
    before = text(function)
    function(1.0)
    function(1)
    assert text(function) == before == text(source(1.0)) != text(source(2.0))


class Hidden:
    """A loss that keeps its data to itself."""

    def __init__(self, c):
        self._c = c

    def __call__(self, x):
        return 0.5 * self._c * np.sum(x**2, axis=0), self._c * x

    value_and_grad = __call__


class Slots:
    __slots__ = ("c",)

    def __init__(self, c):
        self.c = c

    def value(self, x):
        return 0.0

    def prox(self, z, step):
        return z


def test_objects_of_a_user():
    for kind in (Hidden, Slots):
        assert text(kind(1.0)) == text(kind(1.0)) != text(kind(2.0))
        assert text(kind(A)) != text(kind(CHANGED))
    assert text(as_loss(Hidden(1.0))) != text(as_loss(Hidden(2.0)))
    assert text(ad.penalties.as_penalty(Slots(1.0))) != text(ad.penalties.as_penalty(Slots(2.0)))
    assert text(np.random.default_rng(0)) == text(np.random.default_rng(0)) != text(np.random.default_rng(1))
    assert text(A.dot) == text(A.copy().dot) != text(CHANGED.dot)
    assert text(np.exp) != text(np.log)
    assert text(max) != text(min)
    assert text(np) != text(functools)


def test_the_code_of_a_class_of_a_user():
    def build(power):
        if power == 1:

            class Loss(LinearModel):
                @staticmethod
                def scalar(z, b, theta):
                    return abs(z - b), 1.0 if z > b else -1.0

            class Mine(Rule):
                def update(self, metric, g, g_prev):
                    metric.total += g**2
        else:

            class Loss(LinearModel):
                @staticmethod
                def scalar(z, b, theta):
                    return (z - b) ** 2, 2 * (z - b)

            class Mine(Rule):
                def update(self, metric, g, g_prev):
                    metric.total += np.abs(g)

        return describe(Loss(A, REAL)), describe(Mine(0.1))

    one, another = build(1), build(2)
    assert one == build(1)
    assert one[0] != another[0]
    assert one[1] != another[1]


SCRIPT = """
import json
from adagrad_diff.common.describe import describe

CHOICES = {"one", "two", "three", "four", "five", "six"}

def loss(x, among=frozenset("abcdefgh")):
    return x in {"seven", "eight", "nine", "ten", "eleven"} and x in CHOICES

print(json.dumps(describe([loss, CHOICES])))
"""


def test_another_process_describes_the_same():
    """The order of a set of strings is another one in every process."""
    answers = set()
    for seed in "123":
        run = [sys.executable, "-c", SCRIPT]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        answers.add(subprocess.run(run, capture_output=True, text=True, check=True, env=environment).stdout)
    assert len(answers) == 1
