"""The documentation site: ``python -m sphinx -W --keep-going -b html docs docs/_build/html``."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "tools"))

import paceline  # noqa: E402

project = "paceline"
author = "The paceline authors"
copyright = "the paceline authors, MIT licence"
version = release = paceline.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "outside",
    "root_pages",
]
exclude_patterns = ["_build", "tools", "templates", "gallery/*.[ipz]*", "**sg_execution_times.rst"]
templates_path = ["templates"]
suppress_warnings = ["config.cache"]  # functions in sphinx_gallery_conf; nothing depends on it

# Pages are Markdown that a code host shows as well.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_timeout = 600  # seconds a cell: policies may have to be compiled, on a busy machine
nb_execution_raise_on_error = True
nb_execution_mode = "auto"
nb_merge_streams = True
copybutton_exclude = ".linenos, .gp, .go"

# Names in single backticks in docstrings are links where there is something to link to.
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"(drawing|later|gunicorn_app)\.py$",
    "image_scrapers": ("gallery_figures.figures_drawn",),
    "reset_modules": (),
    "reset_argv": "gallery_figures.arguments",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "paceline"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
html_show_sourcelink = False
