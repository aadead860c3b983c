"""Files for OpenShift's oc-mirror and for mirror sets, with the project's only image.

Reference: https://docs.redhat.com/en/documentation/openshift_container_platform/4.20/html/disconnected_environments
"""

from collections.abc import Mapping
from typing import Any, Final

from webhook.api.images import ImageReference

MIRROR: Final = "mirror.example.com/ml/mpijob-webhook"
"""A placeholder for a name in the registry of the disconnected network."""


def examples(image: ImageReference) -> Mapping[str, Mapping[str, Any]]:
    """Documents by file name. There are two sets: a digest set does not apply to tags, nor a tag set to digests."""
    source = f"{image.registry}/{image.repository}"
    by_digest = image.digest is not None
    kind, field = (
        ("ImageDigestMirrorSet", "imageDigestMirrors") if by_digest else ("ImageTagMirrorSet", "imageTagMirrors")
    )
    return {
        "oc-mirror.yaml": {
            "apiVersion": "mirror.openshift.io/v2alpha1",
            "kind": "ImageSetConfiguration",
            "mirror": {"additionalImages": [{"name": str(image)}]},
        },
        "mirror-set.yaml": {
            "apiVersion": "config.openshift.io/v1",
            "kind": kind,
            "metadata": {"name": "mpijob-webhook"},
            "spec": {field: [{"source": source, "mirrors": [MIRROR]}]},
        },
    }
