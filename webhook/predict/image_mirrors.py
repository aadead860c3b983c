"""The registries from which OpenShift nodes pull an image, according to the cluster's mirror sets.

Of all sources that contain an image, the longest is used, as in the nodes' registries.conf. A digest mirror set does
not apply to tags, and a tag mirror set does not apply to digests.
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
    """Where a tag is pulled from if only the image's digests are mirrored."""

    ITSELF = auto()  # the registry that the image names
    NOBODY = auto()  # no registry: the mirror set forbids the registry that the image names


def any_digests(view: ClusterView) -> bool:
    """Whether the cluster certainly has a digest mirror set."""
    sets = view.all(IMAGE_DIGEST_MIRROR_SETS)
    return sets is not UNKNOWN and bool(sets)


def tag_source(reference: ImageReference, view: ClusterView) -> TagSource | None:
    """Where a tag is pulled from if only the image's digests are mirrored; None for other images, or if unknown."""
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
    never = any(each.uses_only_mirrors for each in by_digest if len(each.source) == longest)
    return TagSource.NOBODY if never else TagSource.ITSELF


def _holding(reference: ImageReference, sources: Iterator[MirroredSource]) -> Iterator[MirroredSource]:
    """The mirrored sources that contain the image."""
    registry = reference.registry.lower()
    for each in sources:
        if not each.mirrors:
            continue
        if each.source.startswith("*."):
            if registry.endswith(each.source[1:].lower()):
                yield each
        elif images.in_registry(reference, each.source):
            yield each
