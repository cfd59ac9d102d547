"""One run at a time: a file that is held until its run ends, or is killed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from .files import NotRegularFileError, hold, open_regular, reason


def take(path: Path, in_use: str) -> Any:
    """The file, held. BlockingIOError, with this sentence, if somebody else has it.

    None where none can be had: nothing can be written there, or the file system has no locks.
    """
    while True:
        try:
            file = open_regular(path, "ab")
        except (NotRegularFileError, IsADirectoryError) as error:
            raise type(error)(
                f"The lock file {path} cannot be used: {reason(error)}. Delete it, and call again."
            ) from None
        except OSError:
            return None
        try:
            hold(file, wait=False)
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        except BlockingIOError:
            file.close()
            raise BlockingIOError(in_use) from None
        except FileNotFoundError:
            pass
        except OSError:
            file.close()
            return None
        file.close()  # who had it has removed it in the moment before it was held


def release(file: Any) -> None:
    """Remove it, while nobody else can take it."""
    if file is None or file.closed:
        return
    with suppress(
        OSError
    ):  # Windows removes nothing that is open: then it stays, and belongs to nobody
        if os.fstat(file.fileno()).st_size == 0:  # else it is somebody's file of that name
            os.unlink(file.name)
    file.close()
