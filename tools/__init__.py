"""Generators of manifests, chart, schemas, documentation and releases, outside of the wheel."""
