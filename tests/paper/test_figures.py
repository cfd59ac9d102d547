"""The paper's figures as files: what they are called, that they are the same everywhere, and legible."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import studies
from adagrad_diff.paper import figures
from adagrad_diff.study.files import write_all
from adagrad_diff.study.style import style
from figure_parts import rows, texts, words
from studies import STAND_IN, by_formula

pytestmark = pytest.mark.peer


def all_diverged(name, **about):
    """A study of which nothing is left but the starts."""
    study = by_formula(name, diverges=0.0, **about)
    return replace(study, curves=study.curves.assign(objective=study.curves.objective * np.nan))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Figure 1 of one problem as files, in a directory that was not there."""
    return figures.figure_1(
        {"hinge": by_formula()}, tmp_path_factory.mktemp("plain") / "new" / "directory"
    )


def test_files_are_what_their_names_say(tmp_path, plain):
    from PIL import Image

    paths = plain + figures.three_panels(
        by_formula("splice", diverges=0.3, **STAND_IN), tmp_path, "fig3_splice"
    )
    stems = ("fig1", "fig3_splice")
    assert [path.name for path in paths] == [
        f"{stem}.{ending}" for stem in stems for ending in ("pdf", "png", "csv")
    ]
    for path in paths:
        content = path.read_bytes()
        if path.suffix == ".pdf":
            assert content.startswith(b"%PDF-")
            assert content.rstrip().endswith(b"%%EOF")
            assert b"/Type3" not in content  # fonts that journals refuse
        elif path.suffix == ".png":
            with Image.open(path) as image:
                width = 3.35 if path.stem == "fig1" else 6.75  # one problem alone takes one column
                assert image.size[0] == pytest.approx(300 * width, abs=1)
                assert image.info["dpi"] == pytest.approx((300, 300), rel=1e-3)
        else:
            assert len(rows(path)) >= 12
    assert list(tmp_path.rglob("*.partial")) == list(plain[0].parent.rglob("*.partial")) == []


def test_the_same_study_gives_the_same_files_whatever_the_users_settings(tmp_path, plain):
    """Also in another process. Once in five runs the layout differs in its last digits, if it is not rounded."""
    program = f"""
import sys
sys.path.insert(0, {str(Path(studies.__file__).parent)!r})
import matplotlib
matplotlib.rcParams.update({{"axes.facecolor": "red", "font.size": 30.0}})
settings = lambda: {{name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name != "backend"}}
before = settings()
from studies import by_formula
from adagrad_diff.paper import figures
figures.figure_1({{"hinge": by_formula()}}, {str(tmp_path / "odd")!r})
assert settings() == before
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
    for path in plain:
        content = path.read_bytes()
        assert content == (tmp_path / "odd" / path.name).read_bytes(), path.name
        assert b"CreationDate" not in content


@pytest.mark.usefixtures("unsaved")
def test_unwritable_directory_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(
            OSError,
            match=r"Cannot write fig1.pdf, fig1.png, fig1.csv into .*file.*Choose another directory",
        ):
            figures.figure_1({"hinge": by_formula()}, out)
    assert (tmp_path / "file").read_text() == "mine"


def test_nothing_is_replaced_until_everything_is_written(tmp_path):
    (tmp_path / "a.txt").write_text("old")

    def full(path):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left on device"):
        write_all(tmp_path, {"a.txt": lambda path: path.write_text("new"), "b.txt": full})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": "old"}
    write_all(tmp_path, {"a.txt": lambda path: path.write_text("new")})
    assert (tmp_path / "a.txt").read_text() == "new"


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(ImportError, match=r"matplotlib.*adagrad-diff\[paper\]"):
        figures.draw_figure_1({"hinge": by_formula()})


@pytest.mark.parametrize(("columns", "standing_in"), [(1, False), (3, True)])
def test_everything_is_on_the_page_and_legible(columns, standing_in):
    about = STAND_IN if standing_in else {"title": "Logistic regression on splice.t"}
    names = figures.SMOOTH_PROBLEMS[:columns]
    studies = {
        name: by_formula(name, etas=np.geomspace(1e-4, 1e2, 25), n_iter=2500, diverges=1.0, **about)
        for name in names
    }
    for figure in [figures.draw_figure_2(studies)] + [
        figures.draw_three_panels(studies[names[0]])
    ] * standing_in:
        found = [t for t in texts(figure) if t.get_text() != "stand-in"]
        numbers = [
            label for ax in figure.axes for label in (*ax.get_xticklabels(), *ax.get_yticklabels())
        ]
        assert min(t.get_fontsize() for t in (*found, *numbers)) >= 7
        with style():
            said = [t.get_window_extent().padded(-1) for t in found]
            axes = [axis.get_tightbbox() for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
            panels = [ax.get_window_extent() for ax in figure.axes]
            keys = [legend.get_window_extent() for legend in figure.legends]
        assert len(keys) == 1  # one for the figure, outside the panels
        for box in (*said, *filter(None, axes), *keys):
            assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1
            assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1
        for box in (*said, *keys):
            assert not any(box.overlaps(panel) for panel in panels)
        for boxes in (
            said,
            [box for box in axes[::2] if box],
        ):  # words, and the numbers of neighbouring panels
            assert not any(
                box.overlaps(other) for k, box in enumerate(boxes) for other in boxes[k + 1 :]
            )


def test_what_is_hardly_there():
    """Everything diverged at once, or there is one start, or one iteration."""
    nothing = all_diverged("hinge")
    for figure in (figures.draw_figure_1({"hinge": nothing}), figures.draw_three_panels(nothing)):
        assert "Triangles" in words(figure)
    for seeds, n_iter in ((10, 20), (1, 1)):
        study = by_formula(seeds=seeds, n_iter=n_iter)
        assert f"{seeds} start{'s' * (seeds > 1)}," in words(
            figures.draw_figure_1({"hinge": study})
        )
