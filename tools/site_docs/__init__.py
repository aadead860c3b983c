"""The documentation as a site: `docs/`, linked files, and pages that are generated from the code."""
