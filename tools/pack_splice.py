"""Pack LIBSVM's splice and splice.t for the package, at two bits per base: python tools/pack_splice.py DIR

DIR holds the two files of the LIBSVM page; their checksums are compared before, and those of what comes back after packing.
"""

import hashlib
import sys
from pathlib import Path

import numpy as np

from adagrad_diff.datasets import _inside
from adagrad_diff.datasets._registry import REGISTRY


def packed(text: bytes) -> bytes:
    """The inverse of `_inside.as_text` and `_inside.unpack`."""
    lines = [line.split() for line in text.decode().splitlines()]
    positive = np.array([line[0] == "+1" for line in lines])
    base = (
        np.array([[float(term.split(":")[1]) for term in line[1:]] for line in lines]).astype(
            np.uint8
        )
        - 1
    )
    return (
        np.packbits(positive).tobytes()
        + np.packbits(np.stack([base >> 1, base & 1], axis=-1)).tobytes()
    )


def main(folder: Path) -> None:
    """Write both, or say which file is not the right one."""
    for entry in (entry for entry in REGISTRY.values() if entry.inside):
        text = (folder / entry.file).read_bytes()
        if hashlib.sha256(text).hexdigest() != entry.sha256:
            sys.exit(f"{folder / entry.file} is not the file of the LIBSVM page: {entry.url}")
        content = packed(text)
        if _inside.as_text(*_inside.unpack(content, entry.shape)) != text:
            sys.exit(f"{entry.file} does not come back as it was.")
        path = _inside.packed(entry)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        print(f"{path.name}: {len(text):,} bytes of text in {len(content):,}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
