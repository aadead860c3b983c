"""Generators of shipped files: manifests, chart, schemas, documentation, releases. None is in the wheel."""
