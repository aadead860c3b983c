"""Limits for the building blocks of rules and injections."""

from typing import Final

MAX_SUGGESTIONS: Final = 5
"""Searches for a similar name in a review. Each takes milliseconds among many names."""
MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
"""Bytes of an object's annotations, a limit of the API server (apimachinery `pkg/api/validation/objectmeta.go`)."""
