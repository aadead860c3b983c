"""Sphinx's settings. The browser asks no other host for anything."""
# ruff: noqa: A001 - Sphinx gives the names

from webhook import PROGRAM, __version__

project = PROGRAM
version = release = __version__
copyright = f"the authors of {PROGRAM}"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = f"{PROGRAM} {__version__}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_permalinks = True
# What is quoted is to be copied.
smartquotes = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
myst_heading_anchors = 6
# Math would be loaded from elsewhere, and dollars are shells'.
myst_enable_extensions: list[str] = []
# Pygments cannot read recorded sessions and our own formats to the end.
suppress_warnings = ["misc.highlighting_failure"]
