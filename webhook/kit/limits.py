"""Limits for the building blocks of rules and injections."""

from typing import Final

MAX_SUGGESTIONS: Final = 5
"""Maximum number of searches for a similar name in a review. A search among many names takes milliseconds."""
MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
"""Maximum number of bytes of an object's annotations.

The API server has the same limit (apimachinery `pkg/api/validation/objectmeta.go`).
"""
