"""The directory of checkpoints of a fit: one file per problem, named after everything its solution depends on."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .. import _check
from .._files import as_path, reason
from ..losses import Loss
from ..penalties import Penalty
from ..solvers.checkpoint import describe

FILE_NAME_DIGITS = 24


class Directory:
    """Where checkpoints are, and how often they are written."""

    def __init__(self, path: Path, every: float):
        self.path, self.every = path, every
        self._losses: dict[
            int, tuple[Loss, Any]
        ] = {}  # data are read once for all strengths of a path

    def file(self, loss: Loss, penalty: Penalty, x0: Any, **more: Any) -> Path:
        """The checkpoint of one problem. Two that look alike, as those with functions may, are told apart by what is in it."""
        if id(loss) not in self._losses:
            self._losses[id(loss)] = loss, describe(loss)
        about = {
            "loss": self._losses[id(loss)][1],
            **describe({"penalty": penalty, "x0": x0, **more}),
        }
        name = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[
            :FILE_NAME_DIGITS
        ]
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(
                f"'checkpoint' cannot be written: {self.path}: {reason(error)}. Choose another directory."
            ) from error
        return self.path / f"{name}.npz"


def kept_in(checkpoint: Any, every: Any, owner: str) -> Directory | None:
    """The directory of an estimator's checkpoints, if it has one."""
    seconds = _check.nonnegative(every, "checkpoint_every", owner)
    return None if checkpoint is None else Directory(as_path(checkpoint, "checkpoint"), seconds)
