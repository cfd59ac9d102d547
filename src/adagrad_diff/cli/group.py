"""The command itself, how commands end, and messages about wrong input."""

from __future__ import annotations

import difflib
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

import click

from .. import _about, _interrupt
from .._check import InputError
from .._files import read_text

REJECTED_CODE = 2  # exit code for input that cannot be used
BUG_CODE = 70  # exit code for bugs: EX_SOFTWARE of sysexits.h
HELP_WIDTH = 100  # characters
SHOWN_WORDS = 20  # of a list, in messages
BUG = (
    "This is a bug in adagrad-diff, not in your data. Please report it with all this, and with "
    "what adagrad-diff info prints."
)


class Rejected(click.ClickException):
    """The input cannot be used."""

    exit_code = REJECTED_CODE


def clean(
    command: Callable[..., Any], error_type: type[click.ClickException] = click.ClickException
) -> Callable[..., Any]:
    """End with a message and exit code 1 after wrong input, and 130 after Ctrl-C.

    Any other exception is a bug: a traceback and exit code 70.
    """

    @wraps(command)
    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            with _interrupt.Working():
                return command(*args, **options)
        except MemoryError as error:
            raise error_type(
                "There is not enough memory for these data. Use fewer columns (--drop) or rows."
            ) from error
        except BrokenPipeError:
            raise  # the reader has read enough, as head does: click ends silently
        except (InputError, OSError, ImportError) as error:
            raise error_type(printable(str(error))) from error
        except KeyboardInterrupt:
            interrupted(_interrupt.SENTENCE)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except Exception:
            traceback.print_exc()
            say(BUG)
            sys.exit(BUG_CODE)

    return wrapped


def strict(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same with exit code 2, for commands whose exit code 1 is an answer."""
    return clean(command, Rejected)


def interrupted(message: str) -> NoReturn:
    """Say what Ctrl-C has left, and end."""
    _interrupt.last_words(message)
    sys.exit(_interrupt.EXIT_CODE)


def say(message: str) -> None:
    """Print a message to stderr. Only results are printed to stdout."""
    click.echo(printable(message), err=True)


def printable(text: str) -> str:
    """Return text that a terminal only shows: names from files may hold control characters."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )


def listed(words: Iterable[str]) -> str:
    """Return the first words of a list, for messages."""
    several = list(map(repr, words))
    return ", ".join(several[:SHOWN_WORDS]) + (", ..." if len(several) > SHOWN_WORDS else "")


def choose(word: str, known: Iterable[str], what: str) -> str:
    """Return a word that is known, or raise with the nearest one."""
    known = list(known)
    if word not in known:
        near = difflib.get_close_matches(word, known, 1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Choose one of: {listed(known)}."
        raise InputError(f"There is no {what} {word!r}. {hint}")
    return word


def check_output(path: Path, mark: str, what: str) -> None:
    """Raise unless a file can be written there, in place of another one with this mark or none."""
    content, folder = mark, next(parent for parent in path.absolute().parents if parent.exists())
    if path.exists():
        content = ""
        with suppress(OSError, ValueError):
            content = read_text(path)
    elif not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise InputError(f"--out names {str(path)!r}, whose directory cannot be written.")
    if mark not in content:
        raise InputError(
            f"--out names {str(path)!r}, which exists and is not {what}: choose another name."
        )


class Problems(list[str]):
    """What is wrong with the input, collected to be reported in one message."""

    def check(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns, or collect its error about the input."""
        try:
            return function(*arguments)
        except ValueError as error:
            self.append(str(error))

    def raise_all(self) -> None:
        """Raise if there is a problem."""
        if self:
            raise InputError("\n".join(self))


@click.group(
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": HELP_WIDTH,
        "show_default": True,
    }
)
@click.version_option(message=_about.version_line(), package_name="adagrad-diff")
def main() -> None:
    """AdaGrad-Diff: fit a model, compare step-size rules, or run the paper's experiments."""
