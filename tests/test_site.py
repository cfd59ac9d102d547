"""The site that `make docs` has built: every link leads somewhere, and in a real browser it reads without a network."""

import json
import os
import re
from functools import cache
from html import unescape
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from browser import CHROMIUM, Browser

ROOT = Path(__file__).parent.parent
SITE = ROOT / "docs" / "_build" / "html"
pytestmark = [
    pytest.mark.peer,
    pytest.mark.slow,
    pytest.mark.skipif(
        not (SITE / "index.html").exists(), reason="the site has not been built: make docs"
    ),
]
# Of each kind of page one: cards, formulas, tutorials with output, wide tables, pictures, a gallery, references, help texts.
SHOWN = (
    "index",
    "guide/scikit_learn",
    "guide/how_it_works",
    "guide/minimize",
    "rules",
    "guide/auto",
    "gallery/index",
    "gallery/portfolio",
    "reference/generated/adagrad_diff.minimize",
    "reference/cli",
    "changelog",
)
WAYS = {"light": {}, "dark": {"dark": True}, "phone": {"width": 400, "height": 800, "touch": True}}


LOADED = re.compile(
    r"""<(?:img|script|source|iframe|video)\b[^>]*?\ssrc=["']?([^"'\s>]+)|<link\b[^>]*?\shref=["']?([^"'\s>]+)"""
)
LINKED = re.compile(r"""<a\b[^>]*?\shref=["']?([^"'\s>]+)""")
PLACE = re.compile(r"""\s(?:id|name)=["']?([^"'\s>]+)""")


class Page:
    """The addresses that a page asks for or leads to, and the places in it that can be led to."""

    def __init__(self, text):
        self.loads = [unescape(a or b) for a, b in LOADED.findall(text)]
        self.links = [unescape(a) for a in LINKED.findall(text)]
        self.places = {unescape(a) for a in PLACE.findall(text)}


@pytest.fixture(scope="module")
def pages():
    return {
        path: Page(path.read_text(encoding="utf-8"))
        for path in SITE.rglob("*.html")
        if "_static" not in path.parts
    }


def broken(pages):
    """A line for each link of the site to a file or a place that is not there."""
    exists = cache(os.path.isfile)
    for path, page in pages.items():
        for address in {*page.loads, *page.links}:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (
                os.path.normpath(path.parent / unquote(parts.path)) if parts.path else str(path)
            )
            if not exists(target):
                yield f"{path.name}: {address} is no file"
            elif (
                parts.fragment
                and Path(target) in pages
                and unquote(parts.fragment) not in pages[Path(target)].places
            ):
                yield f"{path.name}: {address} is no place in it"


def test_links_lead_somewhere(pages):
    assert len(pages) > 200
    assert sum(len(page.links) for page in pages.values()) > 5000
    assert not list(broken(pages))


def test_a_broken_link_is_seen(tmp_path):
    text = (
        "<a href='b.html'></a> <a href='#nowhere'></a> <a href='#here' id=here></a> <img src=x.png>"
    )
    (tmp_path / "a.html").write_text(text)
    pages = {path: Page(path.read_text()) for path in tmp_path.glob("*.html")}
    assert {line.split(": ")[1].split(" ")[0] for line in broken(pages)} == {
        "x.png",
        "b.html",
        "#nowhere",
    }


def test_nothing_is_loaded_from_elsewhere(pages):
    loads = {address for page in pages.values() for address in page.loads}
    assert len(loads) > 20
    assert not [
        address
        for address in loads
        if urlsplit(address).scheme not in ("", "data") or urlsplit(address).netloc
    ]


@pytest.fixture
def extensions(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")


def test_an_undocumented_name_is_seen(extensions, pages):
    """The build fails then; here is the proof that it looks. (That all names are there is what the build has shown.)"""
    from public_names import undocumented

    places = set().union(
        *(page.places for path, page in pages.items() if "reference" in path.parts)
    )
    assert len([name for name in places if name.startswith("adagrad_diff.")]) > 180
    said = list(
        undocumented(
            places,
            ["adagrad_diff.minimize", "adagrad_diff.torch.L1", "adagrad_diff.torch.Forgotten"],
        )
    )
    assert len(said) == 1
    assert said[0].startswith("adagrad_diff.torch.Forgotten is public, but not in the reference: ")


def test_docstrings_are_plain_text(extensions):
    """Bars and underscores are no markup, but code, formulas and sessions are left alone."""
    pytest.importorskip("numpydoc")
    from plain_text import escaped

    lines = [
        "tol |F(x)|, `coef_` and coef_ of *args",
        ".. math:: |x|",
        "",
        "   |y|",
        "",
        "w |z|",
        ">>> a_ | b",
        "a_",
        "",
        "a_",
    ]
    said = [
        r"tol \|F(x)\|, `coef_` and coef\_ of \*args",
        *lines[1:5],
        r"w \|z\|",
        *lines[6:9],
        r"a\_",
    ]
    assert escaped(lines) == said
    assert escaped(["  V. Author", "  1. An item"]) == [r"  \V. Author", "  1. An item"]


# ------------------------------------------------------------ in a browser


class Reader(Browser):
    """A browser that may read the files of the site, and nothing else."""

    def note(self, method, params):
        if method == "Fetch.requestPaused" and params["request"]["url"].startswith(SITE.as_uri()):
            self.send("Fetch.continueRequest", {"requestId": params["requestId"]})
        else:
            super().note(method, params)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    opened = Reader(tmp_path_factory.mktemp("reader"))
    yield opened
    opened.close()


def settled(reader):
    """Until formulas are drawn, if there are any."""
    reader.run("window.MathJax?.startup?.promise?.then(() => 0)")


@pytest.mark.parametrize("name", SHOWN)
def test_pages_read_without_a_network(reader, name):
    for way, how in WAYS.items():
        reader.open(SITE / f"{name}.html", **how)
        settled(reader)
        assert reader.sent == [], (
            f"{name} asks for what is not its own"
        )  # what may be read is not kept there
        assert all(url.startswith(SITE.as_uri()) for url in reader.requests)
        assert [
            line for line in reader.logged if not line.startswith("[PST]")
        ] == []  # the theme tells what it does
        assert reader.run("document.documentElement.scrollWidth") <= how.get("width", 1000), (
            f"{name} is too wide: {way}"
        )
        lost = reader.run(
            "[...document.images].filter((i) => i.complete && !i.naturalWidth).map((i) => i.src)"
        )
        assert lost == []


def test_formulas_are_drawn(reader):
    reader.open(SITE / "guide" / "how_it_works.html")
    settled(reader)
    assert reader.run("document.querySelectorAll('mjx-container svg').length") >= 2
    assert reader.run("document.querySelectorAll('mjx-merror').length") == 0


@pytest.mark.parametrize(
    ("word", "page"),
    [("quantile", "QuantileRegressor"), ("embedding", "pytorch"), ("Ctrl-C", "auto")],
)
def test_search_finds(reader, word, page):
    reader.open(SITE / "search.html")
    reader.run(f"new Promise((done) => {{ location.search = '?q={word}'; done(0); }})")
    reader.wait("Page.loadEventFired")
    found = "[...document.querySelectorAll('#search-results li a')].map((a) => a.href)"
    settle = f"new Promise((done) => {{ let n = 0; const look = () => {{ const f = {found}; "
    settle += "if (f.length || ++n > 100) setTimeout(() => done(0), 300); else setTimeout(look, 50); }; look(); })"
    reader.run(settle)
    links = reader.run(found)
    assert any(page in link for link in links), links
    assert all(link.startswith(SITE.as_uri()) for link in links)
    assert reader.sent == []


@pytest.mark.parametrize(
    "name", ["index", "guide/how_it_works", "reference/generated/adagrad_diff.L1"]
)
def test_everybody_can_use_it(reader, name):
    """No serious violation by the checks of axe-core, by day and by night."""
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    for dark in (False, True):
        reader.open(SITE / f"{name}.html", dark=dark)
        settled(reader)
        reader.run((files(axe) / "axe.min.js").read_text(encoding="utf-8") + "; 0")
        found = reader.run(
            "axe.run({resultTypes: ['violations']}).then((r) => [r.passes.length, r.violations"
            ".filter((v) => ['serious', 'critical'].includes(v.impact))"
            ".map((v) => [v.id, v.nodes.map((n) => n.html.slice(0, 200))])])"
        )
        assert found[0] > 20
        assert found[1] == [], json.dumps(found[1], indent=1)


TUTORIALS = ("guide/scikit_learn", "guide/pytorch", "guide/jax", "guide/step_sizes")


@pytest.mark.parametrize("name", ["index", *TUTORIALS, "reference/cli"])
def test_code_is_not_cut(reader, name):
    """On a screen of 1200 pixels all of it is seen, without scrolling to the right."""
    reader.open(SITE / f"{name}.html", width=1200)
    cut = "[...document.querySelectorAll('main pre')].filter((p) => p.scrollWidth > p.clientWidth + 1)"
    assert reader.run("document.querySelectorAll('main pre').length") > 0
    assert reader.run(f"{cut}.map((p) => p.textContent.slice(0, 80))") == []


def test_every_example_has_a_picture():
    drawn = {
        path.name.partition("_00")[0] for path in (SITE / "_images").glob("sphx_glr_*_001.png")
    }
    assert drawn == {f"sphx_glr_{path.stem}" for path in (ROOT / "examples").glob("*.py")}
    assert (SITE / "gallery" / "index.html").exists()
