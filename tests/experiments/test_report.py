"""The report page as text: what is in it, what cannot get out of its place, how large it is, and how it is written."""

import json
import math
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from report_content import FREE, TUNED, content, hostile

from adagrad_diff.study._page_text import clean, embedded, number, short
from adagrad_diff.study.report import SCRIPTS, digest, page, part, write
from colours import contrast

pytestmark = pytest.mark.peer
NASTY = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "<!--<script>",
    "{{ 7 * 7 }}{% raw %}",
    "${alert(1)}`",
    "</style></title></pre>",
    "&lt;b&gt; &amp; \\u003c \u2028 \x00",
    "half a character \ud800",
    '=1+1,"two"\nlines',
)


class Reader(HTMLParser):
    """The elements of a page, with their attributes and the text that is directly in them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.open = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append([tag, dict(attributes), ""])
        if tag not in ("meta", "link", "input", "rect"):
            self.open.append(self.found[-1])

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if self.open:
            self.open[-1][2] += data

    def all(self, tag):
        return [(attributes, text) for found, attributes, text in self.found if found == tag]


def data_of(text):
    return json.loads(
        next(
            inside
            for attributes, inside in Reader(text).all("script")
            if attributes.get("id") == "data"
        )
    )


def numbers(value):
    """All numbers, in order, wherever they are."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [one for item in value for one in numbers(item)]
    return [value] if isinstance(value, float | int) and not isinstance(value, bool) else []


def test_what_the_page_says():
    made = content()
    reader = Reader(page(made))
    assert [text for _, text in reader.all("h1")] == [made["title"]]
    said = " ".join(text for _, text in reader.all("p"))
    for sentence in made["verdict"]:
        assert sentence in said
    assert [text for _, text in reader.all("dt")] == [label for label, _ in made["about"]] + [
        "Optimum"
    ]
    assert reader.all("code")[0][1].splitlines() == made["command"]
    heads = [text for attributes, text in reader.all("th") if attributes.get("scope") == "row"]
    assert sorted(heads) == sorted([*TUNED, *FREE] * 3)
    assert {
        attributes["data-csv"] for attributes, _ in reader.all("button") if "data-csv" in attributes
    } == {
        "scores",
        "gaps",
        "curves",
    }


def test_scores_are_in_order_and_in_the_table():
    """Those that forgive the widest range of step sizes come first, those without a step size last."""
    made = content()
    text = page(made)
    body = re.search(r'<tbody data-iterate="last">(.*?)</tbody>', text, re.DOTALL)[1]
    rows = [re.findall(r"<t[hd][^>]*>([^<]*)", row) for row in body.split("<tr>")[1:]]
    wide = {s["rule"]: s for s in made["scores"] if s["iterate"] == "last"}
    tuned = [row for row in rows if row[0] in TUNED]
    assert [row[0] for row in rows[len(tuned) :]] == sorted(
        FREE, key=lambda rule: wide[rule]["best_gap"]
    )
    decades = [wide[row[0]]["decades_10x"] for row in tuned]
    assert decades == sorted(decades, reverse=True)
    for row in tuned:
        score = wide[row[0]]
        assert row[1] == number(score["decades_10x"])
        assert row[-5:] == [
            number(score[k])
            for k in ("best_eta", "best_gap", "default_eta", "default_gap", "regret")
        ]


def test_the_longest_bar_is_that_of_the_most_forgiving_rule():
    """Rules without a step size have no bar, whatever their score says."""
    made = content(tuned=TUNED[:3], free=FREE[:1])
    for score in made["scores"]:
        score["decades_10x"] = {"AdaGradDiff": 2.0, "AdaGrad": 0.5, "DoG": 7.0}.get(
            score["rule"], 0.0
        )
    bars = [float(attributes["width"]) for attributes, _ in Reader(page(made)).all("rect")]
    assert bars == [100, 25, 0] * 3


def test_the_data_in_the_page_are_those_of_the_content():
    made = content(n_etas=7)
    back = data_of(page(made))
    assert back.keys() == made.keys()
    for key in ("title", "etas", "rules", "scores", "iterations", "verdict", "f_star"):
        assert back[key] == made[key]
    for one, two in zip(made["runs"], back["runs"], strict=True):
        assert (one["rule"], one["eta"], one["failed"]) == (two["rule"], two["eta"], two["failed"])
        for key, digits in {"last": 6, "best": 6, "average": 6, "step": 3}.items():
            np.testing.assert_allclose(
                numbers(two[key]), numbers(one[key]), rtol=0.51 * 10 ** (1 - digits)
            )
        for key in ("median", "low", "high"):
            assert [v is None for v in one["curve"][key]] == [v is None for v in two["curve"][key]]
            np.testing.assert_allclose(
                numbers(two["curve"][key]), numbers(one["curve"][key]), rtol=0.0051
            )


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_text_is_text(text):
    """Neither an element nor an attribute comes from it, and it arrives whole."""
    made, harmless = page(hostile(text)), page(hostile("harmless"))
    found, expected = Reader(made).found, Reader(harmless).found
    assert [(tag, sorted(attributes)) for tag, attributes, _ in found] == [
        (tag, sorted(attributes)) for tag, attributes, _ in expected
    ]
    assert data_of(made)["title"] == clean(text)
    shown = clean(text)  # the parser of a browser, as that of Python, keeps everything but a NUL
    assert Reader(made).all("title")[0][1] == shown
    assert sum(shown in inside for _, inside in Reader(made).all("span")) == 2
    made.encode("utf-8")


def test_the_page_asks_for_nothing():
    text = page(content())
    reader = Reader(text)
    for tag, attributes, _ in reader.found:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            value = attributes.get(name, "#")
            assert value.startswith("#") or value == "data:,", (tag, name, value)
    style = next(inside for _, inside in reader.all("style"))
    assert "url(" not in style
    assert "@import" not in style
    scripts = [inside for attributes, inside in reader.all("script") if "type" not in attributes]
    policy = next(
        attributes["content"] for attributes, _ in reader.all("meta") if "http-equiv" in attributes
    )
    assert policy.startswith("default-src 'none';")
    assert [digest(inside) in policy for inside in (style, *scripts)] == [True, True]
    assert "unsafe" not in policy
    for name in SCRIPTS:
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|fetch\(|XMLHttp|import\(",
            part(name),
        ), name


def test_text_can_be_read_on_every_ground():
    """Ink, fine print and links on the page and on what is raised from it: light, dark, and on paper."""
    themes = re.findall(r":root \{([^}]*--ground[^}]*)\}", part("page.css"))
    assert len(themes) == 3
    for theme in themes:
        colors = dict(re.findall(r"--(\w+): (#\w{6})", theme))
        for ink in ("ink", "quiet", "link"):
            for ground in ("ground", "raised"):
                assert contrast(colors[ink], colors[ground]) >= 4.5, f"{ink} on {ground}: {theme}"


def test_a_large_page_is_below_a_megabyte():
    """20 rules, 20 step sizes, 60 recorded iterations, 10 starts. The largest page has twice as many step sizes."""
    tuned = [*TUNED, *(f"a rule of my own with a name, number {k}" for k in range(20 - len(TUNED)))]
    text = page(content(tuned=tuned, free=(), n_etas=20, n_recorded=60, starts=10, n_iter=10000))
    assert len(data_of(text)["runs"]) == 400
    assert len(data_of(text)["iterations"]) == 60
    assert len(text.encode()) < 1_000_000


def test_the_page_is_the_same_each_time():
    assert page(content(n_etas=3)) == page(content(n_etas=3))


def test_numbers_that_are_not_finite_are_missing():
    made = content(n_etas=2)
    made["runs"][0] |= {
        "last": [math.nan, math.inf, np.float32(0.5)],
        "step": np.array([1.0, -np.inf]),
    }
    run = data_of(page(made))["runs"][0]
    assert (run["last"], run["step"]) == ([None, None, 0.5], [1, None])


def test_short_numbers():
    rng = np.random.default_rng(0)
    values = [
        *(10 ** rng.uniform(-300, 300, 500)),
        *(10 ** rng.uniform(-6, 6, 500)),
        0.0,
        9.9999,
        1e-5,
        99999.5,
        3e-308,
        1.7e308,
    ]
    for digits in (3, 6):
        for value in (sign * v for v in values for sign in (1, -1)):
            text = short(float(value), digits)
            assert json.loads(text) == float(f"{value:.{digits - 1}e}"), text
            assert len(text) <= len(repr(float(f"{value:.{digits - 1}e}")))


def test_what_cannot_be_shown():
    with pytest.raises(
        TypeError,
        match=r"A report shows numbers and text\. Got object instead: turn it into one of these\.",
    ):
        page(content(n_etas=1) | {"title": object()})
    assert (
        embedded(clean({"a": np.int64(3), "b": np.bool_(True), "c": (1, 2)}))
        == '{"a":3,"b":true,"c":[1,2]}'
    )


def test_write(tmp_path):
    made = content(n_etas=2)
    path = write(tmp_path / "report.html", made)
    assert path.read_text(encoding="utf-8") == page(made)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write(path, made | {"title": object()})
    assert path.read_bytes() == before
    with pytest.raises(
        OSError, match=r"cannot be written: .*\. What was there before is unchanged\."
    ):
        write(tmp_path / "nowhere" / "report.html", made)
    with pytest.raises(ValueError, match="'path' must be the path of a file or directory"):
        write(3, made)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_without_jinja():
    """The module can be imported; whoever wants a page is told what to install."""
    code = "import sys; sys.modules['jinja2'] = None; from adagrad_diff.study.report import page; page({})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: This needs jinja2, which is not installed: pip install 'adagrad-diff[report]'"
    )
