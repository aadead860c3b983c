"""Containers that explicitly run as root, which the level restricted never starts.

Other unset fields of such a container are not reported: they are filled in, or reported, once it runs as another user.
"""

from webhook.predict.pod_security.checks import Result
from webhook.predict.pod_security.pod import PodTemplate
from webhook.predict.pod_security.subject import Place, Subject

CHECK = "runAsUser"
"""The id of the check that rejects them."""


def places(subject: Subject) -> list[Place]:
    """The containers whose user is 0, by their own field or the pod's."""
    of_pod = subject.security.run_as_user
    found = ((place, place.security.run_as_user) for place in subject.containers)
    return [place for place, own in found if (of_pod if own is None else own) == 0]


def without_consequences(results: list[Result], template: PodTemplate) -> list[Result]:
    """`results` without fields that only containers of root leave unset, if those are rejected for that."""
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
