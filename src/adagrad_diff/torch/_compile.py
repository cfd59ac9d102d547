"""List functions compiled for accelerators, where a compiler is there."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch


@cache
def compiled(function: Callable[..., None]) -> Callable[..., None]:
    """`torch.compile(function)`; the function itself if it turns out that this machine cannot compile."""
    chosen = [torch.compile(function)]

    def call(*args: Any) -> None:
        try:
            return chosen[0](*args)
        except (torch._dynamo.exc.TorchDynamoException, ImportError, OSError) as error:
            if chosen[0] is function:
                raise
            warnings.warn(f"The step is not compiled, but works: {type(error).__name__}.", RuntimeWarning, stacklevel=2)
            chosen[0] = function
            return function(*args)

    return call
