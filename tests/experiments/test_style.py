"""Every rule has a look of its own, which everybody can tell from the others."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

import adagrad_diff
from adagrad_diff.experiments.style import (
    FAMILIES,
    OTHER_COLOR,
    OTHER_MARKERS,
    clear_ticks,
    style,
    style_of,
)
from colours import apart, contrast
from looping import looped

RULES = [name for name in adagrad_diff.rules.__all__ if name != "Rule"]
LOOKS = {name: style_of(name) for name in RULES}
COLORS = [*FAMILIES, OTHER_COLOR]


def test_every_rule_of_the_package_has_a_style():
    known = {name for members in FAMILIES.values() for name in members}
    assert known == set(RULES), (
        "name the family, marker and dash of each rule in src/adagrad_diff/experiments/style.py"
    )


def test_no_two_rules_look_alike():
    assert len({look["marker"] for look in LOOKS.values()}) == len(RULES)
    for (one, a), (two, b) in itertools.combinations(LOOKS.items(), 2):
        assert a["color"] != b["color"] or a["dash"] != b["dash"], (
            f"{one} and {two} have the same line"
        )


def test_colours_can_be_told_apart_by_everybody():
    """0.02 in Oklab can just be told apart side by side; 0.08 from line to line."""
    for one, two in itertools.combinations(FAMILIES, 2):
        assert apart(one, two) > 0.08, f"{one} and {two} are too close for somebody"
    assert min(apart(OTHER_COLOR, color) for color in FAMILIES) > 0.03


@looped("ground", ["#ffffff", "#16181d"])
def test_colours_can_be_read(ground):
    for color in COLORS:
        assert contrast(color, ground) >= 3, f"{color} on {ground}"


def test_a_rule_of_the_user_s_own_keeps_its_look():
    names = ["MyRule", "", "<img src=x onerror=alert(1)>", "Ünï \ud800"]
    here = [style_of(name) for name in names]
    code = f"from adagrad_diff.experiments.style import style_of; print([style_of(n) for n in {names!a}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == repr(here)
    assert {look["color"] for look in here} == {OTHER_COLOR}
    many = {repr(style_of(f"rule {k}")) for k in range(500)}
    assert len(many) == 4 * len(OTHER_MARKERS)


@pytest.mark.peer
@pytest.mark.parametrize("decades", [(0.2, 30), (7, 0.5), (0.9, 2.5), (1.9, 1.5)])
def test_numbers_of_an_axis_do_not_collide(decades):
    """A small panel has at least two numbers on each axis, and none overlap."""
    from matplotlib.figure import Figure

    with style():
        for k, first in enumerate(np.geomspace(1.0, 10.0, 7)):
            across, up = (first * 10**count for count in decades[:: (-1) ** k])
            figure = Figure(figsize=(1.7, 1.4), layout="constrained")
            axes = figure.subplots()
            axes.loglog()
            axes.set(xlim=(first, across), ylim=(first, up))
            clear_ticks(axes)
            figure.draw_without_rendering()
            for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
                ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
                shown = [
                    tick.label1
                    for tick in ticks
                    if tick.label1.get_text() and low <= tick.get_loc() <= high
                ]
                boxes = [label.get_window_extent() for label in shown]
                assert len(boxes) >= 2, (axis.axis_name, first)
                collide = [a.overlaps(b) for a, b in itertools.combinations(boxes, 2)]
                assert not any(collide), (
                    axis.axis_name,
                    first,
                    [label.get_text() for label in shown],
                )
