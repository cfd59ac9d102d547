"""Warnings that point at the line of whoever called this package."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

PACKAGE = str(Path(__file__).parents[1])


def warn(message: str, category: type[Warning], through: str = PACKAGE) -> None:
    """Warn at the line that led here, outside this package and the directory `through`, which may be in between."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((PACKAGE, through)):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
