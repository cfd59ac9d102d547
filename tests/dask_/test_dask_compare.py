"""`adagrad-diff compare --scheduler`: the work is done by a cluster, the answer is that of one machine."""

import json

import pytest

import mixed_table

click_testing = pytest.importorskip("click.testing")
from adagrad_diff.cli import main  # noqa: E402

pytestmark = [pytest.mark.peer, pytest.mark.slow]
SMALL = [
    "--rules",
    "AdaGradDiff,DoG",
    "--etas",
    "0.1,1",
    "--starts",
    "2",
    "--budget",
    "10",
    "--json",
]


def test_compare_on_a_cluster(client, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    mixed_table.write("mixed.csv", mixed_table.columns())
    answers = []
    for where in ([], ["--scheduler", client.scheduler.address]):
        arguments = [
            "compare",
            "mixed.csv",
            *mixed_table.target("score"),
            *SMALL,
            "--out",
            f"{len(where)}.html",
            *where,
        ]
        result = click_testing.CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
        answers.append(json.loads(result.stdout)["scores"])
    assert answers[0] == answers[1]


def test_an_address_without_a_scheduler(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    mixed_table.write("mixed.csv", mixed_table.columns())
    arguments = [
        "compare",
        "mixed.csv",
        *mixed_table.target("score"),
        "--scheduler",
        "tcp://127.0.0.1:1",
    ]
    result = click_testing.CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "--scheduler 'tcp://127.0.0.1:1' does not answer" in result.output
