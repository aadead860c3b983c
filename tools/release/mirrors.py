"""Example files for OpenShift: an oc-mirror configuration and a mirror set, with the project's only image.

Reference: https://docs.redhat.com/en/documentation/openshift_container_platform/4.20/html/disconnected_environments
"""

from collections.abc import Mapping
from typing import Any, Final

from webhook.api.images import ImageReference

MIRROR: Final = "mirror.example.com/ml/mpijob-webhook"
"""A placeholder for the image's name in the disconnected network."""


def examples(image: ImageReference) -> Mapping[str, Mapping[str, Any]]:
    """Documents by file name. OpenShift has separate kinds of mirror sets for digests and for tags."""
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
