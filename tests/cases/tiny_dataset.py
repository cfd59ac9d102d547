"""A data set of four samples, and files that are not it."""

import hashlib

from adagrad_diff.datasets import _registry

CONTENT = b"+1 1:0.5 3:-1\n-1 2:0.25\n+1 1:1 2:2 3:3\n-1 3:4\n"
DENSE = [[0.5, 0, -1], [0, 0.25, 0], [1, 2, 3], [0, 0, 4]]
ENTRY = _registry.Entry(
    file="tiny",
    folder="binary",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    size=len(CONTENT),
    shape=(4, 3),
    labels={1: 2, -1: 2},
    kind="patients",
    dense=True,
)
WRONG = {
    "empty": b"",
    "truncated": CONTENT[:-10],
    "flipped": CONTENT.replace(b"0.25", b"0.26"),
    "longer": CONTENT + b"+1 1:1\n",
    "HTML": b"<html>Please log in</html>",
    "pointer": b"version https://git-lfs.github.com/spec/v1\n",
}


def files(directory):
    return (
        {path.name: path.read_bytes() for path in directory.iterdir()} if directory.exists() else {}
    )
