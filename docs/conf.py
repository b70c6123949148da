"""Settings of the site: ``make docs`` builds it into build/docs."""

import os
import sys
from pathlib import Path

# Examples show the warnings and the progress of one thread; set before numpy is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent / "_site"))

import nysplus

project = "nysplus"
author = "The nysplus developers"
copyright = author
version = release = nysplus.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "drawing_page",
    "links",
    "members",
]
exclude_patterns = ["_site"]
templates_path = ["_site/templates"]
default_role = "code"
add_function_parentheses = False
toc_object_entries_show_parents = "hide"

# -- pages ---------------------------------------------------------------------------------------

myst_heading_anchors = 4
myst_links_external_new_tab = False
copybutton_exclude = ".linenos, .gp, .go"

# -- reference -----------------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# -- gallery -------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": [
        "../examples/landmarks",
        "../examples/kilobytes",
        "../examples/rows",
        "../examples/predictions",
        "../examples/shipping",
    ],
    "within_subsection_order": "FileNameSortKey",
    # programs such as the demo are not pages
    "ignore_pattern": "^(?!plot_)",
    "filename_pattern": "plot_",
    "image_srcset": ["2x"],
    "remove_config_comments": True,
    "show_memory": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "backreferences_dir": None,
    "doc_module": ("nysplus",),
    "reference_url": {"nysplus": None},
}

# -- theme ---------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "nysplus"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    # pages with two columns of their own have no third one
    "secondary_sidebar_items": {"**": ["page-toc"], "guide/from_other_libraries": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
html_context = {"default_mode": "auto"}  # light or dark, as the browser prefers
