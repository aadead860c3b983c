"""Volumes come from the cluster's storage, configuration or the pod itself, not from a driver of old.

A volume without any source counts as `emptyDir`, as the API server completes it.

**Restricted fields:**
- every source of `spec.volumes[*]` but the following

**Allowed values:** `configMap`, `csi`, `downwardAPI`, `emptyDir`, `ephemeral`, `image`, `persistentVolumeClaim`,
`projected`, `secret`
"""

from operator import attrgetter

import msgspec

from webhook.predict.pod_security.checks import Result, Revision, host_path_volumes, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.pod import Volume
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import plural, quoted

ID = "restrictedVolumes"
ALLOWED = (
    "config_map", "csi", "downward_api", "empty_dir", "ephemeral", "image", "persistent_volume_claim", "projected",
    "secret",
)  # fmt: skip
_allowed = attrgetter(*ALLOWED)
_NONE = (None,) * len(ALLOWED)
# Of several sources (which the API server refuses) upstream names the first in this order, that of the fields.
_FORBIDDEN = tuple(
    (field.name, field.encode_name) for field in msgspec.structs.fields(Volume) if field.name not in ("name", *ALLOWED)
)


def uses_allowed_sources(pod: Subject) -> Result | None:
    """Each volume by its source."""
    bad = {index: kind for index, volume in enumerate(pod.spec.volumes or ()) if (kind := _forbidden_source(volume))}
    if not bad:
        return None
    volumes = pod.spec.volumes or []
    kinds = sorted(set(bad.values()))
    who = f"{plural('volume', 'volumes', bad)} {quoted(volumes[index].name for index in bad)}"
    what = plural("restricted volume type", "restricted volume types", kinds)
    return Result(
        ID,
        "restricted volume types",
        f"{who} {plural('uses', 'use', bad)} {what} {quoted(kinds)}",
        tuple(f"spec.volumes[{index}].{kind}" for index, kind in bad.items()),
    )


def _forbidden_source(volume: Volume) -> str | None:
    if _allowed(volume) != _NONE:
        return None
    return next((name for attribute, name in _FORBIDDEN if getattr(volume, attribute) is not None), None)


register(ID, Level.RESTRICTED, Revision(Version(0), uses_allowed_sources, overrides=(host_path_volumes.ID,)))
