"""The command itself, which the other files of this room give their own commands, and how commands end."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn

from .. import _about, _interrupt
from .._check import InputError
from .._messages import require

if TYPE_CHECKING:
    import click
else:
    click = require("click", "paper")

__all__ = ["Refused", "clean", "click", "interrupted", "main", "one_line", "say", "strict"]

REFUSED_CODE, FAULT_CODE = 2, 70  # what was given cannot be used; a bug (EX_SOFTWARE of sysexits.h)
HELP_WIDTH = 100  # of help, on terminals that are as wide
OUR_FAULT = "This is a fault of adagrad-diff, not of your data. Please report it with all this, and what adagrad-diff info prints."


class Refused(click.ClickException):
    """What was given cannot be used: one sentence."""

    exit_code = REFUSED_CODE


def clean(
    command: Callable[..., Any], refusal: type[click.ClickException] = click.ClickException
) -> Callable[..., Any]:
    """What a user can mend ends in one sentence and exit code 1, Ctrl-C in one and 130; neither in a traceback.

    Any other exception is a bug: a traceback, and exit code 70.
    """

    @wraps(command)
    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            with _interrupt.Working():
                return command(*args, **options)
        except MemoryError as error:
            raise refusal(
                "There is not enough memory for these data. Take fewer columns (--drop) or rows."
            ) from error
        except BrokenPipeError:
            raise  # the reader has read enough, as head does: click ends without a word
        except (InputError, OSError, ImportError) as error:
            raise refusal(one_line(str(error))) from error
        except KeyboardInterrupt:
            interrupted(_interrupt.SENTENCE)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except Exception:
            traceback.print_exc()
            say(OUR_FAULT)
            sys.exit(FAULT_CODE)

    return wrapped


def strict(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same with exit code 2, for commands that are given files of the user's own: 1 is an answer that is not good."""
    return clean(command, Refused)


def interrupted(sentence: str) -> NoReturn:
    """Say what Ctrl-C has left, and end."""
    _interrupt.last_words(sentence)
    sys.exit(_interrupt.EXIT_CODE)


def say(line: str) -> None:
    """A message: results alone go to stdout."""
    click.echo(line, err=True)


def one_line(text: str) -> str:
    """One line without anything that a terminal would obey: names come from files."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": HELP_WIDTH}
)
@click.version_option(message=_about.version_line(), package_name="adagrad-diff")
def main() -> None:
    """AdaGrad-Diff: fit a model, compare step-size rules on your data, or run the paper's experiments."""
