"""Sphinx's settings; `build.py` lays the sources out and calls it. Nothing here needs a network, nor do the pages."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "urbe"
author = "The urbe developers"
copyright = "The urbe developers"
version = release = version_of("urbe")

extensions = ["myst_parser", "mathml"]
exclude_patterns = ["extra", "files", ".doctrees"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
html_math_renderer = "mathml"
suppress_warnings = ["ref.python"]  # an annotation `Agent` may mean one of two; pages link full names
highlight_language = "text"
python_maximum_signature_line_length = 88
toc_object_entries = False
add_module_names = False

html_theme = "furo"
html_title = f"urbe {version}"
html_static_path = ["static"]
html_css_files = ["urbe.css"]
html_show_sphinx = False
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # summaries are fetched, which browsers refuse for files on disk
html_theme_options = {"top_of_page_buttons": []}
templates_path = ["templates"]
