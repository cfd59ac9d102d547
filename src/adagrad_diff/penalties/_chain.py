"""What penalties on neighbours in a chain share: their value, and the taut string."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._threads import over_rows, thread_count
from ..linalg.kernels import compiled, plain
from ._rows import as_rows, from_rows
from ._sizes import at_moderate_size

WORK = 20  # of one sample of a string, in multiplications
CALM = 1e4  # largest ratio of weights for `quick_string`: rounding then costs u about 1e-12 lam
REVISITS = 2  # of each sample, on average: with more of them `quick_string` would not be quick
TIE = 1e-12  # levels that differ by less than this part of themselves are equal: rounding must not order them


@compiled
def chain_value(x: Any, l1: Any, tv: Any, out: Any) -> None:
    """out = l1 * np.sum(np.abs(x), axis=0) + tv * np.sum(np.abs(np.diff(x, axis=0)), axis=0)"""
    if x.ndim == 1:
        total, jumps = 0.0, 0.0
        for i in range(x.size):
            total += abs(np.float64(x[i]))
        for i in range(1, x.size):
            jumps += abs(np.float64(x[i]) - x[i - 1])
        out[0] = (l1 * total if l1 > 0.0 else 0.0) + tv * jumps  # where the sum is infinite, too
    else:
        out[:] = 0
        for i in range(x.shape[0]):
            for k in range(x.shape[1]):
                out[k] += l1 * abs(np.float64(x[i, k]))
                if i:
                    out[k] += tv * abs(np.float64(x[i, k]) - x[i - 1, k])


def chain_prox(z: Any, step: Any, l1: Any, tv: Any, out: Any) -> None:
    """out = prox of l1 sum |x_i| + tv sum |x_i - x_{i-1}|. Threads share the trajectories or, if there is one, its strings."""
    trajectories = z[:1].size
    threads = thread_count(WORK * z.size * (2 if l1 > 0 else 1))

    def share(part: Any, lo: int, hi: int) -> None:
        mine = (slice(None), slice(lo, hi)) if z.ndim == 2 else slice(None)
        rows = as_rows(z[mine])
        x = np.empty_like(rows)
        at_moderate_size(
            strings, strengths=(l1, tv), others=(threads if trajectories == 1 else 1,)
        )(rows, as_rows(step[mine]), x)
        from_rows(x, out[mine])

    over_rows(share, trajectories, max(1, min(threads, trajectories)))


def strings(z: Any, step: Any, l1: Any, tv: Any, threads: Any, x: Any) -> None:
    """x = the prox for each row, by one string, or by two: see `FusedLasso`."""
    if l1 == 0:
        each_string(z, step, 0.0, tv, x)
        return
    halves = np.empty((2, *z.shape))

    def half(part: Any, lo: int, hi: int) -> None:
        for k in range(lo, hi):
            each_string(z, step, (-l1, l1)[k], tv, halves[k])
            (np.maximum, np.minimum)[k](halves[k], 0.0, out=halves[k])

    over_rows(half, 2, min(threads, 2))
    np.add(halves[0], halves[1], out=x)


@plain
def each_string(z: Any, step: Any, shift: Any, lam: Any, x: Any) -> None:
    """`taut_string` of z + step * shift, by `quick_string` where that is accurate and quick."""
    rows, n = z.shape
    moved, weight = np.empty((1, n)), np.empty((1, n))
    for k in range(rows):
        for i in range(n):
            moved[0, i] = (
                z[k, i] + step[k, i] * shift if shift != 0.0 else z[k, i]
            )  # which may be -0.0
            weight[0, i] = 1.0 / step[k, i]
        if not (lam > 0.0 and calm(weight[0]) and quick_string(moved[0], weight[0], lam, x[k])):
            taut_string(moved, weight, lam, x[k : k + 1])


@compiled
def calm(weight: Any) -> Any:
    """Whether the weights differ by no more than a factor."""
    least, most = weight[0], weight[0]
    for w in weight:
        least, most = min(least, w), max(most, w)
    return 0.0 < most <= CALM * least


@plain
def quick_string(z: Any, weight: Any, lam: Any, x: Any) -> Any:
    """`taut_string` of one row, for weights that do not differ much; False if too many samples would be visited again.

    Condat's algorithm: the segment that begins at the last bend has a level between `low` and `high`. At `low`, u has the
    value u_low at sample i and was lam, its largest value, at low_end; at `high`, u_high and -lam at high_end. When u would
    fall below -lam even at `low`, x falls after low_end; when it would exceed lam even at `high`, x rises after high_end.
    The samples after the bend are then visited again: many times, if smooth data are approximated by a staircase.

    The updates are arithmetic instead of branches: which of them apply is random, and a wrong guess of the processor costs
    more than they do.
    """
    n = z.size
    i = start = low_end = high_end = 0
    total, before = weight[0], 0.0  # before: u before the segment
    low, high = z[0] - lam / total, z[0] + lam / total
    u_low, u_high = lam, -lam
    again = 0
    while again <= REVISITS * start + n // 8:
        if i == n - 1:
            w, next_low, next_high = 0.0, u_low, u_high
            falls, rises = u_low < 0.0, u_high > 0.0
            if not (falls or rises):
                fill_segment(z, weight, before, start, n, x)
                return True
        else:
            w, v = weight[i + 1], z[i + 1]
            next_low, next_high = u_low + w * (v - low), u_high + w * (v - high)
            falls, rises = next_low < -lam, next_high > lam
        if falls | rises:
            last, i = i, 1 + (low_end if falls else high_end)
            again += last + 1 - i
            after = lam if falls else -lam
            if (
                i - start <= 4 <= n - start
            ):  # without a loop: what is written too far is written again
                x[start] = x[start + 1] = x[start + 2] = x[start + 3] = low if falls else high
            else:
                fill_segment(z, weight, before - after, start, i, x)
            start, low_end, high_end, before = i, i, i, after
            total, low, high = weight[i], z[i], z[i]
            gap = 2.0 * lam / total
            low -= 0.0 if falls else gap
            high += gap if falls else 0.0
            u_low, u_high = lam, -lam
        else:
            i += 1
            total += w
            part = 1.0 / total
            low += max(next_low - lam, 0.0) * part
            high += min(next_high + lam, 0.0) * part
            low_end = i if next_low >= lam else low_end
            high_end = i if next_high <= -lam else high_end
            u_low, u_high = min(next_low, lam), max(next_high, -lam)
    return False


@plain
def fill_segment(z: Any, weight: Any, c: Any, start: Any, stop: Any, x: Any) -> None:
    """The level of a segment, from its samples."""
    w, s = 0.0, c
    for j in range(start, stop):
        w += weight[j]
        s += weight[j] * z[j]
    level = s / w
    for j in range(start, stop):
        x[j] = level


@plain
def taut_string(z: Any, weight: Any, lam: Any, x: Any) -> None:
    r"""x = argmin sum_i weight_i / 2 (x_i - z_i)^2 + lam |x_i - x_{i-1}|, for each row.

    With u_i = sum_{j <= i} weight_j (z_j - x_j), x is optimal iff |u_i| <= lam, u_i = -lam where x rises, u_i = lam
    where it falls, and u = 0 at the end. On a segment between two bends x is therefore (sum weight z + c) / sum weight,
    where c, u before the segment minus u at its end, is 0, lam or 2 lam up to sign.

    From the last bend that is certain, two chains of segments lead to the newest sample: side 0 rises (u = -lam at its
    bends) and side 1 falls, and is kept negated, so that it rises too. A new sample is pooled with the segments before it
    until the chain rises again. When one side is a single segment, and beyond the first bend of the other side it would
    run on the wrong side of the segment that ends there, that bend is certain, and both chains go on from it. Every
    sample enters and leaves each chain once: O(n).

    Weights of 1e8 and 1e-9 may be neighbours. Therefore no sum over a segment is a difference of longer sums, levels are
    compared only if they share no samples, and segments whose levels differ by no more than rounding are pooled.
    """
    rows, n = z.shape
    if lam == 0.0:
        x[:] = z
        return
    stop, w, s, level = (
        np.empty((2, n), np.int64),
        np.empty((2, n)),
        np.empty((2, n)),
        np.empty((2, n)),
    )
    first, last, c = (
        np.empty(2, np.int64),
        np.empty(2, np.int64),
        np.empty(2),
    )  # c: of the first segment; it is 0 later on
    # The sums from a bend to the newest sample are late[bend - base], up to the sample `mid`, plus those of newer samples.
    late_w, late_s = np.empty(n), np.empty(n)
    for k in range(rows):
        first[:], last[:], c[:] = 0, -1, 0.0
        start, base, mid, newer_w, newer_s = 0, 0, -1, 0.0, 0.0
        for i in range(n):
            d, dz = weight[k, i], weight[k, i] * z[k, i]
            begin, end = (
                lam if i == 0 else 0.0,
                lam if i == n - 1 else 0.0,
            )  # u is 0, not -lam, at both ends of the chain
            newer_w += d
            newer_s += dz
            for side in range(2):
                wi, si, ci = d, (dz if side == 0 else -dz), begin - end
                p = last[side]
                while (
                    p >= first[side]
                    and (level[side, p] + TIE * abs(level[side, p])) * wi >= si + ci
                ):
                    wi += w[side, p]
                    si += s[side, p]
                    ci += c[side] if p == first[side] else 0.0
                    p -= 1
                p += 1
                if p == first[side]:
                    first[side], p, c[side] = (
                        0,
                        0,
                        ci,
                    )  # at the front of the arrays: they are large, the cache is not
                last[side] = p
                stop[side, p], w[side, p], s[side, p], level[side, p] = (
                    i + 1,
                    wi,
                    si,
                    (si + ci) / wi,
                )
            while (first[0] == last[0]) != (first[1] == last[1]):
                side = 0 if first[0] == last[0] else 1
                other, sign = 1 - side, 1.0 - 2.0 * side
                q = first[other]
                bend = stop[other, q]
                if bend > mid:
                    base, mid, newer_w, newer_s = bend, i, 0.0, 0.0
                    sum_w, sum_s = 0.0, 0.0
                    for j in range(i, bend - 1, -1):
                        sum_w += weight[k, j]
                        sum_s += weight[k, j] * z[k, j]
                        late_w[j - base], late_s[j - base] = sum_w, sum_s
                wi, si, ci = (
                    late_w[bend - base] + newer_w,
                    sign * (late_s[bend - base] + newer_s),
                    2.0 * lam - end,
                )
                if not si + ci < -level[other, q] * wi:
                    break
                x[k, start:bend] = -sign * level[other, q]
                start, first[other], c[other] = bend, q + 1, 0.0
                first[side], last[side], c[side] = 0, 0, ci
                stop[side, 0], w[side, 0], s[side, 0], level[side, 0] = (
                    i + 1,
                    wi,
                    si,
                    (si + ci) / wi,
                )
        side = (
            0 if first[0] < last[0] else 1
        )  # the other one is a single segment, or both are the same
        for p in range(first[side], last[side] + 1):
            x[k, start : stop[side, p]] = level[side, p] if side == 0 else -level[side, p]
            start = stop[side, p]
