"""Comparisons over step sizes find what plain loops find; failures, resuming; tables, figures."""

import json
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import linprog

from adagrad_diff import (
    FISTA,
    L1,
    LAD,
    AdaGrad,
    AdaGradDiff,
    Adam,
    Box,
    Constant,
    DoG,
    Hinge,
    Interrupted,
    KernelSVMDual,
    Multinomial,
    Nuclear,
    Rule,
    Simplex,
    Squared,
    minimize,
    named,
    profile,
    sensitivity,
)
from adagrad_diff.experiments import convex
from adagrad_diff.experiments.scores import LEVELS
from adagrad_diff.rules import __all__ as RULES
from looping import looped
from naive_scores import mean_gaps, naive_scores

pytestmark = pytest.mark.peer

rng = np.random.default_rng(0)
A = rng.standard_normal((40, 4))
B = A[:, 0] - A[:, 1] + 0.1 * rng.standard_normal(40)
LOSS, PENALTY = LAD(A, B), L1(0.02)
ETAS = [1e-3, 1e-2, 0.1, 1.0, 10.0]
MAKERS = {"AdaGradDiff": AdaGradDiff, "Adam": Adam, "DoG": lambda eta: DoG()}


@dataclass(frozen=True, eq=False)
class Mine(Rule):
    """A rule of the user's own."""

    published = 0.3

    def init(self, x, g):
        return {"total": np.zeros_like(g)}

    def update(self, memory, n, x, g):
        total = memory["total"] + np.abs(g)
        step = self.step_size(n) / (self.eps + np.sqrt(total))
        return {"total": total}, x - step * g, step


@pytest.fixture(scope="module")
def found():
    return sensitivity(
        LOSS, PENALTY, [AdaGradDiff, Adam, DoG], ETAS, rng.standard_normal((4, 3)), 60
    )


def optimum():
    """min mean |b - A x| + 0.02 |x|_1 by HiGHS: A (p - q) + t - s = b."""
    cost = np.concatenate([np.full(8, 0.02), np.full(80, 1 / 40)])
    return linprog(cost, A_eq=np.hstack([A, -A, np.eye(40), -np.eye(40)]), b_eq=B).fun


def test_plain_loops_find_the_same(found):
    starts = found_starts()
    f_star, at_zero = optimum(), np.abs(B).mean()
    assert found.f_star.how == "certified"
    assert found.f_star.value == pytest.approx(f_star, rel=1e-8)
    assert found.scale == pytest.approx(at_zero - f_star, rel=1e-8)
    gaps = {
        rule: [
            mean_gaps(LOSS, PENALTY, make, eta, starts, 60, found.f_star.value, found.scale)
            for eta in ETAS
        ]
        for rule, make in MAKERS.items()
    }
    published = mean_gaps(LOSS, PENALTY, Adam, 1e-3, starts, 60, found.f_star.value, found.scale)
    for iterate in ("last", "best", "average"):
        ours = {rule: [gap[iterate] for gap in of_rule] for rule, of_rule in gaps.items()}
        best = min(map(min, ours.values()))
        for rule, (width, eta, gap) in naive_scores(ETAS, ours, found.floor).items():
            score = found.score(rule, iterate)
            assert score["decades_10x"] == pytest.approx(width, abs=2e-3), (rule, iterate)
            assert score["best_gap"] == pytest.approx(gap, rel=1e-6)
            assert score["best_eta"] == (None if rule == "DoG" else eta)
            assert score["free"] == (rule == "DoG")
        assert found.score("Adam", iterate)["default_gap"] == pytest.approx(
            published[iterate], rel=1e-6
        )
        assert found.score("Adam", iterate)["regret"] == pytest.approx(
            published[iterate] / best, rel=1e-6
        )
        assert found.score("DoG", iterate)["regret"] == pytest.approx(
            ours["DoG"][0] / best, rel=1e-6
        )
        assert found.score("AdaGradDiff", iterate)["regret"] is None


def found_starts():
    """The starts of the fixture, drawn again."""
    fresh = np.random.default_rng(0)
    fresh.standard_normal((40, 4)), fresh.standard_normal(40)
    return fresh.standard_normal((4, 3))


def test_curves_are_those_of_single_runs(found):
    content = found.content()
    runs = [minimize(LOSS, x0, PENALTY, AdaGradDiff(0.1), max_iter=60) for x0 in found_starts().T]
    gaps = np.array([(r.history.objective - found.f_star.value) / found.scale for r in runs])
    rows = np.array(content["iterations"]) - 1
    run = next(run for run in content["runs"] if (run["rule"], run["eta"]) == ("AdaGradDiff", 0.1))
    for name, function in (("median", np.median), ("low", np.min), ("high", np.max)):
        np.testing.assert_allclose(run["curve"][name], function(gaps, axis=0)[rows], rtol=0.006)
    steps = np.mean([r.history.mean_step for r in runs], axis=0)
    np.testing.assert_allclose(run["step"], steps[rows], rtol=0.006)
    np.testing.assert_allclose(run["last"], gaps[:, -1], rtol=1e-4)
    assert content["iterations"][-1] == 60


def test_a_published_step_size_outside_the_grid_is_run():
    small = sensitivity(LOSS, PENALTY, [Adam], [0.1, 1.0], 2, 30)
    inside = sensitivity(LOSS, PENALTY, [Adam], [1e-3, 0.1, 1.0], 2, 30)
    assert small.score("Adam")["default_eta"] == 1e-3
    assert small.score("Adam")["default_gap"] == pytest.approx(inside.score("Adam")["default_gap"])
    assert small.etas.tolist() == [0.1, 1.0]


def test_every_rule_of_the_ring_by_default():
    everything = sensitivity(LOSS, PENALTY, n_iter=5, starts=1)
    assert set(everything.rules) == {*RULES} - {"Rule"}
    assert everything.rules[0] == "AdaGradDiff"
    assert everything.etas.size == 15
    assert np.log10(everything.etas[-1] / everything.etas[0]) == pytest.approx(7)
    free = {
        rule
        for rule, is_free in zip(everything.rules, everything.data.free.values, strict=True)
        if is_free
    }
    assert free == {"DoG", "FISTA", "ACFGM", "AdaPG", "Prodigy", "DAdaptation", "FreeAdaGradDiff"}
    json.dumps(everything.content(), allow_nan=False)


def test_one_step_size():
    one = sensitivity(LOSS, PENALTY, [AdaGradDiff, DoG], [0.1], 2, 50)
    assert one.score("AdaGradDiff")["decades_10x"] == 0.0
    assert one.score("AdaGradDiff")["best_eta"] == 0.1
    assert "DoG" in str(one)
    one.plot()
    json.dumps(one.content(), allow_nan=False)


def test_all_runs_diverge():
    explosive = sensitivity(Squared(1e3 * A, B), None, [Constant], [1e3, 1e4], 2, 100)
    assert np.isinf(explosive.gap("last").values).all()
    assert np.isinf(explosive.gap("average").values).all()  # of what there was before the end
    assert np.isfinite(explosive.gap("best").values).all()
    score = explosive.score("Constant")
    assert (score["best_gap"], score["best_eta"], score["decades_10x"], score["regret"]) == (
        None,
        None,
        0.0,
        None,
    )
    assert explosive.verdict == [
        "No run has ended well: every rule failed at every step size, from one start at least."
    ]
    content = json.loads(json.dumps(explosive.content(), allow_nan=False))
    assert all(run["failed"] and run["last"] == [None, None] for run in content["runs"])
    assert "Constant" in str(explosive)
    explosive.plot()
    by_protocol = sensitivity(
        Squared(1e3 * A, B), None, [Constant], [1e3], 2, 100, f_star="protocol"
    )
    assert by_protocol.f_star.sentence.endswith("All runs failed.")


def test_one_start_that_fails_is_enough():
    """A mean of the others would flatter the rule."""

    def steep(x):
        with np.errstate(all="ignore"):
            return np.where(np.abs(x) > 5, np.nan, 0.5 * x**2).sum(axis=0), x

    starts = np.array([[1.0, 4.9]])
    mixed = sensitivity(steep, None, {"gd": Constant}, [0.1, 2.03], starts, 50, f_star=0.0)
    gaps = mixed.gap("last").sel(rule="gd").values
    assert np.isfinite(gaps).tolist() == [[True, True], [True, False]]
    assert mixed.score("gd")["best_eta"] == 0.1
    run = next(run for run in mixed.content()["runs"] if run["eta"] == 2.03)
    assert run["failed"]
    assert run["last"][1] is None
    assert run["best"][1] is not None


def test_nothing_but_nan():
    with pytest.raises(ValueError, match="The objective is not finite at any of the starts"):
        sensitivity(
            lambda x: (np.full(x.shape[1:], np.nan), x), None, [AdaGrad], [0.1], np.ones((2, 2)), 5
        )


def test_a_given_optimum(found):
    starts = found_starts()
    below = sensitivity(LOSS, PENALTY, [AdaGradDiff], ETAS, starts, 60, f_star=-1.0)
    assert (below.f_star.value, below.f_star.how) == (-1.0, "given")
    assert below.score("AdaGradDiff")["best_gap"] > 0.5
    above = sensitivity(LOSS, PENALTY, [AdaGradDiff], ETAS, starts, 60, f_star=100.0)
    assert above.f_star.value == pytest.approx(above.data.objective_best.values.min())
    assert "100 was given, but a run has reached" in above.f_star.sentence
    assert (above.gap("last").values >= 0).all()
    for wrong in ("proven", float("nan"), [1.0]):
        with pytest.raises(ValueError, match="The 'f_star' parameter of sensitivity must be"):
            sensitivity(LOSS, PENALTY, [AdaGrad], ETAS, 1, 5, f_star=wrong)


def test_the_protocol(found):
    """The smallest value of all, the best run having gone on ten times as long."""
    starts = found_starts()
    ours = sensitivity(LOSS, PENALTY, [AdaGradDiff, Adam], ETAS, starts, 60, f_star="protocol")
    final = {
        (rule, eta): np.mean(
            [minimize(LOSS, x0, PENALTY, MAKERS[rule](eta), max_iter=60).fun for x0 in starts.T]
        )
        for rule in ("AdaGradDiff", "Adam")
        for eta in ETAS
    }
    rule, eta = min(final, key=final.get)
    longer = [minimize(LOSS, x0, PENALTY, MAKERS[rule](eta), max_iter=600) for x0 in starts.T]
    assert ours.f_star.value == pytest.approx(min(run.fun_best for run in longer), rel=1e-10)
    assert ours.f_star.sentence.endswith(
        f"{rule} with eta = {eta:.3g} having run 10 times as long."
    )
    assert ours.f_star.value >= found.f_star.value


def test_what_cannot_be_proven():
    bowl = lambda x: (0.5 * np.sum(x**2, axis=0), x)
    starts = np.ones((3, 2))
    ours = sensitivity(bowl, None, [AdaGradDiff, FISTA], None, starts, 50)
    assert ours.f_star.how == "protocol"
    assert ours.unit == "F(start) - F_star"
    assert (ours.etas[0], ours.etas[-1]) == (1e-4, 1e3)
    with pytest.raises(ValueError, match="'f_star' cannot be \"certified\" here"):
        sensitivity(bowl, None, [AdaGradDiff], ETAS, starts, 5, f_star="certified")
    with pytest.raises(ValueError, match="'starts' must be an array"):
        sensitivity(bowl, None, [AdaGradDiff], ETAS, 3, 5)


def test_rules_of_all_kinds():
    rules = {
        "mine": Mine,
        "slow": Adam(beta1=0.5),
        "by name": "AdaGrad",
        "far": DoG(gamma=2.0),
        "f": lambda eta: Mine(2 * eta),
    }
    ours = sensitivity(LOSS, PENALTY, rules, ETAS, 2, 40)
    assert ours.rules == list(rules)
    assert ours.data.free.values.tolist() == [False, False, False, True, False]
    assert ours.score("mine")["default_eta"] == 0.3
    x0s = np.zeros(4)
    for name, rule in (
        ("mine", Mine(0.1)),
        ("slow", Adam(0.1, beta1=0.5)),
        ("far", DoG(gamma=2.0)),
        ("f", Mine(0.2)),
    ):
        alone = minimize(LOSS, x0s, PENALTY, rule, max_iter=40).fun
        mine = ours.data.objective.sel(rule=name, eta=0.1, seed=0).values[-1]
        assert mine == pytest.approx(alone, rel=1e-10), name
    assert sensitivity(LOSS, PENALTY, AdaGrad, [0.1], 1, 5).rules == ["AdaGrad"]
    assert sensitivity(LOSS, PENALTY, "AdaGrad", [0.1], 1, 5).rules == ["AdaGrad"]


@looped(
    ("rules", "error", "text"),
    [
        ([], ValueError, "'rules' is empty"),
        (["AdaGard"], ValueError, "'AdaGard', which is not one of AdaGradDiff, AdamDiff"),
        ([AdaGrad, "AdaGrad"], ValueError, "has a name twice"),
        ([3], TypeError, "'rules' must be rules, rule classes or functions"),
        ({"none": lambda eta: eta}, TypeError, "none made 1.0"),
    ],
)
def test_rules_that_are_none(rules, error, text):
    with pytest.raises(error, match=text):
        sensitivity(LOSS, PENALTY, rules, ETAS, 1, 5)


@looped("etas", [[], [0.1, 0.1], [-1.0], [np.nan], ["a"]])
def test_step_sizes_that_are_none(etas):
    with pytest.raises(ValueError, match=r"etas"):
        sensitivity(LOSS, PENALTY, [AdaGrad], etas, 1, 5)


def test_problems_of_all_kinds():
    """Kernels, classes, intercepts, sets that do not hold zero, single precision."""
    labels = np.sign(B)
    dual = KernelSVMDual(np.exp(-np.abs(np.subtract.outer(B, B))), labels, lam=0.1)
    cases = {
        "kernel": (dual, dual.box()),
        "classes": (Multinomial(A, np.digitize(B, [-0.5, 0.5])), L1(0.01)),
        "intercept": (Hinge(A, labels, intercept=True), L1(0.01)),
        "simplex": (Squared(A, B), Simplex()),
        "box": (Squared(A, B), Box(1.0, 2.0)),
        "single": (LAD(A.astype(np.float32), B.astype(np.float32)), L1(0.01)),
    }
    for name, (loss, penalty) in cases.items():
        ours = sensitivity(loss, penalty, [AdaGradDiff, DoG], [0.01, 0.1], 2, 30)
        assert np.isfinite(ours.data.objective_start.values).all(), name
        assert ours.f_star.how == "certified", (name, ours.f_star)
        assert np.isfinite(ours.score("AdaGradDiff")["best_gap"]), name
        json.dumps(ours.content(), allow_nan=False)


def test_penalties_that_want_one_weight_for_all():
    loss, penalty = Multinomial(A, np.digitize(B, [-0.5, 0.5])), Nuclear(0.01, (4, 3))
    ours = sensitivity(loss, penalty, n_iter=5, starts=1, etas=[0.1])
    assert {"AdaGradDiff", "Constant", "FISTA"} <= set(ours.rules)
    assert "Prodigy" not in ours.rules
    alone = minimize(
        loss, np.zeros((4, 3)), penalty, AdaGradDiff(0.1, blocks="all"), max_iter=5
    ).fun
    assert ours.data.objective.sel(rule="AdaGradDiff").values[0, 0, -1] == pytest.approx(alone)


# ---------------------------------------------------------------- what a comparison hands out

IMG = "<img src=x onerror=alert(1)>|`*"
ROWS = {"AdaGradDiff": AdaGradDiff, IMG: AdaGrad, "Adam": Adam, "DoG": DoG}


@pytest.fixture(scope="module")
def four():
    return sensitivity(LOSS, PENALTY, ROWS, ETAS, 2, 60)


def test_tables(four):
    text = str(four)
    assert text.splitlines()[0].split()[:2] == ["rule", "within"]
    assert [line.split()[0] for line in text.splitlines()[2:6]].count("DoG") == 1
    assert four.verdict[0][:40] in text.replace("\n", " ")
    assert "The optimum is certified" in text
    table = four.markdown("average")
    assert table.count("\n") == 2 + 4
    columns = {line.count("|") - line.count(r"\|") for line in table.splitlines()}
    assert len(columns) == 1  # no name makes a column
    assert "<img" not in table.replace(r"\<", "")
    frame = four.table()
    assert len(frame) == 4 * 3
    last = four.table("last").set_index("rule")
    assert last.loc["Adam", "default_eta"] == 1e-3
    for name in ("decades_below_1e-1", "at_edge_10x", "sensitivity", "expected_best_4"):
        assert last.loc["AdaGradDiff", name] == four.score("AdaGradDiff")[name]


def test_the_data_set_and_the_figure(four):
    data = four.to_dataset()
    assert data.gap_last.dims == ("rule", "eta", "seed")
    np.testing.assert_allclose(data.gap.isel(iteration=-1), data.gap_last)
    relative = (data.objective.isel(iteration=-1) - data.attrs["f_star"]) / data.attrs["scale"]
    np.testing.assert_allclose(relative, data.gap_last)
    assert (data.gap_best <= data.gap_last).all()
    dog = data.gap_last.sel(rule="DoG")
    assert (dog == dog.isel(eta=0)).all()
    figure = four.plot("average")
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    expected = four.gap("average").sel(rule="Adam").mean("seed")
    np.testing.assert_allclose(lines["Adam"].get_ydata(), expected)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == four.rules
    plain = replace(four, scale=1.0, unit="1", gap_name="gap")
    for one, name in ((four, "relative gap"), (plain, "gap")):
        assert one.content()["gap_name"] == name
        assert one.plot().axes[0].get_ylabel() == f"{name}, last iterate"


def test_sentences(four):
    """The headline has the widest range; no sentence compares two empty ranges."""
    tuned = [one for one in four.ranked() if not one["free"]]
    first, second, *others = four.verdict
    assert re.fullmatch(
        rf"{re.escape(tuned[0]['rule'])} is within 10 times the smallest gap over (at least )?"
        rf"{tuned[0]['decades_10x']:.1f} of 4\.0 decades of step sizes, .+ over [\d.]+\.",
        first,
    )
    assert (
        second
        == f"Without tuning, take {tuned[0]['rule']} with eta near {tuned[0]['best_eta']:.2g}."
    )
    assert any(text.startswith("The smallest gap after 60 iterations is ") for text in others)
    both = sensitivity(LOSS, PENALTY, [AdaGradDiff, AdaGrad], ETAS, 1, 30)
    widths = [both.score(rule)["decades_below_1e-1"] for rule in both.rules]
    levels = [
        name for name in LEVELS if all(both.score(rule)[f"decades_{name}"] for rule in both.rules)
    ]
    assert levels == ["below_1e-1"]
    assert both.verdict[2] == (
        f"AdaGradDiff reaches a gap of 0.1 over {widths[0]:.1f} decades, AdaGrad over {widths[1]:.1f} decades."
    )
    far = sensitivity(LOSS, PENALTY, [AdaGradDiff, AdaGrad], ETAS, 1, 1)
    assert "Neither AdaGradDiff nor AdaGrad reaches a gap of 0.1." in far.verdict


def test_wrong_names(four):
    with pytest.raises(ValueError, match="'rule' parameter of score"):
        four.score("Nobody")
    with pytest.raises(ValueError, match="'iterate' parameter of gap"):
        four.gap("first")


def naive_profile(found, iterate, factor):
    """By rule: for how many (problem, eta) the gap is within a factor of the problem's best."""
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


def test_profiles_of_nothing(four):
    for wrong in ([], [1]):
        with pytest.raises(TypeError, match="'found' must be a list"):
            profile(wrong)
    other = sensitivity(LOSS, PENALTY, [AdaGrad], [0.1], 1, 5)
    with pytest.raises(ValueError, match="'found' must have the same rules everywhere"):
        profile([four, other])
    with pytest.raises(ValueError, match="'eta' parameter of profile"):
        profile([four], eta="worst")


# ---------------------------------------------------------------- stopped and continued


def bits(found):
    return {name: array.values.tobytes() for name, array in found.data.variables.items()}


def test_a_comparison_resumes(tmp_path, monkeypatch):
    """Ctrl-C after the first stage; then the same call, which repeats nothing complete."""
    options = {"rules": [AdaGradDiff, Adam, DoG], "starts": 2, "n_iter": 40, "n_jobs": 1}
    whole = sensitivity(LOSS, PENALTY, **options)
    run, stages = convex.sweep, []

    def stopped(*args, **kwargs):
        stages.append(kwargs["label"])
        if len(stages) == 2:
            raise Interrupted("The sweep was interrupted.", "what there is")
        return run(*args, **kwargs)

    monkeypatch.setattr(convex, "sweep", stopped)
    with pytest.raises(Interrupted, match="while it ran rules without a step size") as caught:
        sensitivity(LOSS, PENALTY, **options, checkpoint=tmp_path / "here")
    assert caught.value.result == "what there is"
    assert stages == ["rules with a step size", "rules without a step size"]
    chunks = sorted((tmp_path / "here" / "rules-with-a-step-size").glob("chunk-*.npz"))
    before = [path.stat().st_mtime_ns for path in chunks]
    monkeypatch.setattr(convex, "sweep", run)
    again = sensitivity(LOSS, PENALTY, **options, checkpoint=tmp_path / "here")
    assert bits(again) == bits(whole)
    # The certificate is computed again, and may differ by rounding.
    assert again.f_star.value == pytest.approx(whole.f_star.value, rel=1e-14)
    assert [path.stat().st_mtime_ns for path in chunks] == before


def test_checkpoints_of_others(tmp_path):
    sensitivity(LOSS, PENALTY, [AdaGrad], ETAS, 1, 5, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="belongs to another problem: penalty"):
        sensitivity(LOSS, L1(0.5), [AdaGrad], ETAS, 1, 5, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="belongs to another sweep, for etas"):
        sensitivity(LOSS, PENALTY, [AdaGrad], [0.1], 1, 5, checkpoint=tmp_path)

    def bowl(x):
        return 0.5 * np.sum(x**2, axis=0), x

    starts = np.ones((2, 1))
    with pytest.raises(ValueError, match="'checkpoint' needs a name for loss"):
        sensitivity(bowl, None, [AdaGrad], ETAS, starts, 5, checkpoint=tmp_path / "a")
    fine = named("bowl", bowl)
    sensitivity(fine, None, [AdaGrad], ETAS, starts, 5, checkpoint=tmp_path / "b")
