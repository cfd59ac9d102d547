"""What penalties on neighbours in a chain share: their value, and the taut string."""

from __future__ import annotations

import numpy as np

from ..kernels import compiled, plain

TIE = 1e-12  # levels that differ by less than this part of themselves are equal: rounding must not order them


@compiled
def chain_value(x, l1, tv, out):
    """out = l1 * np.sum(np.abs(x), axis=0) + tv * np.sum(np.abs(np.diff(x, axis=0)), axis=0)"""
    if x.ndim == 1:
        total, jumps = 0.0, 0.0
        for i in range(x.size):
            total += abs(np.float64(x[i]))
        for i in range(1, x.size):
            jumps += abs(np.float64(x[i]) - x[i - 1])
        out[0] = l1 * total + tv * jumps
    else:
        out[:] = 0
        for i in range(x.shape[0]):
            for k in range(x.shape[1]):
                out[k] += l1 * abs(np.float64(x[i, k]))
                if i:
                    out[k] += tv * abs(np.float64(x[i, k]) - x[i - 1, k])


@plain
def taut_string(z, weight, lam, x):
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
    stop, w, s, level = np.empty((2, n), np.int64), np.empty((2, n)), np.empty((2, n)), np.empty((2, n))
    first, last, c = np.empty(2, np.int64), np.empty(2, np.int64), np.empty(2)  # c: of the first segment; it is 0 later on
    # The sums from a bend to the newest sample are late[bend - base], up to the sample `mid`, plus those of newer samples.
    late_w, late_s = np.empty(n), np.empty(n)
    for k in range(rows):
        first[:], last[:], c[:] = 0, -1, 0.0
        start, base, mid, newer_w, newer_s = 0, 0, -1, 0.0, 0.0
        for i in range(n):
            d, dz = weight[k, i], weight[k, i] * z[k, i]
            begin, end = lam if i == 0 else 0.0, lam if i == n - 1 else 0.0  # u is 0, not -lam, at both ends of the chain
            newer_w += d
            newer_s += dz
            for side in range(2):
                wi, si, ci = d, (dz if side == 0 else -dz), begin - end
                p = last[side]
                while p >= first[side] and (level[side, p] + TIE * abs(level[side, p])) * wi >= si + ci:
                    wi += w[side, p]
                    si += s[side, p]
                    ci += c[side] if p == first[side] else 0.0
                    p -= 1
                p += 1
                if p == first[side]:
                    first[side], p, c[side] = 0, 0, ci  # at the front of the arrays: they are large, the cache is not
                last[side] = p
                stop[side, p], w[side, p], s[side, p], level[side, p] = i + 1, wi, si, (si + ci) / wi
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
                wi, si, ci = late_w[bend - base] + newer_w, sign * (late_s[bend - base] + newer_s), 2.0 * lam - end
                if not si + ci < -level[other, q] * wi:
                    break
                x[k, start:bend] = -sign * level[other, q]
                start, first[other], c[other] = bend, q + 1, 0.0
                first[side], last[side], c[side] = 0, 0, ci
                stop[side, 0], w[side, 0], s[side, 0], level[side, 0] = i + 1, wi, si, (si + ci) / wi
        side = 0 if first[0] < last[0] else 1  # the other one is a single segment, or both are the same
        for p in range(first[side], last[side] + 1):
            x[k, start : stop[side, p]] = level[side, p] if side == 0 else -level[side, p]
            start = stop[side, p]
