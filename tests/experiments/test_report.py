"""The report page as text: what is in it, what cannot escape, how large it is."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from report_content import FREE, TUNED, content, hostile

from adagrad_diff.experiments.report import SCRIPTS, digest, number_lists, page, part, write
from looping import looped

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
    "&lt;b&gt; &amp; \\u003c \u2028",
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


def test_what_the_page_says():
    made = content()
    reader = Reader(page(made))
    assert [text for _, text in reader.all("h1")] == [made["title"]]
    said = " ".join(text for _, text in reader.all("p"))
    assert all(sentence in said for sentence in (*made["verdict"], made["note"]))
    assert [text for _, text in reader.all("dt")] == ["Data", "Loss", "Relative gap", "Optimum"]
    assert reader.all("code")[0][1].splitlines() == made["command"]
    heads = [text for attributes, text in reader.all("th") if attributes.get("scope") == "row"]
    assert sorted(heads) == sorted([*TUNED, *FREE] * 3)
    buttons = {attributes.get("data-csv") for attributes, _ in reader.all("button")}
    assert buttons == {None, "scores", "gaps", "curves"}


def test_the_table_and_the_rules_shown_first():
    """The widest range comes first, with the longest bar; rules without a step size come last."""
    made = content()
    text = page(made)
    body = re.search(r'<tbody data-iterate="last">(.*?)</tbody>', text, re.DOTALL)[1]
    rows = [re.findall(r"<t[hd][^>]*>([^<]+)", row) for row in body.split("<tr>")[1:]]
    shown = [[cell for cell in row if cell.strip()] for row in rows]
    wide = {one["rule"]: one for one in made["scores"] if one["iterate"] == "last"}
    tuned = [row for row in shown if row[0] in TUNED]
    assert [row[0] for row in shown[len(tuned) :]] == sorted(
        FREE, key=lambda rule: wide[rule]["best_gap"]
    )
    decades = [wide[row[0]]["decades_10x"] for row in tuned]
    assert decades == sorted(decades, reverse=True)
    assert [float(row[1].strip("≥")) for row in tuned] == pytest.approx(decades, abs=0.05)
    bars = [float(attributes["width"]) for attributes, _ in Reader(text).all("rect")][: len(shown)]
    assert bars[: len(tuned)] == pytest.approx([100 * d / max(decades) for d in decades], rel=1e-3)
    assert bars[len(tuned) :] == [0] * len(FREE)
    boxes = [a for a, _ in Reader(text).all("input") if a["type"] == "checkbox"]
    checked = [[*TUNED, *FREE][int(a["value"])] for a in boxes if "checked" in a]
    assert checked == ["AdaGradDiff", "AdaGrad", "AdamDiff", "Adam"]
    few = content(tuned=("KATE", "Adam"), free=FREE[:1])
    assert set(few["shown"]) == {"KATE", "Adam", FREE[0]}


def test_the_data_in_the_page_are_those_of_the_content():
    made = content(n_etas=7)
    assert data_of(page(made)) == json.loads(json.dumps(made))
    run = made["runs"][0]
    assert {len(run[name]) for name in ("last", "best", "average")} == {3}
    assert {len(values) for values in run["curve"].values()} == {len(made["iterations"])}
    values = np.array([[np.nan, np.inf], [1.23456789, 0.00012345]])
    assert number_lists(values, 3) == [[None, None], [1.23, 0.000123]]


@looped("text", NASTY)
def test_text_is_text(text):
    """Neither an element nor an attribute comes from it, and it arrives whole."""
    made, harmless = page(hostile(text)), page(hostile("harmless"))
    found, expected = Reader(made).found, Reader(harmless).found
    assert [(tag, sorted(attributes)) for tag, attributes, _ in found] == [
        (tag, sorted(attributes)) for tag, attributes, _ in expected
    ]
    assert data_of(made)["title"] == text
    assert Reader(made).all("title")[0][1] == text
    assert sum(text in inside for _, inside in Reader(made).all("span")) == 2


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


def test_write(tmp_path):
    made = content(n_etas=2)
    path = write(tmp_path / "report.html", made)
    assert path.read_text(encoding="utf-8") == page(made)
    with pytest.raises(TypeError, match="not JSON serializable"):
        write(path, made | {"title": object()})
    assert path.read_text(encoding="utf-8") == page(made)
    half = write(tmp_path / "half.html", made | {"title": "half \ud800 a \0 character"})
    assert "<title>half ? a \ufffd character</title>" in half.read_text(encoding="utf-8")
    half.unlink()
    with pytest.raises(
        OSError, match=r"cannot be written: .*\. What was there before is unchanged\."
    ):
        write(tmp_path / "nowhere" / "report.html", made)
    with pytest.raises(ValueError, match="'path' must be the path of a file or directory"):
        write(3, made)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
