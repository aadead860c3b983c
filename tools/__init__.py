"""Generators of shipped files: manifests, chart, schemas, pages of the documentation, releases. None is in the wheel."""
