"""The report page of each problem: what `reproduce` ends with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..study import report
from ..study.files import write_all
from ..study.of_sweep import of_sweep
from ..study.result import FStar, Sensitivity

if TYPE_CHECKING:
    from .protocol import Study


def as_sensitivity(study: Study) -> Sensitivity:
    """The runs of a study as a comparison of its two rules, with gaps F - F_star as in the paper."""
    by = study.provenance["refined_by"]
    text = "The optimum is the smallest value that any run has seen, {} with eta = {:.3g} having run ten times as long."
    return of_sweep(study.grid, FStar(study.F_star, "protocol", text.format(by["rule"], by["eta"])))


def write_pages(studies: Mapping[str, Study], out: Path, scales: Mapping[str, str]) -> list[Path]:
    """Write report_hinge.html and so on; each leads to the others."""
    names = {name: f"report_{name}.html" for name in studies}
    pages = {}
    for name, study in studies.items():
        etas, starts = study.grid.sizes["eta"], study.grid.sizes["seed"]
        command = (
            f"adagrad-diff reproduce {name} --scale {scales[name]} --etas {etas} --starts {starts}"
        )
        about = [
            ("Problem", study.title),
            ("Data", study.data if study.real else f"{study.data}: generated, not the real data"),
        ]
        about += [(label.replace("_", " "), str(value)) for label, value in study.choices.items()]
        content = as_sensitivity(study).content(
            title=f"AdaGrad-Diff and AdaGrad: {study.title}", about=about, command=[command]
        )
        content["others"] = [
            [studies[other].title, page] for other, page in names.items() if other != name
        ]
        text = report.page(content)
        pages[names[name]] = lambda path, text=text: path.write_text(text, encoding="utf-8")
    return write_all(out, pages)
