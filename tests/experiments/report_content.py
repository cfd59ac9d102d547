"""Contents of report pages: made up, but with the shapes that real studies have."""

import numpy as np

from adagrad_diff.experiments.style import style_of

TUNED = (
    "AdaGradDiff",
    "AdaGrad",
    "AdamDiff",
    "Adam",
    "RMSDiff",
    "RMSProp",
    "AdaGradNorm",
    "DelayedAdaGrad",
    "DualAveraging",
)
TUNED += ("KATE", "Constant", "AdaDelta")
FREE = ("DoG", "DAdaptation", "Prodigy", "AdaPG", "FISTA")
LEVELS = ("1e-2", "1e-4")


def gaps_of(rule, x, n, luck):
    """Gaps after n iterations (rows: starts): slow where the step size is small, a floor or the end where it is large."""
    slow, wild = max(0.0, rule["place"] - x), max(0.0, x - rule["place"] - rule["width"])
    luck = luck[:, None] * np.minimum(1, n / 20)
    floor = 10 ** (rule["floor"] + 1.3 * wild)
    gaps = floor * (1 + 0.5 * abs(luck)) + 2 / (1 + n * 10 ** (-1.2 * slow)) ** rule[
        "rate"
    ] * 10 ** (0.15 * luck)
    return np.where((wild > 2.5) & (n > 20), np.nan, gaps)


def listed(values):
    return [None if np.isnan(value) else float(value) for value in values]


def make_run(rng, name, rule, eta, iterations, starts):
    x, n = rule["place"] + 0.1 if eta is None else np.log10(eta), np.array(iterations)
    gaps = gaps_of(rule, x, n, rng.standard_normal(starts))
    summaries = {"median": np.median, "low": np.min, "high": np.max}
    return {
        "rule": name,
        "eta": eta,
        "last": listed(gaps[:, -1]),
        "best": listed(0.7 * gaps[:, -1]),
        "average": listed(3 * gaps[:, -1]),
        "failed": bool(np.isnan(gaps[:, -1]).any()),
        "curve": {how: listed(f(gaps, axis=0)) for how, f in summaries.items()},
        "step": listed(10**x / (1 + n) ** (rule["rate"] / 3)),
    }


def score(run_list, iterate, name, free, published, best_of_all, etas):
    """What the page shows of a rule. Enough like the real scores to look at."""
    ends = [np.inf if run["failed"] else float(np.median(run[iterate])) for run in run_list]
    best = int(np.argmin(ends))
    spacing = np.log10(etas[-1] / etas[0]) / max(1, len(etas) - 1) if len(etas) > 1 else 0.0
    near = None if free else int(np.argmin(np.abs(np.log(np.array(etas) / (published or 1)))))
    default = None if near is None or published is None or ends[near] == np.inf else ends[near]
    return {
        "rule": name,
        "iterate": iterate,
        "decades_10x": 0.0
        if free
        else float(spacing * sum(end <= 10 * best_of_all for end in ends)),
        "decades_below": {
            level: 0.0 if free else float(spacing * sum(end <= float(level) for end in ends))
            for level in LEVELS
        },
        "best_eta": None if free or ends[best] == np.inf else etas[best],
        "best_gap": None if ends[best] == np.inf else ends[best],
        "default_eta": None if free else published,
        "default_gap": ends[0] if free and ends[0] < np.inf else default,
        "regret": None if default is None else default / best_of_all,
    }


def content(
    tuned=TUNED,
    free=FREE,
    n_etas=21,
    n_recorded=40,
    starts=3,
    n_iter=500,
    title="a9a: logistic loss with an L1 penalty",
):
    """A content as `Sensitivity.content()` makes it."""
    rng = np.random.default_rng(0)
    etas = (
        [float(f"{eta:.6g}") for eta in np.geomspace(1e-4, 1e3, n_etas)]
        if n_etas > 1
        else [0.1] * n_etas
    )
    iterations = sorted({round(n) for n in np.geomspace(1, n_iter, 3 * n_recorded)})
    iterations = sorted(
        {iterations[round(k)] for k in np.linspace(0, len(iterations) - 1, n_recorded)}
    )
    rules, runs, by_rule = [], [], {}
    for k, name in enumerate([*tuned, *free]):
        is_free = k >= len(tuned)
        published = None if is_free else float(10.0 ** (k % 3 - 2))
        rules.append({"name": name, "free": is_free, "published": published, **style_of(name)})
        rule = {
            "place": -2.5 + 2 * rng.random(),
            "width": 0.5 + 1.2 * rng.random() + 1.5 * ("Diff" in name),
        }
        rule |= {"rate": 0.6 + 1.3 * rng.random(), "floor": -6 + 3 * rng.random()}
        by_rule[name] = [
            make_run(rng, name, rule, eta, iterations, starts)
            for eta in ([None] if is_free else etas)
        ]
        runs += by_rule[name]
    scores = []
    for iterate in ("last", "best", "average"):
        best = min((np.median(run[iterate]) for run in runs if not run["failed"]), default=1.0)
        scores += [
            score(
                by_rule[r["name"]],
                iterate,
                r["name"],
                r["free"],
                r["published"],
                best,
                etas or [1.0],
            )
            for r in rules
        ]
    return {
        "title": title,
        "created": "2026-11-18",
        "version": "1.0.0",
        "command": [
            "adagrad-diff compare a9a --loss logistic --penalty l1 --lam 0.01 \\",
            "    --budget 500 --out report.html",
        ],
        "about": [
            ["Data", "a9a, 32561 samples, 123 features, 11 percent of the entries are not zero"],
            ["Target", "two classes, 24 percent of the samples in the second"],
            ["Loss", "logistic, mean over the samples"],
            ["Penalty", "L1, strength 0.01"],
            ["Missing values", "none"],
        ],
        "gap_name": "relative gap",
        "n_iter": n_iter,
        "iterations": iterations,
        "f_star": {
            "value": 0.41234567,
            "how": "certified",
            "sentence": "The exact finish proves it to a relative gap of 1e-10.",
        },
        "starts": starts,
        "etas": etas,
        "rules": rules,
        "runs": runs,
        "scores": scores,
        "verdict": [
            "AdaGradDiff is within ten times the best gap over 3.2 decades of step sizes, AdaGrad over 1.4.",
            "At their published step sizes AdaGradDiff ends 2.1 times and Adam 35 times above the best gap of all rules.",
            "Without a step size, FISTA reaches 1.2e-6 and DoG 3.1e-4.",
        ],
    }


def hostile(text):
    """The same, with one text everywhere where a text can be."""
    made = content(
        tuned=(text, "AdaGrad"), free=(f"{text} free",), n_etas=5, n_recorded=6, title=text
    )
    return made | {
        "created": text,
        "version": text,
        "command": [text],
        "about": [[text, text]],
        "f_star": {"value": 1.0, "how": text, "sentence": text},
        "verdict": [text, text],
    }
