"""Results that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

Writer = Callable[[Path], Any]


def write_all(out: Any, writers: Mapping[str, Writer]) -> list[Path]:
    """Write several files into a directory; older ones are replaced only when all the new ones are complete.

    Parameters
    ----------
    out : path
        The directory. It is made if it does not exist.
    writers : dict of file name -> function of a path
        Each writes one file.

    Returns
    -------
    list of Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as out:
    ...     [path.name for path in write_all(out, {"answer.txt": lambda path: path.write_text("42")})]
    ['answer.txt']
    """
    out = Path(out)
    # The process number keeps two runs that write into one directory apart.
    partial = {name: out / f".{name}.{os.getpid()}.partial" for name in writers}
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, write in writers.items():
            write(partial[name])
        for name, path in partial.items():
            os.replace(path, out / name)
    except OSError as error:
        reason = error.strerror or str(error)
        files = ", ".join(writers)
        raise OSError(
            f"Cannot write {files} into {str(out)!r}: {reason}. Choose another directory, or make room there."
        ) from error
    finally:
        for path in partial.values():
            _remove(path)
    return [out / name for name in writers]


def _remove(path: Path) -> None:
    with suppress(OSError):  # where there is no directory, there is nothing to remove
        path.unlink(missing_ok=True)
