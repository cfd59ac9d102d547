"""The walk: which files of the package a run passes through, in the order in which it first comes to them.

python tools/walk.py                                 (another checkout: PYTHONPATH=OLD/src python tools/walk.py)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import adagrad_diff
from adagrad_diff import L1, LAD, minimize
from adagrad_diff.sklearn import LADRegressor

PACKAGE = Path(adagrad_diff.__file__).parent


def walk(call: Callable[[], Any]) -> list[str]:
    """The files of the package in which a function is called."""
    found: dict[str, None] = {}

    def seen(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(PACKAGE)):
            found[Path(file).relative_to(PACKAGE).as_posix()] = None

    call()  # once before: what is compiled or imported at first use is no part of the walk
    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(found)


def main() -> None:
    A = np.random.default_rng(0).standard_normal((200, 10))
    b = A[:, 0] - 2 * A[:, 3]
    loss, penalty = LAD(A, b), L1(0.01)
    walks = {
        "minimize(loss, penalty=penalty, eta=0.1)": lambda: minimize(
            loss, penalty=penalty, eta=0.1, max_iter=30
        ),
        "minimize(loss, penalty=penalty)": lambda: minimize(loss, penalty=penalty, max_iter=30),
        "LADRegressor(alpha=0.01).fit(A, b)": lambda: LADRegressor(alpha=0.01).fit(A, b),
    }
    for name, call in walks.items():
        files = walk(call)
        print(f"{name}: {len(files)} files\n    {'  '.join(files)}\n")


if __name__ == "__main__":
    main()
