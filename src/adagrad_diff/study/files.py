"""Results that are written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .._files import partial, put, reason

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
    try:
        out.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            files = {name: stack.enter_context(partial(out / name)) for name in writers}
            for name, write in writers.items():
                write(Path(files[name].name))
            for name, file in files.items():
                put(file, out / name)
    except OSError as error:
        names = ", ".join(writers)
        raise OSError(
            f"Cannot write {names} into {str(out)!r}: {reason(error)}. Choose another directory, or make room there."
        ) from error
    return [out / name for name in writers]
