"""OpenShift's ImageTagMirrorSets: the sources of images that nodes pull from mirrors, by tag only."""

import msgspec

from webhook.cluster.resource import Wire, cluster_wide
from webhook.cluster.resources.image_digest_mirror_sets import API_VERSION, MirroredSource, MirrorSet


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    image_tag_mirrors: tuple[MirroredSource, ...] | None = None


class _ImageTagMirrorSet(Wire):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def _record(found: _ImageTagMirrorSet) -> MirrorSet:
    return MirrorSet(found.metadata.name, found.spec.image_tag_mirrors or ())


IMAGE_TAG_MIRROR_SETS = cluster_wide(
    "imagetagmirrorsets", "ImageTagMirrorSet", API_VERSION, wire=_ImageTagMirrorSet, record=_record
)
