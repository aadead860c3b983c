"""A template as a whole: its metadata, its containers beside each other, and the rest of the pod."""

from typing import Final, NamedTuple

from webhook.predict.pod_template import texts
from webhook.predict.pod_template.check_containers import Pod, check_container
from webhook.predict.pod_template.check_handlers import check_handlers, check_no_handlers
from webhook.predict.pod_template.check_host import check_host
from webhook.predict.pod_template.check_resources import check_huge_pages, check_pod_resources
from webhook.predict.pod_template.check_scheduling import check_affinity, check_spread, check_tolerations
from webhook.predict.pod_template.check_security import check_pod_security, check_users
from webhook.predict.pod_template.check_volumes import check_volumes
from webhook.predict.pod_template.containers import Container
from webhook.predict.pod_template.fault import Faults, Kind, shown
from webhook.predict.pod_template.labels import check_annotations, check_labels
from webhook.predict.pod_template.template import PodSpec, ResourceClaim, Template

_NONE: Final[frozenset[str]] = frozenset()


class Surroundings(NamedTuple):
    """What counts for a template and does not stand in it."""

    volumes: tuple[str, ...] = ()
    """Those that the operator adds, which containers may mount."""
    never_restarts: bool = False
    without_ranges: bool | None = None
    """No LimitRange fills in resources; None where that is not known."""


def check_template(template: Template, path: str, found: Faults, around: Surroundings) -> None:
    """Every check."""
    if (meta := template.metadata) is not None:
        if meta.labels:
            check_labels(meta.labels, f"{path}.metadata.labels", found)
        if meta.annotations:
            check_annotations(meta.annotations, f"{path}.metadata.annotations", found)
    if (spec := template.spec) is None:
        return
    path = f"{path}.spec"
    volumes = check_volumes(spec.volumes, f"{path}.volumes", found) if spec.volumes else _NONE
    pod = Pod(
        volumes,
        around.volumes,
        [one.name for one in spec.volumes or () if one.persistent_volume_claim or one.ephemeral],
        _claims(spec.resource_claims, f"{path}.resourceClaims", found) if spec.resource_claims else _NONE,
        spec.host_users is not False,
        around.never_restarts,
        around.without_ranges,
    )
    _containers(spec, path, pod, found)
    if spec.resources is not None:
        check_pod_resources(spec, path, found)
    if spec.overhead and not spec.runtime_class_name:
        fault = "needs a RuntimeClass with the same overhead"
        found.add(f"{path}.overhead", fault, "Remove it: a RuntimeClass sets it.", Kind.FORBIDDEN)
    _placement(spec, path, found)
    if spec.security_context is not None:
        check_pod_security(spec.security_context, f"{path}.securityContext", found)
    check_users(spec, path, found)
    if any(volume.empty_dir and (volume.empty_dir.medium or "")[:1] == "H" for volume in spec.volumes or ()):
        check_huge_pages(spec, path, found, without_ranges=around.without_ranges)
    check_host(spec, path, found)


def _placement(spec: PodSpec, path: str, found: Faults) -> None:
    if spec.node_selector:
        check_labels(spec.node_selector, f"{path}.nodeSelector", found)
    if spec.tolerations:
        check_tolerations(spec.tolerations, f"{path}.tolerations", found)
    if spec.affinity is not None:
        check_affinity(spec.affinity, f"{path}.affinity", found)
    if spec.topology_spread_constraints:
        check_spread(spec.topology_spread_constraints, f"{path}.topologySpreadConstraints", found)


def _containers(spec: PodSpec, path: str, pod: Pod, found: Faults) -> None:
    used: set[str] = set()
    host_ports: set[tuple[str, str, int]] = set()
    for index, container in enumerate(spec.containers or ()):
        where = f"{path}.containers[{index}]"
        check_container(container, where, pod, found)
        _once(container.name, where, used, found)
        if container.ports:
            _host_ports(container, where, host_ports, spec, found)
        if container.lifecycle or container.liveness_probe or container.readiness_probe or container.startup_probe:
            check_handlers(container, where, found, grace_period=spec.termination_grace_period_seconds)
    for index, container in enumerate(spec.init_containers or ()):
        where = f"{path}.initContainers[{index}]"
        check_container(container, where, pod, found)
        _once(container.name, where, used, found)
        if container.ports:
            _host_ports(container, where, set(), spec, found, init=True)
        if container.restart_policy == "Always":
            check_handlers(container, where, found, grace_period=spec.termination_grace_period_seconds)
        elif container.lifecycle or container.liveness_probe or container.readiness_probe or container.startup_probe:
            check_no_handlers(container, where, found)
    if spec.ephemeral_containers:
        fault = "cannot be set on pods that are made"
        found.add(f"{path}.ephemeralContainers", fault, "Remove it: kubectl debug adds them.", Kind.FORBIDDEN)


def _once(name: str, path: str, used: set[str], found: Faults) -> None:
    if name and name in used:
        found.add(f"{path}.name", f'there is another container "{shown(name)}"', "Rename one of the two.")
    used.add(name)


def _host_ports(
    container: Container,
    path: str,
    used: set[tuple[str, str, int]],
    spec: PodSpec,
    found: Faults,
    *,
    init: bool = False,
) -> None:
    for index, port in enumerate(container.ports or ()):
        number = port.host_port or (port.container_port if spec.host_network else 0)
        if not number:
            continue
        where = f"{path}.ports[{index}].hostPort"
        if spec.host_network and number != port.container_port and not init:
            fault = f"is {number}, must be the containerPort {port.container_port} with hostNetwork"
            found.add(where, fault, "Remove it.")
        one = (port.protocol or "TCP", port.host_ip or "", number)
        if one in used:
            found.add(where, f"another container has port {number} of the node", "Use another port.")
        used.add(one)


def _claims(claims: list[ResourceClaim], path: str, found: Faults) -> set[str]:
    used: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        if problem := texts.label(claim.name):
            texts.note(found, f"{where}.name", claim.name, problem, "Rename the claim.")
        elif claim.name in used:
            found.add(f"{where}.name", f'there is another resource claim "{claim.name}"', "Rename one of the two.")
        used.add(claim.name)
        given = {
            "resourceClaimName": claim.resource_claim_name,
            "resourceClaimTemplateName": claim.resource_claim_template_name,
        }
        names = {field: name for field, name in given.items() if name is not None}
        if len(names) != 1:
            fault = "names both a claim and a template" if names else "names neither a claim nor a template"
            found.add(where, fault, "Set one of resourceClaimName and resourceClaimTemplateName.")
        for field, name in names.items():
            if problem := texts.subdomain(name):
                found.add(f"{where}.{field}", f'"{shown(name)}" {problem}', "Correct the name.")
    return used
