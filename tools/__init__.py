"""Generators of manifests, chart, schemas, documentation and releases. They are not part of the wheel."""
