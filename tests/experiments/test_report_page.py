"""The report page in a browser: it draws the numbers, reacts to people, and talks to nobody."""

import csv
import json
import statistics
from importlib.resources import files

import numpy as np
import pytest
from report_content import FREE, TUNED, content, hostile
from test_report import NASTY

from adagrad_diff.experiments.report import write
from looping import looped

pytestmark = [pytest.mark.peer, pytest.mark.slow]
CONTENT = content()
EVERY = list(range(len(CONTENT["rules"])))
FIRST = [k for k in EVERY if CONTENT["rules"][k]["name"] in CONTENT["shown"]]
TABBABLE = ("skip", "iterate", "rule by rule", "checkbox", "show", "eta", "summary", "pre", "csv")
DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(tmp_path_factory.mktemp("page") / "report.html", CONTENT)


def number(value):
    """A number as the page writes it."""
    if 1e-4 <= abs(value) < 1e5:
        return f"{float(f'{value:.3g}'):.10g}"
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def silent(browser):
    """Nothing was logged or thrown, and nothing but the page itself was asked for."""
    assert browser.logged == []
    assert browser.dialogs == []
    assert browser.requests == [browser.address]


def texts(browser, selector):
    return browser.run(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)"
    )


def shown_rules(browser, figure):
    return browser.run(
        f"[...document.querySelectorAll('#{figure} .rule:not(.under)')].map((g) => Number(g.dataset.rule))"
    )


def table(browser, figure):
    """The numbers of a figure, as they can be read in its table."""
    browser.run(f"document.querySelector('#{figure} details').open = true")
    browser.run("new Promise((done) => setTimeout(done, 50))")
    rows = f"[...document.querySelectorAll('#{figure} tr')].map((r) => [...r.cells].map((c) => c.textContent))"
    return browser.run(rows)


def ticks(browser, figure, anchor):
    """Where the powers of ten stand: pairs of exponent and pixel."""
    found = browser.run(
        f"[...document.querySelectorAll('#{figure} svg > text[text-anchor={anchor}]')].map((t) => "
        "[t.textContent, Number(t.getAttribute('x')), Number(t.getAttribute('y'))])"
    )
    for text, x, y in found:
        if (
            text.startswith("10")
            and len(text) > 2
            and not text.translate(DIGITS)[2:].strip("-0123456789")
            and text not in ("100", "1000")
        ):
            yield int(text.translate(DIGITS)[2:]), x, y
        elif text in ("1", "10", "100", "1000"):
            yield len(text) - 1, x, y


@pytest.mark.parametrize(
    "how",
    [{}, {"dark": True}, {"width": 390, "height": 844, "touch": True}],
    ids=["light", "dark", "phone"],
)
def test_it_opens_in_silence(browser, path, how):
    browser.open(path, **how)
    for figure in ("gaps", "curves", "steps", "map"):
        assert shown_rules(browser, figure) == FIRST, figure
    assert browser.run("document.documentElement.scrollWidth") <= how.get("width", 1000)
    assert (
        browser.run(
            "[...document.querySelectorAll('svg *')].filter((e) => /NaN|Infinity|undefined/.test(e.outerHTML)).length"
        )
        == 0
    )
    silent(browser)


@pytest.mark.parametrize(
    "how",
    [{}, {"dark": True}, {"width": 390, "height": 844, "touch": True}],
    ids=["light", "dark", "phone"],
)
def test_everybody_can_use_it(browser, tmp_path, how):
    """The checks of axe-core: contrast, labels, roles, headings, focus; with all tables open."""
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    browser.open(
        write(
            tmp_path / "small.html", content(tuned=TUNED[:4], free=FREE[:2], n_etas=5, n_recorded=6)
        ),
        **how,
    )
    browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    browser.run((files(axe) / "axe.min.js").read_text(encoding="utf-8") + "; 0")
    found = browser.run(
        "axe.run().then((r) => [r.passes.length, r.violations.map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 200))])])"
    )
    assert found[0] > 20
    assert found[1] == []


def test_lines_are_where_the_numbers_are(browser, path):
    """Markers, read back by the axis ticks, are the medians over the starts at their steps."""
    browser.open(path, width=1400)
    browser.click("[data-show=all]")
    across, up = list(ticks(browser, "gaps", "middle")), list(ticks(browser, "gaps", "end"))
    to_eta = np.polyfit([x for _, x, _ in across], [e for e, _, _ in across], 1)
    to_gap = np.polyfit([y - 4 for _, _, y in up], [e for e, _, _ in up], 1)
    seen = 0
    for k, rule in enumerate(CONTENT["rules"]):
        marks = f"[...document.querySelectorAll('#gaps .rule[data-rule=\"{k}\"] .mark')]"
        marks = browser.run(
            f"{marks}.map((m) => m.transform.baseVal[0].matrix).map((m) => [m.e, m.f])"
        )
        runs = [run for run in CONTENT["runs"] if run["rule"] == rule["name"]]
        alive = [run for run in runs if None not in run["last"]]
        assert len(marks) == len(alive)
        crosses = browser.run(
            f"document.querySelectorAll('#gaps .rule[data-rule=\"{k}\"] .cross').length"
        )
        assert crosses == len(runs) - len(alive)
        for (x, y), run in zip(marks, alive, strict=True):
            assert np.polyval(to_gap, y) == pytest.approx(
                np.log10(statistics.median(run["last"])), abs=0.01
            )
            if not rule["free"]:
                assert np.polyval(to_eta, x) == pytest.approx(np.log10(run["eta"]), abs=0.01)
            else:
                assert np.polyval(to_eta, x) > np.log10(CONTENT["etas"][-1])  # beside the axis
            seen += 1
    assert seen > 200


def test_tables_have_the_numbers_of_the_figures(browser, path):
    browser.open(path)
    browser.click("[data-show=all]")
    runs = {(run["rule"], run["eta"]): run for run in CONTENT["runs"]}
    eta = CONTENT["etas"][int(browser.run("document.getElementById('eta').value"))]
    head, *rows = table(browser, "gaps")
    assert head[1:] == [rule["name"] for rule in CONTENT["rules"]]
    assert len(rows) == len(CONTENT["etas"]) + 1
    for row, value in zip(rows, [*CONTENT["etas"], None], strict=True):
        for name, cell in zip(head[1:], row[1:], strict=True):
            if (name, value) not in runs:
                assert cell == ""
                continue
            ends = runs[name, value]["last"]
            if None in ends:
                assert cell == "diverged"
                continue
            said = [float(word.strip("()")) for word in cell.split() if word != "to"]
            wanted = [statistics.median(ends), min(ends), max(ends)]
            assert said == pytest.approx(wanted[: len(said)], rel=0.0051)
    head, *rows = table(browser, "curves")
    assert [row[0] for row in rows] == [str(n) for n in CONTENT["iterations"]]
    steps = [float(row[1]) for row in table(browser, "steps")[1:]]
    assert steps == pytest.approx(runs[head[1], eta]["step"], rel=0.011)
    assert len(table(browser, "map")) == len(CONTENT["etas"]) + 2
    silent(browser)


def test_the_slider_redraws_by_key_and_by_mouse(browser, path):
    browser.open(path)
    lines = "[...document.querySelectorAll('#curves .line, #steps .line')].map((p) => p.getAttribute('d')).join()"
    now = "document.querySelector('#gaps .now').getAttribute('d')"
    pointing = f"[{now}, document.querySelector('#map .here').getAttribute('x')]"
    before, at, there = (
        browser.run(lines),
        int(browser.run("document.getElementById('eta').value")),
        browser.run(pointing),
    )
    browser.run("document.getElementById('eta').focus()")
    browser.press("ArrowLeft", 37)
    assert int(browser.run("document.getElementById('eta').value")) == at - 1
    assert texts(browser, "#chooser output") == [f"eta = {number(CONTENT['etas'][at - 1])}"]
    assert browser.run("document.getElementById('eta').getAttribute('aria-valuetext')") == number(
        CONTENT["etas"][at - 1]
    )
    assert browser.run(lines) != before
    # The drawings say it as well: they may be printed alone.
    said = f"eta = {number(CONTENT['etas'][at - 1])}"
    assert all(
        any(text.endswith(said) for text in texts(browser, f"#{figure} svg > text"))
        for figure in ("curves", "steps")
    )
    assert all(one != two for one, two in zip(browser.run(pointing), there, strict=True))
    browser.press("ArrowRight", 39)
    assert browser.run(lines) == before
    assert browser.run(pointing) == there
    browser.press("Home", 36)
    assert texts(browser, "#chooser output") == [f"eta = {number(CONTENT['etas'][0])}"]
    browser.click("#eta")  # its middle
    assert texts(browser, "#chooser output") == [f"eta = {number(CONTENT['etas'][10])}"]
    x, y = browser.place("#gaps svg")
    browser.press("Home", 36)
    browser.point(x, y, click=True)  # a click into the figure chooses the step size there
    assert int(browser.run("document.getElementById('eta').value")) > 0
    browser.click("#map .rule .cell[data-eta='3']")
    assert browser.run("document.getElementById('eta').value") == "3"
    silent(browser)


def test_the_legend_works_by_key_and_by_mouse(browser, path):
    browser.open(path)
    second = "#legend .chip:nth-child(2)"
    browser.click(second)
    assert shown_rules(browser, "gaps") == shown_rules(browser, "map") == [0, *FIRST[2:]]
    now = "document.querySelector('#gaps .now').hasAttribute('d')"
    assert browser.run(now)  # drawn anew, it still points at the step size
    browser.click(second)
    assert shown_rules(browser, "gaps") == FIRST
    browser.run("document.querySelector('#legend input[value=\"3\"]').focus()")
    lifted = "[...document.querySelectorAll('#gaps .rule.chosen')].map((g) => g.dataset.rule)"
    assert browser.run(lifted) == ["3", "3"]  # what has the focus stands out, line and band
    browser.press(" ", 32, " ")
    assert shown_rules(browser, "curves") == shown_rules(browser, "steps") == [0, 1, 2]
    browser.run("document.querySelector('[data-show=none]').focus()")
    browser.press("Enter", 13, "\r")
    assert all(shown_rules(browser, name) == [] for name in ("gaps", "curves", "steps", "map"))
    assert texts(browser, "#gaps .empty") == ["No rule is chosen."]
    browser.click("[data-show=paper]")
    assert shown_rules(browser, "gaps") == [0, 1]
    browser.click("[data-show=all]")
    assert shown_rules(browser, "gaps") == EVERY
    silent(browser)


def test_the_iterate_can_be_chosen(browser, path):
    browser.open(path)
    first = table(browser, "map")
    browser.click("[name=iterate][value=average]")
    second = table(browser, "map")
    assert float(second[1][1]) == pytest.approx(3 * float(first[1][1]), rel=0.02)
    assert browser.run(
        "[...document.querySelectorAll('#scores tbody')].filter((b) => !b.hidden).map((b) => b.dataset.iterate)"
    ) == ["average"]
    browser.run("document.querySelector('[name=iterate]:checked').focus()")
    browser.press("ArrowUp", 38)
    assert float(table(browser, "map")[1][1]) == pytest.approx(0.7 * float(first[1][1]), rel=0.02)
    silent(browser)


def test_everything_can_be_reached_with_the_tab_key(browser, path):
    browser.open(path)
    seen = set()
    what = "(e) => [e.className, e.name, e.type, e.id, e.tagName, e.ariaLabel, ...Object.keys(e.dataset)].join(' ')"
    for _ in range(60):
        browser.press("Tab", 9)
        seen |= {
            word
            for word in TABBABLE
            if word in browser.run(f"({what})(document.activeElement)").lower()
        }
        visible = browser.run("getComputedStyle(document.activeElement).outlineStyle")
        assert visible != "none" or browser.run("document.activeElement.tagName") == "BODY"
    assert seen == set(TABBABLE)


def downloaded(browser, name):
    """The rows of a CSV file that the page makes."""
    target = browser.directory / f"{name}.csv"
    target.unlink(missing_ok=True)
    browser.click(f"[data-csv={name}]")
    browser.wait("Browser.downloadProgress", state="completed")
    with open(target, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_csv(browser, path):
    """Every number of the content is in one of the files, an empty field where there is none."""
    browser.open(path)
    for row, score in zip(downloaded(browser, "scores"), CONTENT["scores"], strict=True):
        assert row.keys() == score.keys()
        for key, value in score.items():
            if isinstance(value, bool | str):
                assert row[key] == str(value).lower() if isinstance(value, bool) else value
            else:
                same(row[key], value, 0)
    ends = [(run, k) for run in CONTENT["runs"] for k in range(CONTENT["starts"])]
    for row, (run, k) in zip(downloaded(browser, "gaps"), ends, strict=True):
        assert (row["rule"], row["start"], row["failed"]) == (
            run["rule"],
            str(k),
            str(run["failed"]).lower(),
        )
        same(row["eta"], run["eta"], 0)
        for key in ("last", "best", "average"):
            same(row[key], run[key][k], 5.1e-6)
    points = [(run, k, n) for run in CONTENT["runs"] for k, n in enumerate(CONTENT["iterations"])]
    for row, (run, k, n) in zip(downloaded(browser, "curves"), points, strict=True):
        assert (row["rule"], row["iteration"]) == (run["rule"], str(n))
        for key in ("median", "low", "high"):
            same(row[key], run["curve"][key][k], 0.0051)
        same(row["step"], run["step"][k], 0.0051)
    assert browser.logged == []


def same(text, number, accuracy):
    """A field is a number, or empty if there is none."""
    if number is None:
        assert text == ""
    else:
        assert abs(float(text) - number) <= accuracy * abs(number)


@looped("text", NASTY)
def test_nasty_names_are_names(browser, tmp_path, text):
    browser.open(write(tmp_path / "nasty.html", hostile(text)))
    assert texts(browser, "#legend .name") == [text, "AdaGrad", f"{text} free"]
    assert text in table(browser, "gaps")[0]
    strange = "document.querySelectorAll('img, iframe, object, embed, base, form').length"
    assert browser.run(strange) == 0
    assert browser.run("document.scripts.length") == 2
    browser.point(*browser.place("#gaps .rule .mark"))
    browser.run("new Promise((done) => setTimeout(done, 50))")
    silent(browser)
    rules = {row["rule"] for row in downloaded(browser, "scores")}
    assert rules == {text, "AdaGrad", f"{text} free"}


def test_the_policy_is_a_second_wall(browser, path):
    """If a script or an image got into the page, it would neither run nor be fetched."""
    browser.open(path)
    browser.run(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'alert(1)'}))"
    )
    browser.run(
        "document.body.append(Object.assign(document.createElement('img'), {src: 'http://example.com/x.png'}))"
    )
    browser.run("new Promise((done) => setTimeout(done, 200))")
    assert browser.dialogs == []
    assert browser.sent == [browser.address]
    assert len(browser.logged) >= 2
    assert all("Content Security Policy" in line for line in browser.logged)


def odd(**changes):
    return content(tuned=TUNED[:3], free=FREE[:2], n_etas=5, n_recorded=6) | changes


def with_runs(change):
    made = odd()
    for run in made["runs"]:
        change(run)
    return made


def diverge(run):
    lost = [None] * 6
    run |= {name: [None] * 3 for name in ("last", "best", "average")}
    run |= {"failed": True, "curve": dict.fromkeys(run["curve"], lost), "step": lost}


def half(run):
    run["last"][0] = None
    run["curve"]["high"] = [None] * 6


def exact(run):
    run |= {"last": [0.0] * 3, "best": [0.0] * 3, "curve": dict.fromkeys(run["curve"], [0.0] * 6)}


ODD = {
    "only rules without a step size": content(tuned=(), n_etas=1) | {"etas": []},
    "one step size": content(tuned=TUNED[:2], free=(), n_etas=1),
    "one rule, one start, one iteration": content(
        tuned=TUNED[:1], free=(), n_etas=3, n_recorded=1, starts=1, n_iter=1
    ),
    "no rule at all": odd(rules=[], runs=[], scores=[], tables={}, etas=[]),
    "no scores, no words": odd(scores=[], tables={}, verdict=[], about=[], command=[]),
    "everything diverged": with_runs(diverge),
    "one start of three diverged": with_runs(half),
    "gaps of zero": with_runs(exact),
    "from iteration zero": odd(iterations=[0, 1, 10, 50, 200, 500]),
    "a step size without a run": odd(etas=[1e-9, *odd()["etas"]]),
    "steps unknown": odd(runs=[run | {"step": None} for run in odd()["runs"]]),
}


@looped("name", ODD)
def test_odd_contents_are_drawn(browser, tmp_path, name):
    browser.open(write(tmp_path / "odd.html", ODD[name]))
    for figure in ("gaps", "curves", "steps", "map"):
        assert browser.run(f"document.querySelector('#{figure} .drawing').childElementCount") == 1
        table(browser, figure)
    for code in ("[data-show=none]", "[data-show=all]"):
        browser.run(f"document.querySelector('{code}').click()")
    assert (
        browser.run(
            "[...document.querySelectorAll('svg *')].filter((e) => /NaN|Infinity|undefined/.test(e.outerHTML)).length"
        )
        == 0
    )
    silent(browser)
