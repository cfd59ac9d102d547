"""Fifty bad inputs to the public interface, for `tools/references.py`: only the types of errors count."""

from __future__ import annotations

import builtins
import contextlib
import io
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import adagrad_diff as p

A, B = np.arange(12.0).reshape(4, 3) % 5, np.array([1.0, -1.0, 1.0, -1.0])
HOLE = np.where(A == 3, np.nan, A)
ZEROS = np.zeros(3)


def bowl(x: np.ndarray) -> tuple[float, np.ndarray]:
    return 0.5 * float(x @ x), x


def fit(name: str, *data: Any, **options: Any) -> Any:
    from adagrad_diff import sklearn

    return getattr(sklearn, name)(**options).fit(*data)


def torch_optimizer(**options: Any) -> Any:
    import torch

    from adagrad_diff.torch import AdaGradDiff

    return AdaGradDiff([torch.zeros(3, requires_grad=True)], **options)


def optax_module() -> Any:
    from adagrad_diff import optax

    return optax


def command(*words: str) -> None:
    """Run the command line, which ends with SystemExit and a code."""
    import click

    from adagrad_diff.__main__ import main

    hidden = io.StringIO()
    with (
        contextlib.redirect_stderr(hidden),
        contextlib.redirect_stdout(hidden),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        before, sys.argv = sys.argv, ["adagrad-diff", *words]
        try:
            main()
        except click.exceptions.Exit as error:
            raise SystemExit(error.exit_code) from error
        finally:
            sys.argv = before


def state_file(content: bytes | None) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        if content is not None:
            path.write_bytes(content)
        p.load_state(path)


def sweep(**change: Any) -> Any:
    given = {
        "loss": p.LAD(A, B),
        "penalty": None,
        "rules": p.AdaGrad,
        "etas": [0.1],
        "x0s": np.zeros((3, 1)),
        "n_iter": 2,
    }
    return p.sweep(**given | change, progress=False)


def reproduce(*targets: str, **options: Any) -> Any:
    from adagrad_diff.experiments.paper import reproduce as run

    with TemporaryDirectory() as folder:
        return run(targets, out=folder, **options)


def load(name: str, directory: str | None = None) -> Any:
    from adagrad_diff.datasets import load as read

    return read(name, directory, download=False)


def damaged_data() -> Any:
    with TemporaryDirectory() as folder:
        (Path(folder) / "splice.t").write_text("1 1:2\n")
        return load("splice.t", folder)


ERRORS: dict[str, Callable[[], Any]] = {
    "minimize: loss is a number": lambda: p.minimize(3, ZEROS, eta=0.1),
    "minimize: loss is a class": lambda: p.minimize(p.Logistic, ZEROS, eta=0.1),
    "minimize: loss returns one number": lambda: p.minimize(lambda x: 1.0, ZEROS, eta=0.1),
    "minimize: gradient too short": lambda: p.minimize(lambda x: (1.0, x[:2]), ZEROS, eta=0.1),
    "minimize: no x0 for a function": lambda: p.minimize(bowl, eta=0.1),
    "minimize: x0 of the wrong size": lambda: p.minimize(p.LAD(A, B), np.zeros(5), eta=0.1),
    "minimize: x0 with NaN": lambda: p.minimize(bowl, [0.0, np.nan], eta=0.1),
    "minimize: x0 is a penalty": lambda: p.minimize(bowl, p.L1(0.1), eta=0.1),
    "minimize: penalty is a number": lambda: p.minimize(bowl, ZEROS, 0.1, eta=0.1),
    "minimize: penalty of the wrong size": lambda: p.minimize(
        bowl, ZEROS, p.L1([0.1, 0.2]), eta=0.1
    ),
    "minimize: rule and eta": lambda: p.minimize(bowl, ZEROS, None, p.AdaGrad(0.1), eta=0.1),
    "minimize: rule is a class": lambda: p.minimize(bowl, ZEROS, None, p.AdaGrad),
    "minimize: eta is negative": lambda: p.minimize(bowl, ZEROS, eta=-0.1),
    "minimize: max_iter is a text": lambda: p.minimize(bowl, ZEROS, eta=0.1, max_iter="10"),
    "minimize: tol is negative": lambda: p.minimize(bowl, ZEROS, eta=0.1, tol=-1e-3),
    "minimize: stop is unknown": lambda: p.minimize(bowl, ZEROS, eta=0.1, stop="soon"),
    "minimize: callback is a number": lambda: p.minimize(bowl, ZEROS, eta=0.1, callback=3),
    "minimize: unknown argument": lambda: p.minimize(bowl, ZEROS, eta=0.1, learning_rate=3),
    "minimize: raises on failure": lambda: p.minimize(
        p.LAD(A, B),
        penalty=p.L1(0.01),
        rule=p.AdaGrad(1e-3),
        tol=1e-9,
        max_iter=2,
        on_failure="raise",
    ),
    "minimize: state of another problem": lambda: p.minimize(
        p.LAD(A, B), eta=0.1, state=p.minimize(bowl, ZEROS, eta=0.1, max_iter=2).state
    ),
    "iterate: no rule": lambda: p.iterate(bowl, ZEROS),
    "loss: data with NaN": lambda: p.LAD(HOLE, B),
    "loss: targets too short": lambda: p.Squared(A, B[:3]),
    "loss: three labels": lambda: p.Logistic(A, [0, 1, 2, 1]),
    "loss: data are a vector": lambda: p.Hinge(A[:, 0], B),
    "loss: negative weights": lambda: p.Huber(A, B, sample_weight=[-1, 1, 1, 1]),
    "loss: l2 is negative": lambda: p.SquaredHinge(A, B, l2=-1.0),
    "loss: tau is 2": lambda: p.Quantile(A, B, tau=2.0),
    "loss: negative counts": lambda: p.Poisson(A, B),
    "loss: Q is not symmetric": lambda: p.Quadratic(A[:3] + np.triu(np.ones((3, 3))), ZEROS),
    "loss: batches of size 0": lambda: p.Minibatch(p.LAD(A, B), 0),
    "penalty: lam is negative": lambda: p.L1(-1.0),
    "penalty: empty box": lambda: p.Box(1.0, 0.0),
    "penalty: groups are a text": lambda: p.GroupL2(0.1, "ab"),
    "penalty: strengths increase": lambda: p.SLOPE([0.1, 0.2]),
    "penalty: radius is negative": lambda: p.Simplex(-1.0),
    "rule: eta is missing": p.AdaGradDiff,
    "rule: eps is zero": lambda: p.AdaGradDiff(0.1, eps=0.0),
    "rule: beta1 is 2": lambda: p.Adam(0.1, beta1=2.0),
    "rule: blocks are unknown": lambda: p.minimize(
        bowl, ZEROS, None, p.AdaGrad(0.1, blocks="column")
    ),
    "sweep: no etas": lambda: sweep(etas=[]),
    "sweep: starts of the wrong size": lambda: sweep(x0s=np.zeros((4, 1))),
    "sweep: memory is a text": lambda: sweep(memory="much"),
    "sensitivity: f_star is a text": lambda: p.sensitivity(
        p.LAD(A, B), f_star="best", progress=False
    ),
    "load_state: no file": lambda: state_file(None),
    "load_state: not a state": lambda: state_file(b"nothing"),
    "duality_gap: x of the wrong size": lambda: p.duality_gap(p.LAD(A, B), p.L1(0.1), np.zeros(5)),
    "estimator: alpha is negative": lambda: fit("Lasso", A, B, alpha=-1.0),
    "estimator: data with NaN": lambda: fit("LADRegressor", HOLE, B),
    "estimator: one class": lambda: fit("LogisticRegression", A, np.ones(4)),
    "estimator: quantile is 2": lambda: fit("QuantileRegressor", A, B, quantile=2.0),
    "torch: lr is negative": lambda: torch_optimizer(lr=-0.1),
    "torch: eps is negative": lambda: torch_optimizer(lr=0.1, eps=-1.0),
    "optax: eps is negative": lambda: optax_module().adagraddiff(learning_rate=0.1, eps=-1.0),
    "optax: lam is negative": lambda: optax_module().L1(-1.0),
    "datasets: unknown name": lambda: load("iris"),
    "datasets: damaged file": damaged_data,
    "reproduce: unknown target": lambda: reproduce("fig9"),
    "reproduce: unknown scale": lambda: reproduce("2moons", scale="huge"),
    "command line: unknown command": lambda: command("nonsense"),
    "command line: unknown target": lambda: command("reproduce", "nonsense"),
    "command line: no file": lambda: command("fit", "nowhere.csv", "--target", "y"),
    "command line: memory is a text": lambda: command(
        "reproduce", "2moons", "--out", "/dev/null/x", "--memory", "much"
    ),
}


def outcome(call: Callable[[], Any]) -> list[str]:
    """Return the names of the error's classes, the most specific first; an exit has its code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except SystemExit as error:
            return [f"SystemExit {error.code}"]
        except ModuleNotFoundError as error:
            return [f"missing {error.name}"]
        except Exception as error:
            return [kind.__name__ for kind in type(error).__mro__]
    return ["no error"]


def public_type(names: list[str]) -> str:
    """Return the most specific class that users can name: of the package's interface or built in."""
    from adagrad_diff import datasets

    public = {*p.__all__, *datasets.__all__, *vars(builtins)}
    return next((name for name in names if name in public), names[0])
