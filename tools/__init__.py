"""Generators of manifests, chart, schemas, documentation and releases. The wheel does not contain them."""
