"""The files of the LIBSVM collection that this package knows: addresses, checksums, contents."""

from __future__ import annotations

from dataclasses import dataclass

from .._check import InputError, one_of

#: The LIBSVM page; files are below binary/ and multiclass/.
BASE_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"


class DataError(InputError):
    """A data file is missing, unreadable, or another one. The message says what to do."""


class Unavailable(DataError):
    """The file is not on this machine, and could not or should not be fetched."""


class DataWarning(UserWarning):
    """Something was wrong with a data file, and there was a way around it."""


@dataclass(frozen=True)
class Entry:
    """One file. `kind` chooses the generator of its stand-in."""

    file: str
    folder: str
    sha256: str
    size: int
    shape: tuple[int, int]
    labels: dict[int, int]
    kind: str
    dense: bool = False

    @property
    def url(self) -> str:
        """Where to fetch it."""
        return f"{BASE_URL}{self.folder}/{self.file}"


#: By name: file, folder, SHA-256, bytes, rows and features, labels with their counts, stand-in.
REGISTRY = {
    "splice.t": Entry(
        "splice.t",
        "binary",
        "f40da7cfd17860f3f1a1bb7d118f8e86c306d232ca6ac6ddefbaaef266abaa03",
        1_555_125,
        (2175, 60),
        {1: 1131, -1: 1044},
        "nucleotides",
        dense=True,
    ),
    "splice": Entry(
        "splice",
        "binary",
        "eee33566cfe8988ec26122460cc712d66c5c5b79b966b259408e803addaa584d",
        715_000,
        (1000, 60),
        {1: 517, -1: 483},
        "nucleotides",
        dense=True,
    ),
    "news20": Entry(
        "news20.bz2",
        "multiclass",
        "8c79851f6f5fdc5540a0d04a5ab728353c42d26b84e73f93bda301c06c15ffe9",
        2_376_572,
        (15_935, 62_061),
        dict.fromkeys(range(1, 21), 797),  # about as many of each
        "words",
    ),
    "a9a": Entry(
        "a9a",
        "binary",
        "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
        2_329_875,
        (32_561, 123),
        {1: 7841, -1: 24_720},
        "census",
    ),
    "mushrooms": Entry(
        "mushrooms",
        "binary",
        "f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538",
        879_712,
        (8124, 112),
        {2: 4208, 1: 3916},
        "mushrooms",
    ),
    "heart_scale": Entry(
        "heart_scale",
        "binary",
        "5defa0a4c4c5bdaf3f55ae3828310252e8565c13ee37ce279e0b86d82e7f4ce9",
        27_670,
        (270, 13),
        {1: 120, -1: 150},
        "patients",
        dense=True,
    ),
}


def entry_of(name: str, owner: str) -> Entry:
    """The entry of a data set, or a sentence that lists the names there are."""
    return REGISTRY[one_of(name, tuple(REGISTRY), "name", owner)]
