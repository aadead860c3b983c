"""No volume shows a directory of the host.

**Restricted fields:**
- `spec.volumes[*].hostPath`

**Allowed values:** unset
"""

from webhook.predict.pod_security.checks import Result, Revision, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import plural, quoted

ID = "hostPathVolumes"


def mounts_no_host_path(pod: Subject) -> Result | None:
    """Whatever the path, and even where no container mounts the volume."""
    volumes = pod.spec.volumes or ()
    bad = {index: volume.name for index, volume in enumerate(volumes) if volume.host_path is not None}
    if not bad:
        return None
    return Result(
        ID,
        "hostPath volumes",
        f"{plural('volume', 'volumes', bad)} {quoted(bad.values())}",
        tuple(f"spec.volumes[{index}].hostPath" for index in bad),
    )


register(ID, Level.BASELINE, Revision(Version(0), mounts_no_host_path))
