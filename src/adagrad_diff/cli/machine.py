"""What is on this machine: `datasets` and `info`."""

from __future__ import annotations

from importlib.util import find_spec

from .. import _about
from .group import clean, click, main, one_line, say

PACKED = ".2bit"  # how files inside the package end


def known(names: tuple[str, ...]) -> tuple[str, ...]:
    """The same names, all of which are those of data sets: nothing is fetched if one of them is not."""
    from ..datasets import names as all_names

    for name in names:
        if name not in all_names():
            raise click.ClickException(
                one_line(
                    f"There is no data set {name!r}. The data sets are: {', '.join(all_names())}."
                )
            )
    return names


@main.group(short_help="Data sets: which there are, and how to get them.")
def datasets() -> None:
    """The LIBSVM data sets: which there are, where they are, and how to get them."""


@datasets.command("list", short_help="All data sets, and where they are.")
@click.option(
    "--data", type=click.Path(exists=True, file_okay=False), help="A directory to look in first."
)
@clean
def list_(data: str | None) -> None:
    """All data sets with their sizes, and whether they are on this machine."""
    from .. import datasets as sets

    for name in sets.names():
        rows, columns = sets.shape(name)
        path = sets.where(name, data)
        place = (
            "not here" if path is None else "inside the package" if path.suffix == PACKED else path
        )
        click.echo(f"{name:<12} {rows:>6} x {columns:<6} {place}")


@datasets.command(short_help="Fetch data sets, and print where they are.")
@click.argument("names", nargs=-1, required=True, metavar="NAME... | all")
@click.option(
    "--out", type=click.Path(file_okay=False), help="Directory for the files.  [default: the cache]"
)
@clean
def fetch(names: tuple[str, ...], out: str | None) -> None:
    """Fetch data sets from the LIBSVM page, and print where they are.

    Those inside the package are written as LIBSVM's text, without a network.
    """
    from .. import datasets as sets

    for name in sets.names() if names == ("all",) else known(names):
        click.echo(sets.fetch(name, out))


@datasets.command("where", short_help="Print where a data set is.")
@click.argument("name")
@click.option(
    "--data", type=click.Path(exists=True, file_okay=False), help="A directory to look in first."
)
@clean
def where_(name: str, data: str | None) -> None:
    """Print where a data set is; exit code 1 if it is not on this machine."""
    from .. import datasets as sets

    known((name,))
    path = sets.where(name, data)
    if path is None:
        raise click.ClickException(
            f"{name} is not on this machine. adagrad-diff datasets fetch {name} gets it."
        )
    if path.suffix == PACKED:
        say(
            f"{name} comes with the package, packed. adagrad-diff datasets fetch {name} writes it as text."
        )
    click.echo(path)


@main.command(short_help="Versions and machine, for a bug report.")
@clean
def info() -> None:
    """Versions, and what this machine has: to be pasted into a bug report."""
    from ..datasets import cache

    click.echo(_about.report())
    if find_spec("pooch"):
        click.echo(f"  data cache     {cache()}")
