"""The command line, also as ``python -m adagrad_diff``."""

import sys

from . import _interrupt


def main() -> None:
    """Run the command, or say which package is missing. `--version` and `info` work without any."""
    _interrupt.take_over()  # first, because libraries take a second to load
    try:
        from ._messages import require

        require("click", "cli")
        from .cli import main as command
    except ModuleNotFoundError as error:
        from . import _about

        answers = {"--version": _about.version_line, "info": _about.report}
        if len(sys.argv) != 2 or sys.argv[1] not in answers:
            sys.exit(str(error))
        print(answers[sys.argv[1]]())
        return
    command(prog_name="adagrad-diff")


if __name__ == "__main__":
    main()
