"""Run benchmarks: all of them, some modules (`core`), or single cases (`core.sparse`). Exit code 1 if a 'must' is missed."""

from __future__ import annotations

import os
import platform
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

from ._timing import COLUMNS, DISTURBED, HEADINGS, Row, foreign_work


def main(wanted: list[str]) -> int:
    here = Path(__file__).parent
    modules = {
        name: import_module(f"{__package__}.{name}")
        for p in sorted(here.glob("[!_]*.py"))
        if (name := p.stem)
    }
    cases = {
        name: {case.__name__: case for case in module.CASES} for name, module in modules.items()
    }
    known = [*cases, *(f"{name}.{case}" for name in cases for case in cases[name])]
    if unknown := [name for name in wanted if name not in known]:
        print(
            f"There is no benchmark {unknown[0]!r}. There are: {', '.join(known)}.", file=sys.stderr
        )
        return 2

    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    print(
        f"Python {platform.python_version()}, {versions}; {os.cpu_count()} cores. Ratios are ours / peer's."
    )
    missed: list[Row] = []
    for name, module in modules.items():
        chosen = [
            case
            for key, case in cases[name].items()
            if not wanted or {name, f"{name}.{key}"} & {*wanted}
        ]
        if not chosen:
            continue
        title = (module.__doc__ or name).strip().splitlines()[0]
        print(f"\n{name}: {title}\n{COLUMNS.format(*HEADINGS).rstrip()}")
        for case in chosen:
            before, begin, rows = foreign_work(), perf_counter(), []
            for row in case():
                print(row, flush=True)
                rows.append(row)
            missed += [row for row in rows if row.verdict == "OVER"]
            cores = 0.0 if before is None else (foreign_work() - before) / (perf_counter() - begin)
            if cores > DISTURBED and any(row.unit == "s" for row in rows):
                print(
                    f"  ! Other processes used {cores:.1f} cores meanwhile: measure {name}.{case.__name__} again.",
                    flush=True,
                )
    if missed:
        print(f"\nOver the limit: {'; '.join(row.name for row in missed)}.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
