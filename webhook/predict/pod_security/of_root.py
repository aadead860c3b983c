"""Containers that explicitly run as root. The level `restricted` rejects them.

Unset fields of these containers are not reported, because the webhook may set them after `runAsUser` is corrected.
"""

from webhook.predict.pod_security.checks import Result
from webhook.predict.pod_security.pod import PodTemplate
from webhook.predict.pod_security.subject import Place, Subject

CHECK = "runAsUser"
"""The check that rejects containers that run as root."""


def places(subject: Subject) -> list[Place]:
    of_pod = subject.security.run_as_user
    users = ((place, place.security.run_as_user) for place in subject.containers)
    return [place for place, own in users if (of_pod if own is None else own) == 0]


def without_consequences(results: list[Result], template: PodTemplate) -> list[Result]:
    """Leaves out results that are only about unset fields of containers that run as root."""
    if not any(result.check == CHECK for result in results):
        return results
    left_open = {path for place in places(Subject(template)) for path in _left_open(place)}
    return [result for result in results if not left_open.issuperset(result.paths)]


def _left_open(place: Place) -> list[str]:
    security, fields = place.security, []
    if security.allow_privilege_escalation is None and not security.privileged:
        fields.append("allowPrivilegeEscalation")
    if security.capabilities is None:
        fields.append("capabilities.drop")
    if security.run_as_non_root is None:
        fields.append("runAsNonRoot")
    if security.seccomp_profile is None:
        fields.append("seccompProfile.type")
    return [f"{place.path}.securityContext.{field}" for field in fields]
