"""Files that are complete or not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write(path: Path, fill: Callable[[Any], Any]) -> None:
    """Write a file in one step: `fill(file)` fills it under another name first."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")  # two processes do not disturb each other
    try:
        with open(partial, "wb") as file:
            fill(file)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
