"""The table of torch's checks: nothing is missing in it, and it promises nothing that is not there."""

import ast
from pathlib import Path

import contract_names
import pytest
from contract_table import DIFFERENTIABLE, LR_SCHEDULER, OPTIM, OTHERS, answer

TABLES = {
    "TestOptimRenewed": (contract_names.TEST_OPTIM_RENEWED, OPTIM),
    "TestLRScheduler": (contract_names.TEST_LR_SCHEDULER, LR_SCHEDULER),
    "TestDifferentiableOptimizer": (contract_names.TEST_DIFFERENTIABLE_OPTIMIZER, DIFFERENTIABLE),
    "elsewhere": (contract_names.ELSEWHERE, OTHERS),
}


@pytest.mark.parametrize("which", TABLES)
def test_every_check_has_an_answer(which):
    text, table = TABLES[which]
    names = contract_names.names(text)
    assert len(set(names)) == len(names)
    found = {name: answer(name, table) for name in names}
    assert not [name for name, row in found.items() if row is None], "add rows to contract_table"
    assert {pattern for pattern, _ in found.values()} == set(table), "rows of contract_table that no check is left for"


def test_every_promised_test_exists():
    tests = {}
    for file in Path(__file__).parent.glob("test_torch_*.py"):
        tests[file.stem] = {node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)}
    for _, table in TABLES.values():
        for check, text in table.items():
            if "::" in text:
                file, test = text.split("::")
                assert test in tests.get(file, ()), f"{check}: there is no {text}"
            else:
                assert text.startswith(("needs ", "is about ")), f"{check}: {text!r} is neither a test nor a reason"


@pytest.mark.peer
def test_names_are_those_of_the_wheel():
    """The wheel has no tests, but names checks for which an optimizer is an exception: a new one among them is noticed."""
    pytest.importorskip("torch")
    pytest.importorskip("expecttest")
    from torch.testing._internal.common_optimizers import optim_db

    mentioned = {
        getattr(note, "test_name", None)
        for info in optim_db
        for note in info.decorators
        if getattr(note, "cls_name", None) == "TestOptimRenewed"
    }
    assert len(mentioned) > 10
    assert mentioned - {None} <= set(contract_names.names(contract_names.TEST_OPTIM_RENEWED))
