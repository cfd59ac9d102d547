"""The page of the command line: what `adagrad-diff COMMAND --help` prints, for every command."""

from __future__ import annotations

import click
from docutils import nodes
from docutils.parsers.rst import Directive

WIDTH = 88


def commands(command, name):
    """The command and those below it, each with the whole name that a user types."""
    yield name, command
    for below, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{name} {below}")


class Commands(Directive):
    def run(self):
        from adagrad_diff.cli import main

        made = []
        settings = {**main.context_settings, "max_content_width": WIDTH}
        for name, command in commands(main, "adagrad-diff"):
            help_text = command.get_help(
                click.Context(command, info_name=name, terminal_width=WIDTH, **settings)
            )
            section = nodes.section(
                ids=[nodes.make_id(name)], names=[nodes.fully_normalize_name(name)]
            )
            section += nodes.title(text=name)
            section += nodes.literal_block(help_text, help_text, language="text")
            made.append(section)
        return made


def setup(app):
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
