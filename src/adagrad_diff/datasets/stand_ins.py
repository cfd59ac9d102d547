"""Generated data in place of a missing file: same shape, same kind of numbers, something to learn.

They are for trying things out: results on them are not results on the data they stand for, and
their names say so. Each is seeded by the name of the data set alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy.sparse import csr_array

from ._registry import Entry, entry_of

Data = tuple[Any, np.ndarray]

CENSUS = (5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41)  # categories per field of a9a
MUSHROOMS = (6, 4, 10, 2, 9, 2, 2, 2, 12, 2, 4, 4, 9, 9, 1, 4, 3, 5, 9, 6, 7)


def generate(name: str) -> Data:
    """Return the stand-in for a data set: a data matrix and labels.

    Examples
    --------
    >>> A, b = generate("splice.t")
    >>> A.shape, sorted(set(A.ravel().tolist())), int((b > 0).sum())
    ((2175, 60), [1.0, 2.0, 3.0, 4.0], 1131)
    >>> A, b = generate("news20")
    >>> A.shape, int(b.min()), int(b.max())
    ((15935, 62061), 1, 20)
    """
    entry = entry_of(name, "generate")
    rows = np.random.default_rng(list(name.encode()))
    rule = np.random.default_rng(list(entry.kind.encode()))  # the same for splice and splice.t
    return GENERATORS[entry.kind](entry, rule, rows)


def nucleotides(entry: Entry, rule: Generator, rows: Generator) -> Data:
    """Codes 1..4, nearly equally frequent; twelve positions of the window decide, up to noise."""
    n, d = entry.shape
    codes = 1.0 + rows.choice(4, size=(n, d), p=(0.23, 0.27, 0.26, 0.24))
    weight = np.zeros(d)
    weight[rule.choice(d, 12, replace=False)] = rule.choice([-1, 1], 12) * rule.uniform(
        0.5, 1.5, 12
    )
    return codes, _labels(entry, (codes - 2.5) @ weight, 0.45, rows)


def words(entry: Entry, rule: Generator, rows: Generator) -> Data:
    """Raw word counts.

    Word r of the vocabulary has frequency 1 / (r + 10), and is used k times or more in a text with
    probability k^-2.2. Every class prefers 150 words, from which it takes one in seven. Lengths of
    texts are log-normal.
    """
    n, d = entry.shape
    classes = len(entry.labels)
    b = np.arange(n) % classes
    length = np.ceil(61 * np.exp(0.85 * rows.standard_normal(n))).astype(int)
    text = np.repeat(np.arange(n), length)
    frequency = np.cumsum(1 / (np.arange(d) + 10))
    word = np.searchsorted(frequency, rows.random(len(text)) * frequency[-1])
    # Neither the commonest words nor the rarest.
    preferred = np.sort(rule.integers(100, d // 3, (classes, 150)), axis=1)
    special = np.flatnonzero(rows.random(len(text)) < 1 / 7)
    rank = (150 ** rows.random(len(special))).astype(int) - 1  # density 1 / rank
    word[special] = preferred[b[text[special]], rank]
    place, first = np.unique(text * d + word, return_index=True)
    count = np.minimum(np.floor(rows.random(len(text)) ** (-1 / 2.2)), 500)[first]
    start = np.searchsorted(place, np.arange(n + 1) * d)
    A = csr_array((count, (place % d).astype(np.int32), start.astype(np.int32)), shape=(n, d))
    return A, b + 1.0


def patients(entry: Entry, rule: Generator, rows: Generator) -> Data:
    """Dense rows in [-1, 1]: measurements, and a few yes-or-no fields of -1 and +1."""
    n, d = entry.shape
    A = np.clip(0.4 * rows.standard_normal((n, d)), -1, 1).round(6)
    A[:, 1::4] = np.where(A[:, 1::4] > 0.1, 1.0, -1.0)
    return A, _labels(entry, A @ rule.standard_normal(d), 0.4, rows)


def one_hot(
    entry: Entry,
    rule: Generator,
    rows: Generator,
    fields: tuple[int, ...],
    unknown: dict[int, float],
    noise: float,
) -> Data:
    """One category of every field per row. Category k has frequency 1 / k and its own weight."""
    n, d = entry.shape
    indicators = []
    for j, size in enumerate(fields):
        frequency = 1 / np.arange(1, size + 1)
        category = rows.choice(size, n, p=frequency / frequency.sum())
        known = rows.random((n, 1)) >= unknown.get(j, 0.0)
        indicators.append(np.eye(size)[category] * known)
    A = csr_array(np.hstack(indicators))
    return A, _labels(entry, A @ rule.standard_normal(d), noise, rows)


def _labels(entry: Entry, score: np.ndarray, noise: float, rows: Generator) -> np.ndarray:
    """Return the first label for the rows of highest score, up to noise, else the second.

    The noise is relative to the standard deviation of the scores. There are as many of each label
    as in the file.
    """
    score = score + noise * score.std() * rows.standard_normal(len(score))
    (first, number), (second, _) = entry.labels.items()
    b = np.full(len(score), float(second))
    b[np.argsort(-score, kind="stable")[:number]] = first
    return b


GENERATORS: dict[str, Callable[[Entry, Generator, Generator], Data]] = {
    "nucleotides": nucleotides,
    "words": words,
    "patients": patients,
    "census": partial(one_hot, fields=CENSUS, unknown={1: 0.06, 6: 0.06, 13: 0.02}, noise=0.7),
    "mushrooms": partial(one_hot, fields=MUSHROOMS, unknown={}, noise=0.1),
}
