"""Limits of the conversion between versions."""

from typing import Final

MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
"""Bytes of all annotations of an object: the API server accepts no more."""
MIN_OTHER_ANNOTATIONS_BYTES: Final = 16 * 1024
"""Bytes of annotations that are left for other tools."""
MAX_DEPTH: Final = 64
"""Levels of a spec in an annotation, four times as many as specs have: Python cannot copy much deeper ones."""
