"""What is on this machine: `datasets` and `info`."""

from __future__ import annotations

from importlib.util import find_spec

from ..common import about
from .group import clean, click, main


@main.group()
def datasets() -> None:
    """The LIBSVM data sets: which there are, where they are, and how to get them."""


@datasets.command("list")
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="A directory to look in first.")
@clean
def list_(data: str | None) -> None:
    """All data sets with their sizes, and whether they are on this machine."""
    from .. import datasets as sets

    for name in sets.names():
        rows, columns = sets.shape(name)
        click.echo(f"{name:<12} {rows:>6} x {columns:<6} {sets.where(name, data) or 'not here'}")


@datasets.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME... | all")
@clean
def fetch(names: tuple[str, ...]) -> None:
    """Fetch data sets from the LIBSVM page into the cache, and print where they are."""
    from .. import datasets as sets

    for name in sets.names() if names == ("all",) else names:
        click.echo(sets.fetch(name))


@datasets.command("where")
@click.argument("name")
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="A directory to look in first.")
@clean
def where_(name: str, data: str | None) -> None:
    """Print where a data set is; exit code 1 if it is not on this machine."""
    from .. import datasets as sets

    path = sets.where(name, data)
    if path is None:
        raise click.ClickException(f"{name} is not on this machine. adagrad-diff datasets fetch {name} gets it.")
    click.echo(path)


@main.command()
@clean
def info() -> None:
    """Versions, and what this machine has: to be pasted into a bug report."""
    from ..datasets import cache

    click.echo(about.report())
    if find_spec("pooch"):
        click.echo(f"  data cache     {cache()}")
