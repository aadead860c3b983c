"""A template as a whole: metadata, containers, placement, and the pod's use of its node and network."""

import re
from typing import Final, NamedTuple

from webhook.predict.pod_template import model, texts
from webhook.predict.pod_template.check_containers import (
    Pod,
    check_container,
    check_handlers,
    check_no_handlers,
    check_pod_security,
    check_users,
)
from webhook.predict.pod_template.check_resources import check_huge_pages, check_pod_resources
from webhook.predict.pod_template.check_volumes import check_volumes
from webhook.predict.pod_template.fault import Faults, Kind, shown
from webhook.predict.pod_template.labels import check_annotations, check_labels, check_requirement, check_selector

_NONE: Final[frozenset[str]] = frozenset()
# Go's spelling, which nodes have, by other spellings.
_ARCHITECTURES: Final = {"x86_64": "amd64", "x86-64": "amd64", "aarch64": "arm64"}


class Surroundings(NamedTuple):
    """Facts outside the template."""

    volumes: tuple[str, ...] = ()
    """The operator's volumes, which containers may mount."""
    never_restarts: bool = False
    without_ranges: bool | None = None
    """No LimitRange fills in resources; None if unknown."""
    like: model.Template = model.Template()
    """A template without a fault: parts that it shares are not checked again."""


def check_template(template: model.Template, path: str, found: Faults, around: Surroundings) -> None:
    if (meta := template.metadata) is not None and meta != around.like.metadata:
        if meta.labels:
            check_labels(meta.labels, f"{path}.metadata.labels", found)
        if meta.annotations:
            check_annotations(meta.annotations, f"{path}.metadata.annotations", found)
    if (spec := template.spec) is None:
        return
    path, like = f"{path}.spec", around.like.spec or model.PodSpec()
    if spec.volumes:
        check_volumes(spec.volumes, f"{path}.volumes", found, like.volumes or ())
    pod = Pod(
        {one.name: one for one in spec.volumes or ()},
        around.volumes,
        [one.name for one in spec.volumes or () if one.persistent_volume_claim or one.ephemeral],
        _claims(spec.resource_claims, f"{path}.resourceClaims", found) if spec.resource_claims else _NONE,
        spec.host_users is not False,
        around.never_restarts,
        around.without_ranges,
    )
    _containers(spec, path, pod, found, like)
    if spec.resources is not None:
        check_pod_resources(spec, path, found)
    if spec.overhead and not spec.runtime_class_name:
        fault = "needs a RuntimeClass with the same overhead"
        found.add(f"{path}.overhead", fault, "Remove it: a RuntimeClass sets it.", Kind.FORBIDDEN)
    _placement(spec, path, found, like)
    if spec.security_context is not None:
        check_pod_security(spec.security_context, f"{path}.securityContext", found)
    check_users(spec, path, found)
    if any(
        volume.empty_dir and (volume.empty_dir.medium or "").startswith("HugePages") for volume in spec.volumes or ()
    ):
        check_huge_pages(spec, path, found, without_ranges=around.without_ranges)
    check_host(spec, path, found)


def _placement(spec: model.PodSpec, path: str, found: Faults, like: model.PodSpec) -> None:
    if spec.node_selector and spec.node_selector != like.node_selector:
        check_labels(spec.node_selector, f"{path}.nodeSelector", found)
        for key in ("kubernetes.io/arch", "kubernetes.io/os"):
            value = spec.node_selector.get(key) or ""
            if value != (meant := _ARCHITECTURES.get(value.lower(), value.lower())):
                where, fix = f"{path}.nodeSelector[{key}]", f"Write {shown(meant)}."
                found.add(where, f'"{shown(value)}" is the label of no node', fix, advisory=True)
    if spec.tolerations and spec.tolerations != like.tolerations:
        check_tolerations(spec.tolerations, f"{path}.tolerations", found)
    if spec.affinity is not None and spec.affinity != like.affinity:
        check_affinity(spec.affinity, f"{path}.affinity", found)
    if spec.topology_spread_constraints:
        check_spread(spec.topology_spread_constraints, f"{path}.topologySpreadConstraints", found)


def _containers(spec: model.PodSpec, path: str, pod: Pod, found: Faults, like: model.PodSpec) -> None:
    used: set[str] = set()
    host_ports: set[tuple[str, str, int]] = set()
    for index, container in enumerate(spec.containers or ()):
        where = f"{path}.containers[{index}]"
        check_container(container, where, pod, found, _at(like.containers, index))
        _once(container.name, where, used, found)
        if container.ports:
            _host_ports(container, where, host_ports, spec, found)
        if container.lifecycle or container.liveness_probe or container.readiness_probe or container.startup_probe:
            check_handlers(container, where, found, grace_period=spec.termination_grace_period_seconds)
    for index, container in enumerate(spec.init_containers or ()):
        where = f"{path}.initContainers[{index}]"
        check_container(container, where, pod, found, _at(like.init_containers, index))
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


def _at(containers: list[model.Container] | None, index: int) -> model.Container | None:
    return containers[index] if containers and index < len(containers) else None


def _once(name: str, path: str, used: set[str], found: Faults) -> None:
    if name and name in used:
        found.add(f"{path}.name", f'there is another container "{shown(name)}"', f"Write {name}-2.")
    used.add(name)


def _host_ports(
    container: model.Container,
    path: str,
    used: set[tuple[str, str, int]],
    spec: model.PodSpec,
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
            found.add(where, f"another container has port {number} of the node", "Remove it, or write another number.")
        used.add(one)


def _claims(claims: list[model.ResourceClaim], path: str, found: Faults) -> set[str]:
    used: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        if problem := texts.label(claim.name):
            texts.note(found, f"{where}.name", claim.name, problem, texts.SPELLING)
        elif claim.name in used:
            found.add(f"{where}.name", f'there is another resource claim "{claim.name}"', f"Write {claim.name}-2.")
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
                texts.note(found, f"{where}.{field}", name, problem)
    return used


_LONGEST_SEARCH: Final = 2048
_SEPARATOR: Final = re.compile("[./]")
# net/ipv4/conf/eth0.1 is net.ipv4.conf.eth0/1
_SWAPPED: Final = str.maketrans("./", "/.")
_OF_IPC: Final = frozenset(
    (
        *("kernel.sem", "kernel.shm", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced"),
        *("kernel.msg", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni"),
    )
)


def check_host(spec: model.PodSpec, path: str, found: Faults) -> None:
    """Fields that concern the node and its namespaces."""
    _namespaces(spec, path, found)
    if spec.node_name:
        _node_name(spec, spec.node_name, path, found)
    _objects(spec, path, found)
    if spec.dns_config is not None or spec.dns_policy == "None":
        _dns(spec, path, found)
    if spec.readiness_gates or spec.scheduling_gates:
        _gates(spec, path, found)
    for index, alias in enumerate(spec.host_aliases or ()):
        texts.check(found, f"{path}.hostAliases[{index}].ip", alias.ip, texts.address, "Write it as 10.0.0.1.")
        where = f"{path}.hostAliases[{index}].hostnames"
        texts.check_each(found, where, alias.hostnames, texts.subdomain)


def _namespaces(spec: model.PodSpec, path: str, found: Faults) -> None:
    if spec.host_users is False:
        of_node = (("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc), ("hostNetwork", spec.host_network))
        for field, value in of_node:
            if value:
                found.add(
                    f"{path}.{field}", "does not go with hostUsers: false", "Remove one of the two.", Kind.FORBIDDEN
                )
    if spec.share_process_namespace and spec.host_pid:
        fault = "does not go with hostPID"
        found.add(f"{path}.shareProcessNamespace", fault, "Remove one of the two.", Kind.FORBIDDEN)
    context = spec.security_context
    if context is not None and context.sysctls and (spec.host_network or spec.host_ipc):
        _sysctls(spec, context.sysctls, f"{path}.securityContext.sysctls", found)
    if spec.os is not None and spec.os.name == "linux" and context is not None and context.windows_options is not None:
        where = f"{path}.securityContext.windowsOptions"
        found.add(where, "is not for a linux pod", "Remove it.", Kind.FORBIDDEN)


def _sysctls(spec: model.PodSpec, sysctls: list[model.Sysctl], path: str, found: Faults) -> None:
    """Parameters of a namespace that the pod shares with its node (component-helpers `node/util/sysctl`)."""
    for index, sysctl in enumerate(sysctls):
        name = sysctl.name.partition("*")[0]
        if (separator := _SEPARATOR.search(name)) and separator[0] == "/":
            name = name.translate(_SWAPPED)
        of_node = "hostNetwork" if spec.host_network and name.startswith("net.") else ""
        if spec.host_ipc and (name in _OF_IPC or name.startswith("fs.mqueue.")):
            of_node = "hostIPC"
        if of_node:
            fix = f"Remove it, or {of_node}."
            found.add(f"{path}[{index}].name", f"{shown(sysctl.name)} does not go with {of_node}", fix)


def _node_name(spec: model.PodSpec, name: str, path: str, found: Faults) -> None:
    if problem := texts.subdomain(name):
        texts.note(found, f"{path}.nodeName", name, problem, texts.SPELLING)
    elif spec.scheduling_gates:
        found.add(f"{path}.nodeName", "does not go with schedulingGates", "Remove one of the two.", Kind.FORBIDDEN)


def _objects(spec: model.PodSpec, path: str, found: Faults) -> None:
    """The names of objects that the pod refers to; the older name of the account counts only without the newer one."""
    account = "serviceAccountName" if spec.service_account_name else "serviceAccount"
    for field, name in (
        (account, spec.service_account_name or spec.service_account),
        ("runtimeClassName", spec.runtime_class_name),
    ):
        texts.check(found, f"{path}.{field}", name, texts.subdomain)


def _dns(spec: model.PodSpec, path: str, found: Faults) -> None:
    config = spec.dns_config
    if spec.dns_policy == "None" and not (config and config.nameservers):
        fault = "is missing, but dnsPolicy is None"
        found.add(f"{path}.dnsConfig.nameservers", fault, "Name a server, or remove dnsPolicy.", Kind.REQUIRED)
    if config is None:
        return
    texts.check_each(found, f"{path}.dnsConfig.nameservers", config.nameservers, texts.address, "Write it as 10.0.0.1.")
    searches = config.searches or []
    texts.check_each(found, f"{path}.dnsConfig.searches", searches, texts.search, "Write one as example.com.")
    if sum(map(len, searches)) + len(searches) - 1 > _LONGEST_SEARCH:
        fault = f"has more than {_LONGEST_SEARCH} characters in all"
        found.add(f"{path}.dnsConfig.searches", fault, "Leave some out.")


def _gates(spec: model.PodSpec, path: str, found: Faults) -> None:
    for index, gate in enumerate(spec.readiness_gates or ()):
        where = f"{path}.readinessGates[{index}].conditionType"
        texts.check(found, where, gate.condition_type, texts.label_key)
    seen: set[str] = set()
    for index, held in enumerate(spec.scheduling_gates or ()):
        where = f"{path}.schedulingGates[{index}].name"
        if problem := texts.label_key(held.name):
            texts.note(found, where, held.name, problem)
        elif held.name in seen:
            found.add(where, f'"{shown(held.name)}" is there twice', "Remove one of the two.")
        seen.add(held.name)


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def check_tolerations(tolerations: list[model.Toleration], path: str, found: Faults) -> None:
    """Key, operator, value and effect, and which go together."""
    for index, one in enumerate(tolerations):
        if one.key:
            if problem := texts.label_key(one.key):
                texts.note(found, f"{path}[{index}].key", one.key, problem, texts.LETTERS)
        elif one.operator in {None, "", "Equal"}:
            fault, fix = "must be Exists where no key is set", "Set the key, or operator: Exists for every taint."
            found.add(f"{path}[{index}].operator", fault, fix)
        if one.value:
            if one.operator == "Exists":
                fault = "does not go with operator Exists"
                found.add(f"{path}[{index}].value", fault, "Remove it, or use operator: Equal.", Kind.FORBIDDEN)
            elif problem := texts.label_value(one.value):
                texts.note(found, f"{path}[{index}].value", one.value, problem, texts.LETTERS)
        if one.toleration_seconds is not None and one.effect in {None, "", "NoSchedule", "PreferNoSchedule"}:
            fault = "must be NoExecute where tolerationSeconds is set"
            found.add(f"{path}[{index}].effect", fault, "Write NoExecute, or remove tolerationSeconds.")


def check_affinity(affinity: model.Affinity, path: str, found: Faults) -> None:
    """To nodes and to pods."""
    if affinity.node_affinity is not None:
        _nodes(affinity.node_affinity, f"{path}.nodeAffinity", found)
    if affinity.pod_affinity is not None:
        _pods(affinity.pod_affinity, f"{path}.podAffinity", found)
    if affinity.pod_anti_affinity is not None:
        _pods(affinity.pod_anti_affinity, f"{path}.podAntiAffinity", found)


def _nodes(affinity: model.NodeAffinity, path: str, found: Faults) -> None:
    if (required := affinity.required_during_scheduling_ignored_during_execution) is not None:
        for index, term in enumerate(required.node_selector_terms):
            _node_term(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]", found)
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution or ()):
        if preferred.preference is not None:
            _node_term(preferred.preference, f"{path}.{_PREFERRED}[{index}].preference", found, preferred=True)


def _node_term(term: model.NodeTerm, path: str, found: Faults, *, preferred: bool = False) -> None:
    for index, one in enumerate(term.match_expressions or ()):
        check_requirement(one, f"{path}.matchExpressions[{index}]", found, any_value=preferred)
    for index, field in enumerate(term.match_fields or ()):
        for name in field.values[:1]:
            texts.check(found, f"{path}.matchFields[{index}].values[0]", name, texts.subdomain, texts.SPELLING)


def _pods(affinity: model.PodAffinity, path: str, found: Faults) -> None:
    for index, term in enumerate(affinity.required_during_scheduling_ignored_during_execution or ()):
        _pod_term(term, f"{path}.{_REQUIRED}[{index}]", found)
    for index, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution or ()):
        _pod_term(weighted.pod_affinity_term, f"{path}.{_PREFERRED}[{index}].podAffinityTerm", found)


def _pod_term(term: model.PodAffinityTerm, path: str, found: Faults) -> None:
    texts.check(found, f"{path}.topologyKey", term.topology_key, texts.label_key, "Write kubernetes.io/hostname.")
    check_selector(term.label_selector, f"{path}.labelSelector", found)
    check_selector(term.namespace_selector, f"{path}.namespaceSelector", found)
    texts.check_each(found, f"{path}.namespaces", term.namespaces, texts.label, texts.SPELLING)
    _keys(term.match_label_keys, term.label_selector, f"{path}.matchLabelKeys", found)
    _keys(term.mismatch_label_keys, term.label_selector, f"{path}.mismatchLabelKeys", found)
    for key in sorted({*(term.match_label_keys or ())} & {*(term.mismatch_label_keys or ())}):
        found.add(f"{path}.matchLabelKeys", f'"{shown(key)}" is in mismatchLabelKeys too', "Keep one of the two.")


def _keys(
    keys: list[str] | None, selector: model.Selector | model.PodSelector | None, path: str, found: Faults
) -> None:
    if not keys:
        return
    if selector is None:
        found.add(path, "needs a labelSelector", "Add the labelSelector, or remove it.", Kind.FORBIDDEN)
        return
    texts.check_each(found, path, keys, texts.label_key, texts.LETTERS)


def check_spread(constraints: list[model.SpreadConstraint], path: str, found: Faults) -> None:
    """Each constraint; none twice."""
    seen: set[tuple[str, str]] = set()
    for index, one in enumerate(constraints):
        where = f"{path}[{index}]"
        if one.topology_key and (one.topology_key, one.when_unsatisfiable) in seen:
            fault = f'"{shown(one.topology_key)}" with {one.when_unsatisfiable} is there twice'
            found.add(f"{where}.topologyKey", fault, "Remove one of the two.")
        seen.add((one.topology_key, one.when_unsatisfiable))
        if one.min_domains is not None and one.when_unsatisfiable == "ScheduleAnyway":
            fault, fix = "needs whenUnsatisfiable: DoNotSchedule", "Remove it, or write DoNotSchedule."
            found.add(f"{where}.minDomains", fault, fix, Kind.FORBIDDEN)
        check_selector(one.label_selector, f"{where}.labelSelector", found)
        _keys(one.match_label_keys, one.label_selector, f"{where}.matchLabelKeys", found)
