"""The sources from which OpenShift nodes pull an image, by the mirror sets of the cluster.

The longest source that contains an image is used, as in the nodes' registries.conf. A set of digests never
serves a tag, and the other way round.
https://github.com/containers/image/blob/v5.36.2/docs/containers-registries.conf.5.md
"""

from collections.abc import Iterator
from enum import Enum, auto

from webhook.api import images
from webhook.api.images import ImageReference
from webhook.cluster.resources.image_mirror_sets import (
    IMAGE_DIGEST_MIRROR_SETS,
    IMAGE_TAG_MIRROR_SETS,
    MirroredSource,
)
from webhook.cluster.view import UNKNOWN, ClusterView


class TagSource(Enum):
    """The sources of a tag of an image that is mirrored by digest only."""

    ITSELF = auto()  # the registry that the image names
    NOBODY = auto()  # nowhere: it may not use that registry


def any_digests(view: ClusterView) -> bool:
    """Whether the cluster is known to mirror anything by digest."""
    found = view.all(IMAGE_DIGEST_MIRROR_SETS)
    return found is not UNKNOWN and bool(found)


def tag_source(reference: ImageReference, view: ClusterView) -> TagSource | None:
    """The sources of a tag if only digests of the image are mirrored; None for other images, and if unknown."""
    if reference.digest is not None:
        return None
    digests, tags = view.all(IMAGE_DIGEST_MIRROR_SETS), view.all(IMAGE_TAG_MIRROR_SETS)
    if digests is UNKNOWN or tags is UNKNOWN or not digests:
        return None
    by_digest = [*_holding(reference, (source for each in digests.values() for source in each.sources))]
    if not by_digest:
        return None
    longest = max(len(each.source) for each in by_digest)
    for source in _holding(reference, (source for each in tags.values() for source in each.sources)):
        if len(source.source) >= longest:
            return None
    never = any(each.never_asked for each in by_digest if len(each.source) == longest)
    return TagSource.NOBODY if never else TagSource.ITSELF


def _holding(reference: ImageReference, sources: Iterator[MirroredSource]) -> Iterator[MirroredSource]:
    """The sources with mirrors that contain the image."""
    registry = reference.registry.lower()
    for each in sources:
        if not each.mirrors:
            continue
        if each.source.startswith("*."):
            if registry.endswith(each.source[1:].lower()):
                yield each
        elif images.in_registry(reference, each.source):
            yield each
