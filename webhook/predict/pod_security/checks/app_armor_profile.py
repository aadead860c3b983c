"""The container runtime's AppArmor profile stays on.

**Restricted fields:**
- `spec.securityContext.appArmorProfile.type`
- `spec.containers[*].securityContext.appArmorProfile.type`

**Allowed values:** unset, `RuntimeDefault`, `Localhost`

**Restricted fields:**
- `metadata.annotations[container.apparmor.security.beta.kubernetes.io/*]`

**Allowed values:** unset, empty, `runtime/default`, `localhost/*`
"""

from webhook.predict.pod_security.checks import Result, Revision, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.pod import SecurityContext
from webhook.predict.pod_security.subject import Place, Subject
from webhook.predict.pod_security.texts import fields, go_quoted, plural, quoted, setters

ID = "appArmorProfile"
ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
UNCONFINED = "Unconfined"


def keeps_profile(pod: Subject) -> Result | None:
    """Fields and annotations alike."""
    bad = [place for place in pod.containers if not _allowed(_type(pod, place))]
    bad_pod = not _allowed(_own_type(pod.security))
    annotations = [key for key, value in pod.annotations.items() if _forbidden_annotation(key, value)]
    if not (bad or bad_pod or annotations):
        return None
    types = {_type(pod, place) or "" for place in bad}
    if bad_pod:
        types.add(_own_type(pod.security) or "")
    values = sorted(types) + sorted(f"{key}={go_quoted(pod.annotations[key])}" for key in annotations)
    who = [setters(bad_pod, bad)] * (bad_pod or bool(bad))
    who += [plural("annotation", "annotations", annotations)] * bool(annotations)
    written = [place for place in bad if place.security.app_armor_profile is not None]
    return Result(
        ID,
        plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values),
        f"{' and '.join(who)} must not set AppArmor profile type to {quoted(values)}",
        fields("securityContext.appArmorProfile.type", written, pod=bad_pod)
        + tuple(f"metadata.annotations[{key}]" for key in sorted(annotations)),
    )


def _type(pod: Subject, place: Place) -> str | None:
    """The profile of a container, None if it has none of its own.

    Before a pod is judged, the API server copies an annotation to the field where that is unset and the pod's own
    profile is another one (`applyAppArmorVersionSkew` in k8s.io/kubernetes `pkg/registry/core/pod/strategy.go`).
    """
    own = _own_type(place.security)
    if own is not None or not pod.annotations or pod.for_windows:
        return own
    unconfined = pod.annotations.get(ANNOTATION + place.name) == "unconfined"
    return UNCONFINED if unconfined and _own_type(pod.security) != UNCONFINED else None


def _own_type(context: SecurityContext) -> str | None:
    return None if context.app_armor_profile is None else context.app_armor_profile.type or ""


def _allowed(profile: str | None) -> bool:
    return profile in (None, "RuntimeDefault", "Localhost")


def _forbidden_annotation(key: str, value: str) -> bool:
    return key.startswith(ANNOTATION) and value not in ("", "runtime/default") and not value.startswith("localhost/")


register(ID, Level.BASELINE, Revision(Version(0), keeps_profile))
