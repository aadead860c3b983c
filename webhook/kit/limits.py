"""Limits of the building blocks of rules and injections."""

from typing import Final

MAX_SUGGESTIONS: Final = 5
"""Suggestions of a name in a review: each takes milliseconds among many names."""
MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
"""Bytes of all annotations of an object: the API server takes no more (apimachinery
`pkg/api/validation/objectmeta.go`)."""
