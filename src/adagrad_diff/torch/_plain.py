"""Which tensors are plain arrays in memory, and where: asked at every step, and for thousands of small tensors at once.

One by one, the questions take longer than the step itself. So type, device, layout, dtype, shape, strides and flags are
compared with what they were all together, by the check with which `torch.compile` guards what it has compiled; if anything is
different, each tensor is looked at again. No address is kept for use: that the storage behind it is large enough is asked
again when the address is another one than in the last step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._tensors import PLAIN_TYPES, has_memory

FUSED_DTYPES: dict[torch.dtype, Any] = {torch.float32: np.float32, torch.float64: np.float64}
guards: Any = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
TensorGuards: Any = getattr(
    guards, "TensorGuards", None
)  # without it, tensors are looked at one by one


class Plain:
    """Parameters with their companions as they were when they were looked at: `width` columns of tensors."""

    def __init__(self, tensors: list[Tensor], width: int):
        self.width = width
        self.rows: dict[
            torch.dtype, list[int]
        ] = {}  # the parameters that are plain with all their companions
        self.rest: list[int] = []  # and those that are not
        count = len(tensors) // width
        self.sizes = [p.numel() for p in tensors[:count]]
        for k, size in enumerate(self.sizes):
            some = tensors[k::count]
            dtype = some[0].dtype
            good = size and dtype in FUSED_DTYPES and all(is_plain(t, dtype, size) for t in some)
            (self.rows.setdefault(dtype, []) if good else self.rest).append(k)
        self.last = np.zeros(len(tensors), np.uint64)  # addresses
        self.same = _guard(tensors) if TensorGuards is not None and not self.rest else None
        self.fresh = True

    def addresses(self, tensors: list[Tensor]) -> np.ndarray | None:
        """A row of addresses for each parameter; 0 for those that are left out. None if something has changed."""
        if not self.fresh and (
            self.same is None or len(tensors) != len(self.last) or not self.same(*tensors)
        ):
            return None
        self.fresh = False
        found = np.zeros(len(tensors), np.uint64)
        if self.rest:
            for rows in self.rows.values():
                for k in rows:
                    for j in range(k, len(tensors), len(self.sizes)):
                        found[j] = tensors[j].data_ptr()
        else:
            found[:] = list(map(Tensor.data_ptr, tensors))
            if not all(has_memory(tensors[j]) for j in np.flatnonzero(found != self.last)):
                return None
        self.last = found
        return found.reshape(self.width, -1).T


def _guard(tensors: list[Tensor]) -> Any:
    """A function that says of as many tensors whether they are like these."""
    sizes, strides = ([list(part(t)) for t in tensors] for part in (Tensor.size, Tensor.stride))
    return TensorGuards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check


def is_plain(t: Any, dtype: torch.dtype, size: int) -> bool:
    """Whether a tensor is an array of `size` numbers, one after the other, in memory of the CPU."""
    return bool(
        type(t) in PLAIN_TYPES
        and t.layout is torch.strided
        and t.dtype is dtype
        and t.is_cpu
        and t.numel() == size
        and t.is_contiguous()
        and not t.is_neg()
        and not t._is_zerotensor()
        and has_memory(t)
    )
