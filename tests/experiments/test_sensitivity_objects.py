"""What a comparison hands out: tables, figures, data sets, pages, profiles; and that it goes on where it was stopped."""

import html
import json
import re
import signal

import numpy as np
import pytest

from adagrad_diff import (
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    Adam,
    Constant,
    DoG,
    Interrupted,
    Sensitivity,
    Squared,
    named,
    profile,
    sensitivity,
)
from adagrad_diff.study import _optimum, _runs
from adagrad_diff.study.scores import scores

pytestmark = pytest.mark.peer

rng = np.random.default_rng(0)
A = rng.standard_normal((40, 4))
B = A[:, 0] - A[:, 1] + 0.1 * rng.standard_normal(40)
LOSS, PENALTY, ETAS = LAD(A, B), L1(0.02), [1e-3, 1e-2, 0.1, 1.0, 10.0]
KEYS = {
    "title",
    "created",
    "version",
    "command",
    "about",
    "n_iter",
    "iterations",
    "f_star",
    "starts",
    "etas",
    "rules",
}
KEYS |= {"runs", "scores", "verdict", "gap_name"}
IMG = "<img src=x onerror=alert(1)>|`*"


@pytest.fixture(scope="module")
def found():
    return sensitivity(
        LOSS,
        PENALTY,
        {"AdaGradDiff": AdaGradDiff, IMG: AdaGrad, "Adam": Adam, "DoG": DoG},
        ETAS,
        2,
        60,
    )


def test_the_content_is_what_the_page_wants(found):
    content = json.loads(json.dumps(found.content(), allow_nan=False))
    assert set(content) == KEYS
    assert content["etas"] == ETAS
    assert [rule["name"] for rule in content["rules"]] == ["AdaGradDiff", IMG, "Adam", "DoG"]
    assert all(
        {"name", "free", "published", "color", "dash", "marker"} <= set(rule)
        for rule in content["rules"]
    )
    assert len(content["runs"]) == 3 * len(ETAS) + 1
    assert [run["eta"] for run in content["runs"] if run["rule"] == "DoG"] == [None]
    for run in content["runs"]:
        assert len(run["step"]) == len(run["curve"]["median"]) == len(content["iterations"])
        assert all(len(run[name]) == content["starts"] == 2 for name in ("last", "best", "average"))
    assert len(content["scores"]) == 4 * 3
    assert content["f_star"]["how"] == "certified"
    assert {"Samples", "Features", "Data", "Target", "Loss", "Penalty", "Gaps"} == {
        label for label, _ in content["about"]
    }
    own = found.content(
        title="Mine", about=[("Data", "a table")], command=["adagrad-diff compare table.csv"]
    )
    assert (own["title"], own["about"][0], own["command"]) == (
        "Mine",
        ["Data", "a table"],
        ["adagrad-diff compare table.csv"],
    )


def test_the_page(found, tmp_path):
    pytest.importorskip("jinja2")
    path = found.report(tmp_path / "report.html", title="How wide?")
    text = path.read_text(encoding="utf-8")
    assert "<title>How wide?</title>" in text
    assert "<img" not in text
    assert html.escape(found.verdict[0], quote=False) in text


def test_the_table_for_people(found):
    text = str(found)
    assert text.splitlines()[0].split()[:2] == ["rule", "within"]
    assert [line.split()[0] for line in text.splitlines()[2:6]].count("DoG") == 1
    assert found.verdict[0][:40] in text.replace("\n", " ")
    assert "The optimum is proven" in text
    table = found.markdown("average")
    assert table.count("\n") == 2 + 4
    assert (
        len({line.count("|") - line.count(r"\|") for line in table.splitlines()}) == 1
    )  # no name makes a column
    assert "<img" not in table.replace(r"\<", "")


def test_the_table_for_pandas(found):
    frame = found.table()
    assert frame.shape[0] == 12
    assert {"rule", "iterate", "decades_10x", "below_1e-2", "best_eta", "regret", "at_edge"} <= set(
        frame.columns
    )
    last = found.table("last").set_index("rule")
    assert last.loc["Adam", "default_eta"] == 1e-3
    assert (
        last.loc["AdaGradDiff", "below_1e-1"] == found.score("AdaGradDiff")["decades_below"]["1e-1"]
    )


def test_the_data_set(found):
    data = found.to_dataset()
    assert data.gap_last.dims == ("rule", "eta", "seed")
    np.testing.assert_allclose(data.gap.isel(iteration=-1), data.gap_last)
    relative = (data.objective.isel(iteration=-1) - data.attrs["f_star"]) / data.attrs["scale"]
    np.testing.assert_allclose(relative, data.gap_last)
    assert (data.gap_best <= data.gap_last).all()
    dog = data.gap_last.sel(rule="DoG")
    assert (dog == dog.isel(eta=0)).all()


def test_the_figure(found):
    figure = found.plot("average")
    (axes,) = figure.axes
    lines = {
        line.get_label(): line for line in axes.lines if not str(line.get_label()).startswith("_")
    }
    assert {"AdaGradDiff", IMG, "Adam"} <= set(lines)
    np.testing.assert_allclose(
        lines["Adam"].get_ydata(), found.gap("average").sel(rule="Adam").mean("seed")
    )
    assert [text.get_text() for text in figure.legends[0].get_texts()] == found.rules


def test_sentences(found):
    first, _, second, *_ = found.verdict
    widths = {
        score["rule"]: score["decades_10x"]
        for score in found.scores
        if score["iterate"] == "last" and not score["free"]
    }
    widest = max(widths, key=widths.get)
    assert first.startswith(f"{widest} is within 10 times the smallest gap over ")
    assert f"{widths[widest]:.1f} of 4.0 decades" in first
    assert second.startswith("The smallest gap after 60 iterations is ")
    assert any(
        "At published step sizes" in sentence and "Adam (eta = 0.001)" in sentence
        for sentence in found.verdict
    )
    both = sensitivity(LOSS, PENALTY, [AdaGradDiff, AdaGrad], ETAS, 1, 30)
    assert re.match(
        r"AdaGradDiff is that near over .* decades, AdaGrad over .*; below a gap of 1e-2",
        both.verdict[2],
    )
    assert re.match(r"What to take here: \w+ with eta near [\d.]+\.$", both.verdict[1])


def test_wrong_names(found):
    with pytest.raises(ValueError, match="'rule' parameter of score"):
        found.score("Nobody")
    with pytest.raises(ValueError, match="'iterate' parameter of gap"):
        found.gap("first")


def test_scores_with_a_floor():
    """Below the floor gaps are not told apart, so a gap of zero is within ten times of everything there."""
    gaps = {"last": np.array([[0.0, 5e-10, 1.0], [1e-9, 5e-9, 1.0]])}
    none = np.full(2, np.nan)
    first, second = scores(
        ["a", "b"],
        np.array([1.0, 10.0, 100.0]),
        gaps,
        {"last": none},
        np.zeros(2, bool),
        none,
        1e-9,
    )
    assert (first["best_gap"], second["best_gap"]) == (0.0, 1e-9)
    assert first["decades_10x"] == pytest.approx(1 + 1 / 9)  # from 1e-9, and not from 5e-10, to 1
    assert second["decades_10x"] == pytest.approx(1 + np.log10(2) / np.log10(2e8))
    assert first["at_edge"]
    assert second["at_edge"]
    assert first["regret"] is None


def naive_profile(found, iterate, factor):
    """By rule: in how many of all (problem, eta) the gap is within a factor of the problem's best."""
    counts, total = dict.fromkeys(found[0].rules, 0), 0
    for one in found:
        means = {
            rule: [max(float(g), one.floor) for g in one.gap(iterate).sel(rule=rule).mean("seed")]
            for rule in one.rules
        }
        defaults = [float(g) for g in one.default_gap(iterate).mean("seed") if np.isfinite(g)]
        best = min([*(min(gaps) for gaps in means.values()), *defaults])
        for rule, gaps in means.items():
            counts[rule] += sum(gap <= factor * best for gap in gaps)
        total += len(one.etas)
    return {rule: count / total for rule, count in counts.items()}


def test_profiles():
    several = [
        sensitivity(LAD(A, B), L1(lam), [AdaGradDiff, Adam, DoG, Constant], ETAS, 1, n_iter)
        for lam, n_iter in ((0.02, 30), (0.1, 60))
    ]
    several.append(
        sensitivity(Squared(1e3 * A, B), None, [AdaGradDiff, Adam, DoG, Constant], ETAS, 1, 30)
    )
    for iterate in ("last", "best", "average"):
        shares = profile(several, iterate=iterate, factors=[1.0, 3.0, 100.0])
        for factor in (1.0, 3.0, 100.0):
            assert dict(
                zip(shares.rule.values, shares.sel(factor=factor).values, strict=True)
            ) == pytest.approx(naive_profile(several, iterate, factor))
    best = profile(several, eta="best")
    assert (np.diff(best.values, axis=1) >= 0).all()
    assert float(best.sel(factor=1.0).sum()) >= 1.0  # somebody is best on every problem
    assert (
        profile(several, eta="default").sel(rule="AdaGradDiff") == 0
    ).all()  # which has no default
    assert (
        profile(several, factors=[1e300]).sel(rule="Constant") < 1
    ).all()  # where it fails it is within no factor


def test_profiles_of_nothing(found):
    for wrong in ([], [1]):
        with pytest.raises(TypeError, match="'found' must be a list"):
            profile(wrong)
    other = sensitivity(LOSS, PENALTY, [AdaGrad], [0.1], 1, 5)
    with pytest.raises(ValueError, match="'found' must have the same rules everywhere"):
        profile([found, other])
    with pytest.raises(ValueError, match="'eta' parameter of profile"):
        profile([found], eta="worst")


def bits(found):
    return (
        {name: array.values.tobytes() for name, array in found.data.variables.items()},
        found.f_star,
        found.scale,
    )


def test_a_comparison_goes_on(tmp_path, monkeypatch, default_handler):
    """Ctrl-C after the first stage; then the same call, which computes neither the optimum nor that stage again."""
    options = {"rules": [AdaGradDiff, Adam, DoG], "starts": 2, "n_iter": 40, "n_jobs": 1}
    whole = sensitivity(LOSS, PENALTY, **options)
    run, stages = _runs.sweep, []

    def stopped(*args, **kwargs):
        stages.append(kwargs["label"])
        if len(stages) == 2:
            signal.raise_signal(signal.SIGINT)
        return run(*args, **kwargs)

    monkeypatch.setattr(_runs, "sweep", stopped)
    with pytest.raises(KeyboardInterrupt):
        sensitivity(LOSS, PENALTY, **options, checkpoint=tmp_path / "here")
    assert stages == ["rules with a step size", "rules without a step size"]
    kept = sorted((tmp_path / "here" / "stage-rules-with-a-step-size").glob("chunk-*.npz"))
    before = [path.stat().st_mtime_ns for path in kept]
    monkeypatch.setattr(_runs, "sweep", run)
    monkeypatch.setattr(_optimum, "minimize", None)
    again = sensitivity(LOSS, PENALTY, **options, checkpoint=tmp_path / "here")
    assert bits(again) == bits(whole)
    assert [path.stat().st_mtime_ns for path in kept] == before


def test_an_interrupted_sweep_says_so(tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise Interrupted("The sweep was interrupted.", "what there is")

    monkeypatch.setattr(_runs, "sweep", interrupted)
    with pytest.raises(
        Interrupted, match=r"rules with a step size\. The same call begins anew; with a directory"
    ) as caught:
        sensitivity(LOSS, PENALTY, [AdaGrad], ETAS, 1, 5)
    assert caught.value.result == "what there is"
    with pytest.raises(Interrupted, match="The same call goes on"):
        sensitivity(LOSS, PENALTY, [AdaGrad], ETAS, 1, 5, checkpoint=tmp_path / "here")


def test_checkpoints_of_others(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(
        ValueError, match=r"one that sensitivity has written\. .* holds 'letter.txt'"
    ):
        sensitivity(LOSS, PENALTY, [AdaGrad], ETAS, 1, 5, checkpoint=tmp_path)
    ours = tmp_path / "ours"
    sensitivity(LOSS, PENALTY, [AdaGrad], ETAS, 1, 5, checkpoint=ours)
    with pytest.raises(ValueError, match="belongs to another comparison: penalty"):
        sensitivity(LOSS, L1(0.5), [AdaGrad], ETAS, 1, 5, checkpoint=ours)
    with pytest.raises(ValueError, match="belongs to another sweep, for etas"):
        sensitivity(LOSS, PENALTY, [AdaGrad], [0.1], 1, 5, checkpoint=ours)
    (ours / "optimum.json").write_text("{")
    with pytest.raises(ValueError, match=r"optimum.json cannot be used: .* Delete it"):
        sensitivity(LOSS, PENALTY, [AdaGrad], ETAS, 1, 5, checkpoint=ours)


def test_functions_need_names_in_a_checkpoint(tmp_path):
    def bowl(x):
        return 0.5 * np.sum(x**2, axis=0), x

    with pytest.raises(ValueError, match="'checkpoint' needs a name for loss"):
        sensitivity(bowl, None, [AdaGrad], ETAS, np.ones((2, 1)), 5, checkpoint=tmp_path / "a")
    fine = sensitivity(
        named("bowl", bowl), None, [AdaGrad], ETAS, np.ones((2, 1)), 5, checkpoint=tmp_path / "b"
    )
    assert isinstance(fine, Sensitivity)


def test_gaps_are_called_what_they_are(found):
    """Relative ones, or F - F_star as on the pages of `reproduce`."""
    from dataclasses import replace

    plain = replace(found, scale=1.0, unit="1")
    for study, name in ((found, "relative gap"), (plain, "gap")):
        assert study.gap_name == study.content()["gap_name"] == name
        assert study.plot().axes[0].get_ylabel() == f"{name}, last iterate"
    assert dict(map(tuple, plain.content()["about"]))["Gaps"] == "objective - optimum"
