"""OpenShift's ImageDigestMirrorSets and ImageTagMirrorSets: images that nodes pull from mirrors."""

import msgspec

from webhook.cluster.resource import Wire, cluster_wide

API_VERSION = "config.openshift.io/v1"


class MirroredSource(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True, gc=False):
    """A source of images and its mirrors."""

    source: str
    """A host (`*.example.com` for subdomains), a path or a repository."""
    mirrors: tuple[str, ...] = ()
    mirror_source_policy: str = ""

    @property
    def uses_only_mirrors(self) -> bool:
        return self.mirror_source_policy == "NeverContactSource"


class MirrorSet(msgspec.Struct, frozen=True):
    """A mirror set, for images by digest or by tag."""

    name: str
    sources: tuple[MirroredSource, ...]


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    image_digest_mirrors: tuple[MirroredSource, ...] | None = None
    image_tag_mirrors: tuple[MirroredSource, ...] | None = None


class _MirrorSet(Wire):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def _record(decoded: _MirrorSet) -> MirrorSet:
    return MirrorSet(decoded.metadata.name, decoded.spec.image_digest_mirrors or decoded.spec.image_tag_mirrors or ())


IMAGE_DIGEST_MIRROR_SETS = cluster_wide(
    "imagedigestmirrorsets", "ImageDigestMirrorSet", API_VERSION, wire=_MirrorSet, record=_record
)
IMAGE_TAG_MIRROR_SETS = cluster_wide(
    "imagetagmirrorsets", "ImageTagMirrorSet", API_VERSION, wire=_MirrorSet, record=_record
)
