"""How Sphinx builds the site: `make docs`. It needs packages from PyPI, the site no network."""

import os
import sys
from importlib.metadata import files
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("MPLBACKEND", "Agg")

from public_names import public_names  # noqa: E402

import adagrad_diff  # noqa: E402

project, author = "adagrad-diff", "The adagrad-diff developers"
copyright = author
version = release = adagrad_diff.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "commands",
    "public_names",
    "references",
    "plain_text",
    "tables",
]
exclude_patterns = [
    "_build",
    "_ext",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]  # these load scripts from elsewhere
nitpicky = (
    True  # a link that leads nowhere fails the build; `references` says what counts as a link
)
suppress_warnings = ["config.cache"]  # functions in the gallery's settings

# Pages are MyST and docstrings numpydoc. A word in single backticks that is one of our names is a
# link.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
default_role = "py:obj"
autosummary_generate = True
# Files whose names differ in capitals only are one file on some disks.
autosummary_filename_map = {
    name: f"{name}_class"
    for name in public_names()
    if any(name != n and name.lower() == n for n in public_names())
}
autodoc_typehints = "none"  # the types are in the docstrings, in words
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"  # `predict()`, not the name of its class again
numpydoc_show_class_members = False  # autodoc shows them
templates_path = ["_templates"]


def mathjax():
    """One file of MathJax that draws formulas as SVG, and so needs no fonts."""
    return next(
        str(path.locate()) for path in files("sphinx-mathjax-offline") if path.name == "tex-svg.js"
    )


html_theme = "pydata_sphinx_theme"
html_title = "adagrad-diff"
html_static_path = ["_static", mathjax()]
mathjax_path = "tex-svg.js"
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_search_summary = (
    False  # it would fetch the pages found, which a browser forbids for pages from a disk
)
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "adagrad-diff"},
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 7,
}
html_sidebars = {"index": [], "changelog": []}
html_context = {"default_mode": "auto"}  # light or dark as the reader's system is


def house_style(gallery, name):
    """Give figures of the gallery our fonts, also after the example has ended."""
    import matplotlib as mpl

    from adagrad_diff.experiments.style import MATPLOTLIB

    mpl.rcParams.update(MATPLOTLIB)


sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"examples/",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "reset_modules": ("matplotlib", house_style),
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1e9,  # seconds are the benchmarks' business
    "show_signature": False,
    "copyfile_regex": r".*\.rst",
    "within_subsection_order": "FileNameSortKey",
}
