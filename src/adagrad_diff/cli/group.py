"""The command itself, which the other files of this room give their own commands, and how commands end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn

from ..common import about
from ..common.extras import require

if TYPE_CHECKING:
    import click
else:
    click = require("click", "paper")

__all__ = ["Refused", "clean", "click", "interrupted", "main", "one_line", "say", "strict"]

INTERRUPTED_CODE = 130  # the usual exit code after Ctrl-C
REFUSED_CODE = 2  # what was given cannot be used


class Refused(click.ClickException):
    """What was given cannot be used: one sentence."""

    exit_code = REFUSED_CODE


def clean(command: Callable[..., Any]) -> Callable[..., Any]:
    """What a user can mend ends in one sentence and exit code 1, Ctrl-C in one and 130; neither in a traceback."""

    @wraps(command)
    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            return command(*args, **options)
        except (ValueError, OSError, ImportError) as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            interrupted("Interrupted. The same command begins again.")

    return wrapped


def strict(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same with exit code 2, for commands that are given files of the user's own: 1 is an answer that is not good."""

    @wraps(command)
    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            return command(*args, **options)
        except MemoryError as error:
            raise Refused("There is not enough memory for these data. Take fewer columns (--drop) or rows.") from error
        except (ValueError, OSError, ImportError) as error:
            raise Refused(one_line(str(error))) from error

    return clean(wrapped)


def interrupted(sentence: str) -> NoReturn:
    """Say what Ctrl-C has left, and end."""
    say(f"\n{sentence}")
    sys.exit(INTERRUPTED_CODE)


def say(line: str) -> None:
    """A message: results alone go to stdout."""
    click.echo(line, err=True)


def one_line(text: str) -> str:
    """One line without anything that a terminal would obey: names come from files."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(message=about.version_line(), package_name="adagrad-diff")
def main() -> None:
    """AdaGrad-Diff: fit a model, compare step-size rules on your data, or run the paper's experiments."""
