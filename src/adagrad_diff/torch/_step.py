"""The step of the optimizers: for one tensor, for lists of tensors, and for a sparse gradient.

A rule gives a direction and a weight for every entry (see `DifferenceOptimizer`). The step is

    x <- prox(x - lr direction / weight), with the proximal operator in the metric weight / lr.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from .penalties import placed

if TYPE_CHECKING:
    from ._optimizer import DifferenceOptimizer

Rule: TypeAlias = "type[DifferenceOptimizer]"
Tensors: TypeAlias = list[Tensor] | tuple[Tensor, ...]
Group: TypeAlias = dict[str, Any]  # options
Numbers: TypeAlias = tuple[Any, ...]  # the learning rate, and what else depends on the step
Row: TypeAlias = tuple[Any, ...]  # a tensor, its gradient, its buffers, the numbers of its step

# Entries that are updated together. The arrays of a float32 step then stay in the cache of a CPU
# (10 MB), and temporary arrays are small (64 MB on accelerators).
BATCH_ENTRIES = {"cpu": 1 << 19}
ACCELERATOR_ENTRIES = 1 << 24
COMPILED_ENTRIES = 1 << 15  # calling a compiled function takes 20 us, as long as such a step
COMPILED_TOGETHER = 4  # tensors per call: it then takes 10 us for each


def step_tensor(rule: Rule, row: Row, group: Group) -> None:
    """Update one tensor and its buffers: the statement that the others are compared with."""
    x, g, *buffers, numbers = row
    total, prev = buffers[:2]
    point = x.to(total.dtype, copy=group["differentiable"])  # autograd keeps the old x
    g = -g.to(total.dtype) if group["maximize"] else g.to(total.dtype)
    lr, decay = numbers[0], group["weight_decay"]
    if group["decoupled_weight_decay"]:
        point = point * (1 - lr * decay)
    elif decay:
        g = g + decay * point
    rule.accumulate(g, buffers, group)
    direction, weight = rule.metric(g, buffers, numbers, group)
    step = lr / weight
    point = proximal(point - step * direction, step, total, direction, group)
    x.copy_(placed(point, x))
    prev.copy_(g)


def step_list(rule: Rule, rows: list[Row], group: Group) -> None:
    """Update tensors of one device and precision by operations on lists."""
    columns: list[Any] = [list(column) for column in zip(*rows, strict=True)]
    xs, gs, *buffers, numbers = columns
    totals, prevs = buffers[:2]
    dtype, decay = totals[0].dtype, group["weight_decay"]
    points, gs = _converted(xs, dtype), _converted(gs, dtype)
    if group["maximize"]:
        gs = list(torch._foreach_neg(gs))
    if decay and group["decoupled_weight_decay"]:
        torch._foreach_mul_(points, [1 - lr * decay for lr, *_ in numbers])
    elif decay:
        gs = list(torch._foreach_add(gs, points, alpha=decay))
    directions, weights, scales = rule.listed(gs, buffers, numbers, group)
    if isinstance(scales[0], Tensor):
        moves = torch._foreach_div(torch._foreach_mul(directions, scales), weights)
        torch._foreach_sub_(points, moves)
    else:
        torch._foreach_addcdiv_(points, directions, weights, [-scale for scale in scales])
    if group["penalty"] is not None:
        for x, weight, (lr, *_), total, direction in zip(
            points, weights, numbers, totals, directions, strict=True
        ):
            x.copy_(proximal(x, lr / weight, total, direction, group))
    if points is not xs:
        torch._foreach_copy_(xs, points)
    torch._foreach_copy_(prevs, gs)


def _converted(tensors: list[Tensor], dtype: torch.dtype) -> list[Tensor]:
    same = all(t.dtype == dtype for t in tensors)
    return tensors if same else [t.to(dtype) for t in tensors]


def proximal(point: Tensor, step: Tensor, total: Tensor, direction: Tensor, group: Group) -> Tensor:
    """Return the proximal point, except where nothing has accumulated and the weight is eps.

    Such an entry keeps its value and counts in the norm of its group, which is the proximal step in
    a metric that is infinite there. If it moves all the same, because squares have decayed or
    underflowed to zero, it stays within bounds.
    """
    penalty = group["penalty"]
    if penalty is None:
        return point
    if group["prox_unseen"]:
        full: Tensor = penalty.prox(point, step)
        return full
    unseen = total == 0
    result: Tensor = penalty.prox(point, step.masked_fill(unseen, 0.0))
    return torch.where(unseen & (direction == 0), point, result)


def step_sparse(rule: Rule, row: Row, group: Group) -> Any:
    """Update the entries where the gradient or the previous one is not zero. Return the gradient.

    The state keeps it as a sparse tensor. After a dense gradient one step visits every entry.
    """
    x, g, total, prev, numbers = row
    g = g.coalesce().to(total.dtype, copy=True)
    g = -g if group["maximize"] else g
    if prev.is_sparse and prev.sparse_dim() == g.sparse_dim():
        change = (g - prev).coalesce()
        total[tuple(change.indices())] += change.values().square()
        where = tuple(g.indices())
        direction, weight = rule.metric(g.values(), [total[where]], numbers, group)
        x[where] = (x[where] - numbers[0] * direction / weight).to(x.dtype)
    else:
        dense = (x, g.to_dense(), total, prev.to_dense(), numbers)
        step_tensor(rule, dense, {**group, "maximize": False})
    return g


def batches(rows: list[Row], group: Group) -> Iterator[list[Row]]:
    """Group tensors by device and precision, in batches that need little temporary memory.

    Large tensors are split, unless the penalty needs all of their entries.
    """
    kinds: dict[Any, list[Row]] = {}
    for row in rows:
        kinds.setdefault((row[0].device, row[0].dtype, row[2].dtype), []).append(row)
    for (device, *_), same in kinds.items():
        if torch.compiler.is_compiling():
            yield same
            continue
        space = limit = BATCH_ENTRIES.get(device.type, ACCELERATOR_ENTRIES)
        batch: list[Row] = []
        for row in same:
            for piece in pieces(row, limit, group["penalty"]):
                space -= piece[0].numel()
                if batch and space < 0:
                    yield batch
                    batch, space = [], limit - piece[0].numel()
                batch.append(piece)
        yield batch


def pieces(row: Row, limit: int, penalty: Any) -> list[Row]:
    """Split the tensors of a row if they are large, and if the penalty is separable."""
    *tensors, numbers = row
    if row[0].numel() <= limit or not (penalty is None or penalty.separable):
        return [row]
    flat = flattened(tensors)
    if flat is None:
        return [row]
    parts = zip(*(torch.split(t, limit) for t in flat), strict=True)
    return [(*part, numbers) for part in parts]


def flattened(tensors: list[Tensor]) -> list[Tensor] | None:
    """Return vectors with the memory of the tensors, or None if their layouts differ."""
    for layout in (torch.contiguous_format, torch.channels_last):
        if all(t.is_contiguous(memory_format=layout) for t in tensors):
            return [t.as_strided((t.numel(),), (1,)).detach() for t in tensors]
    return None


def step_compiled(rule: Rule, rows: list[Row], group: Group) -> None:
    """Update tensors by `torch.compile` of `step_tensor`. Separable penalties only."""
    rest = [(*(flattened(tensors) or tensors), numbers) for *tensors, numbers in rows]
    while rest:  # fours and ones, so that at most two functions are compiled
        n = COMPILED_TOGETHER if len(rest) >= COMPILED_TOGETHER else 1
        try:
            _compiled()(rule, rest[:n], group)
        except (torch._dynamo.exc.TorchDynamoException, ImportError, OSError) as error:
            raise RuntimeError(
                f"fused=True compiles the step of {rule.__name__} with torch.compile, which "
                f"failed: {error}\nLeave fused out, or repair the compiler."
            ) from error
        rest = rest[n:]


@cache
def _compiled() -> Any:
    def step(rule: Rule, rows: list[Row], group: Group) -> None:
        for row in rows:
            step_tensor(rule, row, group)

    return torch.compile(step, dynamic=True)
