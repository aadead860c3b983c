"""The registries from which OpenShift nodes pull an image, according to the cluster's mirror sets.

A mirror set lists mirrors for each source, which is a registry or a path in it. If several sources contain the image,
nodes use the longest source. Digest mirror sets apply only to references by digest, and tag mirror sets only to
references by tag.
https://github.com/containers/image/blob/v5.36.2/docs/containers-registries.conf.5.md
"""

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
    NOBODY = auto()  # the mirror set forbids that registry


def any_digests(view: ClusterView) -> bool:
    """Whether there are digest mirror sets. Also False if this is unknown."""
    sets = view.all(IMAGE_DIGEST_MIRROR_SETS)
    return sets is not UNKNOWN and bool(sets)


def tag_source(reference: ImageReference, view: ClusterView) -> TagSource | None:
    """Where a tag comes from if only digests are mirrored. None for other images, or if the mirror sets are unknown."""
    if reference.digest is not None:
        return None
    digests, tags = view.all(IMAGE_DIGEST_MIRROR_SETS), view.all(IMAGE_TAG_MIRROR_SETS)
    if digests is UNKNOWN or tags is UNKNOWN or not digests:
        return None
    by_digest = [
        source for mirror_set in digests.values() for source in mirror_set.sources if _holds(source, reference)
    ]
    if not by_digest:
        return None
    longest = max(len(source.source) for source in by_digest)
    by_tag = (source for mirror_set in tags.values() for source in mirror_set.sources if _holds(source, reference))
    if any(len(source.source) >= longest for source in by_tag):
        return None
    never = any(source.uses_only_mirrors for source in by_digest if len(source.source) == longest)
    return TagSource.NOBODY if never else TagSource.ITSELF


def _holds(source: MirroredSource, reference: ImageReference) -> bool:
    if not source.mirrors:
        return False
    if source.source.startswith("*."):
        return reference.registry.lower().endswith(source.source[1:].lower())
    return images.in_registry(reference, source.source)
