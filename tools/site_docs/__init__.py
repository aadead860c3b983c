"""The documentation as a site: `docs/` and what it links to, with pages written out of the code."""
