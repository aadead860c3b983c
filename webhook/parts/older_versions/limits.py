"""Limits of the conversion between versions."""

from typing import Final

MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
"""Bytes of all annotations of an object: the API server's limit."""
MIN_OTHER_ANNOTATIONS_BYTES: Final = 16 * 1024
"""Bytes of annotations reserved for other tools."""
MAX_DEPTH: Final = 64
"""Nested levels of a spec in an annotation; valid specs have up to 16. Python cannot copy much deeper specs."""
