"""The command line, also as ``python -m adagrad_diff``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command, or say what it needs."""
    try:
        from .cli import main as command
    except ModuleNotFoundError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:  # libraries take a moment to load
        sys.exit(130)
    command(prog_name="adagrad-diff")


if __name__ == "__main__":
    main()
