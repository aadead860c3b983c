"""Sphinx's settings."""
# ruff: noqa: A001 - Sphinx defines the names

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
# No typographic quotes, because readers copy commands.
smartquotes = False
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
myst_heading_anchors = 6
# No extensions: the one for math would load a script from a different host, and change dollar signs of shell commands.
myst_enable_extensions: list[str] = []
# Pygments cannot parse recorded sessions and this project's formats.
suppress_warnings = ["misc.highlighting_failure"]
