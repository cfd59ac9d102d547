"""What a relative tolerance is relative to."""

from __future__ import annotations

from typing import Any

import numpy as np

NOTHING = 1e-6  # an objective, or a gradient, of less than this part of what it was counts as none in a relative tolerance


def unit(fun: Any, usual: Any) -> Any:
    """What a tolerance on objectives is relative to: the objective, or a millionth of its usual size."""
    return np.maximum(abs(fun), NOTHING * usual) if np.ndim(fun) else max(abs(fun), NOTHING * usual)
