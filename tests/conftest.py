"""Fixtures that more than one file uses."""

from __future__ import annotations

import os
import re
import signal
import zlib
from collections import defaultdict
from pathlib import Path

import pytest

import certifying

# Files with many cases of one kind: of those, every eighth is run, and elsewhere every third one of tests with SEVERAL cases.
# They are always the same ones. ALL_CASES in the environment runs all.
SEVERAL = 4
MANY_CASES = (
    "certificates/test_certificates",
    "certificates/test_certificates_exact",
    "certificates/test_optima",
    "certificates/test_optima_gaps",
    "certificates/test_proofs",
    "certificates/test_raw_data",
    "checks/test_check_penalty",
    "dask_/test_dask_cluster",
    "dask_/test_dask_estimators",
    "dask_/test_dask_losses",
    "dask_/test_dask_sources",
    "finishing/test_kinked",
    "finishing/test_smooth",
    "optax_/test_optax_composition",
    "optax_/test_optax_contract",
    "optax_/test_optax_penalties",
    "optax_/test_optax_steps",
    "optax_/test_optax_unseen",
    "penalties/test_fuzz_penalties",
    "penalties/test_penalties",
    "penalties/test_prox",
    "penalties/test_prox_chains",
    "rules/test_every_rule",
    "sklearn_/test_sklearn_checkpoints",
    "sklearn_/test_sklearn_choices",
    "sklearn_/test_sklearn_client",
    "sklearn_/test_sklearn_contract",
    "sklearn_/test_sklearn_default_path",
    "losses/test_minibatch",
    "solve/test_checkpoints",
    "solve/test_minibatch_resume",
    "solve/test_minibatch_runs",
    "solve/test_trajectories",
    "sweeps/test_checkpoint_damage",
    "sweeps/test_sweep_chunks",
    "theory/test_inequalities",
    "torch_/test_torch_checkpoints",
    "torch_/test_torch_contract_schedulers",
    "torch_/test_torch_contract_states",
    "torch_/test_torch_contract_steps",
    "torch_/test_torch_dropin",
    "torch_/test_torch_memory",
    "torch_/test_torch_storm",
    "torch_/test_torch_options",
    "torch_/test_torch_penalties",
    "torch_/test_torch_steps",
    "torch_/test_torch_unseen",
)


def drawn(items, every, several=1):
    """Of each test with several cases, those whose names have a small remainder, and one at least."""
    numbers = {item: zlib.crc32(item.nodeid.encode()) for item in items}
    tests = defaultdict(list)
    for item in items:
        tests[re.sub(r"\[.*|\d+$", "", item.nodeid, flags=re.DOTALL)].append(item)  # pytest's cases, and those of absl
    few = {case for cases in tests.values() if len(cases) < several for case in cases}
    firsts = {min(cases, key=numbers.get) for cases in tests.values()}
    return {item for item in items if numbers[item] % every == 0} | firsts | few


def pytest_collection_modifyitems(config, items):
    """A part of the cases, so that the suite stays below six minutes on two cores."""
    if os.environ.get("ALL_CASES") or any("::" in argument for argument in config.args):
        return
    here = Path(__file__).parent
    many = {item for item in items if item.path.relative_to(here).with_suffix("").as_posix() in MANY_CASES}
    kept = drawn([item for item in items if item in many], 8) | drawn([item for item in items if item not in many], 3, SEVERAL)
    if left := [item for item in items if item not in kept]:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item in kept]


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a command of the command line in a directory that holds mixed.csv and nothing else."""
    from click.testing import CliRunner

    import mixed_table
    from adagrad_diff.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ADAGRAD_DIFF_DATA", raising=False)
    mixed_table.write(tmp_path / "mixed.csv", mixed_table.columns())
    return lambda *args: CliRunner().invoke(main, list(args))


@pytest.fixture
def default_handler():
    """Ctrl-C as in an ordinary Python session, here and in the commands a test starts.

    A shell that starts the tests in the background has told them to ignore it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def unsaved(monkeypatch):
    """Figures are made, but neither arranged nor drawn: most of the time of a test that looks at the numbers beside them."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: Path(path).write_text("a figure"))
    monkeypatch.setattr(Figure, "draw_without_rendering", lambda figure: None)


@pytest.fixture(autouse=True)
def every_certificate_is_recomputed(monkeypatch):
    """Whatever bound a test leads to is checked afterwards, in extended precision and from the formulas alone."""
    from adagrad_diff import certificates

    made = []

    class Watched(certificates.Certifier):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            made.append(self)

    monkeypatch.setattr(certificates, "Certifier", Watched)
    yield
    for certifier in made:
        if not isinstance(certifier.dual, str):
            certifying.check_bound(certifier.dual.loss, certifier.dual.penalty, certifier.bound, certifier.point)
