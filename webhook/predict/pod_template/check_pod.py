"""The API server's checks of a whole template: metadata, containers, placement, node and network."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from webhook.api.accelerators import DEFAULT_ACCELERATORS, is_accelerator
from webhook.api.mpijob import WORKER
from webhook.predict.pod_template import model, texts
from webhook.predict.pod_template.check_containers import (
    Pod,
    Role,
    check_container,
    check_handlers,
    check_no_handlers,
    check_pod_security,
    check_probes_of_sshd,
    check_users,
)
from webhook.predict.pod_template.check_resources import check_huge_pages, check_pod_resources
from webhook.predict.pod_template.check_volumes import check_volumes
from webhook.predict.pod_template.fault import Faults, Kind, shown
from webhook.predict.pod_template.labels import check_annotations, check_labels, check_requirement, check_selector
from webhook.predict.scheduler import satisfies

# Other spellings of architectures, each with Go's spelling. The labels of nodes have Go's spelling.
_ARCHITECTURES: Final = {"x86_64": "amd64", "x86-64": "amd64", "aarch64": "arm64"}


def check_template(template: model.Template, role: Role, faults: Faults, without_ranges: bool | None) -> None:
    """`template` is the role's template with the types of `model`."""
    check_labels(template.labels, f"{role.path}.metadata.labels", faults)
    check_annotations(template.annotations, f"{role.path}.metadata.annotations", faults)
    if (spec := template.spec) is None:
        return
    path = f"{role.path}.spec"
    volumes = check_volumes(spec.volumes or [], f"{path}.volumes", faults)
    if faults:  # one of the faults may be an invalid volume name
        volumes = {texts.label_corrected(name): volume for name, volume in volumes.items()}
    claims = _claims(spec.resource_claims, f"{path}.resourceClaims", faults) if spec.resource_claims else set()
    _containers(spec, path, Pod(role, spec, volumes, claims, without_ranges), faults)
    if spec.resources is not None:
        check_pod_resources(spec, path, faults)
    if spec.overhead and not spec.runtime_class_name:
        fault = "needs a RuntimeClass with the same overhead"
        faults.add(f"{path}.overhead", fault, "Remove it: a RuntimeClass sets it.", Kind.FORBIDDEN)
    if spec.node_selector:
        _node_selector(spec.node_selector, f"{path}.nodeSelector", faults)
    if spec.tolerations:
        check_tolerations(spec.tolerations, f"{path}.tolerations", faults)
    if spec.affinity is not None:
        check_affinity(spec.affinity, spec.node_selector or {}, f"{path}.affinity", faults)
    if spec.topology_spread_constraints:
        check_spread(spec.topology_spread_constraints, f"{path}.topologySpreadConstraints", faults)
    if spec.security_context is not None:
        check_pod_security(spec.security_context, f"{path}.securityContext", faults)
    check_users(spec, path, faults)
    check_huge_pages(spec, path, faults, without_ranges=without_ranges)
    check_host(spec, path, faults)


def _node_selector(selector: Mapping[str, str | None], path: str, faults: Faults) -> None:
    check_labels(selector, path, faults)
    for key in ("kubernetes.io/arch", "kubernetes.io/os"):
        value = selector.get(key) or ""
        if value != (spelling := _ARCHITECTURES.get(value.lower(), value.lower())):
            fix = f"Write {shown(spelling)}."
            faults.add(f"{path}[{key}]", f'"{shown(value)}" is not the label of any node', fix, advisory=True)
    for key in (key for key, value in selector.items() if (value or "").isdecimal()):
        if is_accelerator(key, DEFAULT_ACCELERATORS):
            fix = "Remove it: limits of containers request it."
            faults.add(f"{path}[{shown(key)}]", "is a resource, not the label of a node", fix, advisory=True)


def _containers(spec: model.PodSpec, path: str, pod: Pod, faults: Faults) -> None:
    used: set[str] = set()
    host_ports: set[tuple[str, str, int]] = set()
    probed = False
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers or ()):
            where, init = f"{path}.{field}[{index}]", field == "initContainers"
            check_container(container, where, pod, faults)
            if (name := container.name) in used and name:
                faults.add(f"{where}.name", f'there is another container "{shown(name)}"', f"Write {name}-2.")
            used.add(name)
            if container.ports:
                _host_ports(container.ports, where, set() if init else host_ports, pod, faults, init=init)
            if container.lifecycle or container.liveness_probe or container.readiness_probe or container.startup_probe:
                probed = True
                if init and container.restart_policy != "Always":
                    check_no_handlers(container, where, faults)
                else:
                    check_handlers(container, where, pod, faults)
    if spec.ephemeral_containers:
        fault = "cannot be set when a pod is created"
        faults.add(f"{path}.ephemeralContainers", fault, "Remove it: kubectl debug adds them.", Kind.FORBIDDEN)
    if probed and pod.role.name == WORKER and not spec.host_network:
        check_probes_of_sshd(spec, path, faults)


def _host_ports(
    ports: list[model.Port], path: str, used: set[tuple[str, str, int]], pod: Pod, faults: Faults, *, init: bool
) -> None:
    for index, port in enumerate(ports):
        number = port.host_port or (port.container_port if pod.spec.host_network else 0)
        if not number:
            continue
        where = f"{path}.ports[{index}].hostPort"
        if pod.spec.host_network and number != port.container_port and not init:
            fault = f"is {number}, must be the containerPort {port.container_port} with hostNetwork"
            faults.add(where, fault, "Remove it.")
        address = (port.protocol or "TCP", port.host_ip or "", number)
        if address in used:
            faults.add(where, f"another container has port {number} of the node", "Remove it, or write another number.")
        used.add(address)


def _claims(claims: list[model.ResourceClaim], path: str, faults: Faults) -> set[str]:
    used: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{path}[{index}]"
        if problem := texts.label(claim.name):
            texts.note(faults, f"{where}.name", claim.name, problem, texts.SPELLING)
        elif claim.name in used:
            faults.add(f"{where}.name", f'there is another resource claim "{claim.name}"', f"Write {claim.name}-2.")
        used.add(claim.name)
        given = {
            "resourceClaimName": claim.resource_claim_name,
            "resourceClaimTemplateName": claim.resource_claim_template_name,
        }
        names = {field: name for field, name in given.items() if name is not None}
        if len(names) != 1:
            fault = "names both a claim and a template" if names else "names neither a claim nor a template"
            faults.add(where, fault, "Set one of resourceClaimName and resourceClaimTemplateName.")
        for field, name in names.items():
            texts.check(faults, f"{where}.{field}", name, texts.subdomain)
    return used


_LONGEST_SEARCH: Final = 2048
_SEPARATOR: Final = re.compile("[./]")
# The sysctl net/ipv4/conf/eth0.1 is also written net.ipv4.conf.eth0/1.
_SWAPPED: Final = str.maketrans("./", "/.")
_OF_IPC: Final = frozenset(
    (
        *("kernel.sem", "kernel.shm", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced"),
        *("kernel.msg", "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni"),
    )
)


def check_host(spec: model.PodSpec, path: str, faults: Faults) -> None:
    _namespaces(spec, path, faults)
    if spec.node_name and (problem := texts.subdomain(spec.node_name)):
        texts.note(faults, f"{path}.nodeName", spec.node_name, problem)
    elif spec.node_name and spec.scheduling_gates:
        faults.add(f"{path}.nodeName", "does not go with schedulingGates", "Remove one of the two.", Kind.FORBIDDEN)
    account = "serviceAccountName" if spec.service_account_name else "serviceAccount"
    texts.check(faults, f"{path}.{account}", spec.service_account_name or spec.service_account, texts.subdomain)
    texts.check(faults, f"{path}.runtimeClassName", spec.runtime_class_name, texts.subdomain)
    if spec.dns_config or spec.dns_policy == "None":
        _dns(spec, path, faults)
    if spec.readiness_gates or spec.scheduling_gates:
        _gates(spec, path, faults)
    for index, alias in enumerate(spec.host_aliases or ()):
        texts.check(faults, f"{path}.hostAliases[{index}].ip", alias.ip, texts.address, "Write it as 10.0.0.1.")
        where = f"{path}.hostAliases[{index}].hostnames"
        texts.check_each(faults, where, alias.hostnames, texts.subdomain)


def _namespaces(spec: model.PodSpec, path: str, faults: Faults) -> None:
    if spec.host_users is False:
        fault, fix = "does not go with hostUsers: false", "Remove one of the two."
        of_node = (("hostPID", spec.host_pid), ("hostIPC", spec.host_ipc), ("hostNetwork", spec.host_network))
        for field, value in of_node:
            if value:
                faults.add(f"{path}.{field}", fault, fix, Kind.FORBIDDEN)
    if spec.share_process_namespace and spec.host_pid:
        fault = "does not go with hostPID"
        faults.add(f"{path}.shareProcessNamespace", fault, "Remove one of the two.", Kind.FORBIDDEN)
    context = spec.security_context
    if context is not None and context.sysctls and (spec.host_network or spec.host_ipc):
        _sysctls(spec, context.sysctls, f"{path}.securityContext.sysctls", faults)
    if spec.os is not None and spec.os.name == "linux" and context is not None and context.windows_options is not None:
        where = f"{path}.securityContext.windowsOptions"
        faults.add(where, "is not for a linux pod", "Remove it.", Kind.FORBIDDEN)


def _sysctls(spec: model.PodSpec, sysctls: list[model.Sysctl], path: str, faults: Faults) -> None:
    # A pod cannot set parameters of a Linux namespace that it shares with its node (component-helpers
    # `node/util/sysctl`).
    for index, sysctl in enumerate(sysctls):
        name = sysctl.name.partition("*")[0]
        if (separator := _SEPARATOR.search(name)) and separator[0] == "/":
            name = name.translate(_SWAPPED)
        of_node = "hostNetwork" if spec.host_network and name.startswith("net.") else ""
        if spec.host_ipc and (name in _OF_IPC or name.startswith("fs.mqueue.")):
            of_node = "hostIPC"
        if of_node:
            fix = f"Remove it, or {of_node}."
            faults.add(f"{path}[{index}].name", f"{shown(sysctl.name)} does not go with {of_node}", fix)


def _dns(spec: model.PodSpec, path: str, faults: Faults) -> None:
    config, path = spec.dns_config or model.DnsConfig(), f"{path}.dnsConfig"
    if spec.dns_policy == "None" and not config.nameservers:
        fault = "is missing, but dnsPolicy is None"
        faults.add(f"{path}.nameservers", fault, "Name a server, or remove dnsPolicy.", Kind.REQUIRED)
    texts.check_each(faults, f"{path}.nameservers", config.nameservers, texts.address, "Write it as 10.0.0.1.")
    searches = config.searches or []
    texts.check_each(faults, f"{path}.searches", searches, texts.search, "Write one as example.com.")
    if sum(map(len, searches)) + len(searches) - 1 > _LONGEST_SEARCH:
        fault = f"has more than {_LONGEST_SEARCH} characters in all"
        faults.add(f"{path}.searches", fault, "Leave some out.")


def _gates(spec: model.PodSpec, path: str, faults: Faults) -> None:
    for index, readiness in enumerate(spec.readiness_gates or ()):
        where = f"{path}.readinessGates[{index}].conditionType"
        texts.check(faults, where, readiness.condition_type, texts.label_key)
    seen: set[str] = set()
    for index, gate in enumerate(spec.scheduling_gates or ()):
        where = f"{path}.schedulingGates[{index}].name"
        if problem := texts.label_key(gate.name):
            texts.note(faults, where, gate.name, problem)
        elif gate.name in seen:
            faults.add(where, f'"{shown(gate.name)}" is listed twice', "Remove one of the two.")
        seen.add(gate.name)


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def check_tolerations(tolerations: list[model.Toleration], path: str, faults: Faults) -> None:
    for index, toleration in enumerate(tolerations):
        key, value = toleration.key, toleration.value
        if key and texts.label_key(key):
            texts.check(faults, f"{path}[{index}].key", key, texts.label_key, texts.LETTERS)
        if not key and toleration.operator in {None, "", "Equal"}:
            fix = f"Set the key, or operator: Exists{' without a value' if value else ''} for every taint."
            faults.add(f"{path}[{index}].operator", "must be Exists where no key is set", fix)
        if value and toleration.operator == "Exists":
            fault = "does not go with operator Exists"
            faults.add(f"{path}[{index}].value", fault, "Remove it, or use operator: Equal.", Kind.FORBIDDEN)
        elif value:
            texts.check(faults, f"{path}[{index}].value", value, texts.label_value, texts.LETTERS)
        if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
            fault = "must be NoExecute where tolerationSeconds is set"
            faults.add(f"{path}[{index}].effect", fault, "Write NoExecute, or remove tolerationSeconds.")


def check_affinity(affinity: model.Affinity, selector: Mapping[str, str | None], path: str, faults: Faults) -> None:
    if affinity.node_affinity is not None:
        _nodes(affinity.node_affinity, selector, f"{path}.nodeAffinity", faults)
    if affinity.pod_affinity is not None:
        _pods(affinity.pod_affinity, f"{path}.podAffinity", faults)
    if affinity.pod_anti_affinity is not None:
        _pods(affinity.pod_anti_affinity, f"{path}.podAntiAffinity", faults)


def _nodes(affinity: model.NodeAffinity, selector: Mapping[str, str | None], path: str, faults: Faults) -> None:
    if (required := affinity.required_during_scheduling_ignored_during_execution) is not None:
        keys = [_unmet(term.match_expressions or (), selector) for term in required.node_selector_terms]
        for index, term in enumerate(required.node_selector_terms):
            where = f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]"
            _node_term(term, where, faults)
            if all(keys):
                fault, fix = f"no node can meet all conditions on {shown(keys[index])}", "Remove one of them."
                faults.add(where, fault, fix, advisory=True)
    for index, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution or ()):
        if preferred.preference is not None:
            _node_term(preferred.preference, f"{path}.{_PREFERRED}[{index}].preference", faults, preferred=True)


def _unmet(conditions: Sequence[model.NodeRequirement], selector: Mapping[str, str | None]) -> str:
    """The key of a label for which no value meets both the conditions and the node selector; empty if none."""
    for key in dict.fromkeys(condition.key for condition in conditions):
        same = [each for each in conditions if each.key == key and (each.operator != "In" or each.values)]
        allowed = [value for each in same if each.operator == "In" for value in each.values or ()]
        chosen = [value for value in (selector.get(key),) if value] or allowed
        if chosen and not any(all(satisfies({key: value}, each) for each in same) for value in chosen):
            return key
    return ""


def _node_term(term: model.NodeTerm, path: str, faults: Faults, *, preferred: bool = False) -> None:
    for index, requirement in enumerate(term.match_expressions or ()):
        check_requirement(requirement, f"{path}.matchExpressions[{index}]", faults, any_value=preferred)
    for index, field in enumerate(term.match_fields or ()):
        for name in field.values[:1]:
            texts.check(faults, f"{path}.matchFields[{index}].values[0]", name, texts.subdomain, texts.SPELLING)


def _pods(affinity: model.PodAffinity, path: str, faults: Faults) -> None:
    for index, term in enumerate(affinity.required_during_scheduling_ignored_during_execution or ()):
        _pod_term(term, f"{path}.{_REQUIRED}[{index}]", faults)
    for index, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution or ()):
        _pod_term(weighted.pod_affinity_term, f"{path}.{_PREFERRED}[{index}].podAffinityTerm", faults)


def _pod_term(term: model.PodAffinityTerm, path: str, faults: Faults) -> None:
    texts.check(faults, f"{path}.topologyKey", term.topology_key, texts.label_key, "Write kubernetes.io/hostname.")
    check_selector(term.label_selector, f"{path}.labelSelector", faults)
    check_selector(term.namespace_selector, f"{path}.namespaceSelector", faults)
    texts.check_each(faults, f"{path}.namespaces", term.namespaces, texts.label, texts.SPELLING)
    _keys(term.match_label_keys, term.label_selector, f"{path}.matchLabelKeys", faults)
    _keys(term.mismatch_label_keys, term.label_selector, f"{path}.mismatchLabelKeys", faults)
    for key in sorted({*(term.match_label_keys or ())} & {*(term.mismatch_label_keys or ())}):
        faults.add(f"{path}.matchLabelKeys", f'"{shown(key)}" is in mismatchLabelKeys too', "Keep one of the two.")


def _keys(
    keys: list[str] | None, selector: model.Selector | model.PodSelector | None, path: str, faults: Faults
) -> None:
    if keys and selector is None:
        faults.add(path, "needs a labelSelector", "Add the labelSelector, or remove it.", Kind.FORBIDDEN)
    else:
        texts.check_each(faults, path, keys, texts.label_key, texts.LETTERS)


def check_spread(constraints: list[model.SpreadConstraint], path: str, faults: Faults) -> None:
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        where, key, action = f"{path}[{index}]", constraint.topology_key, constraint.when_unsatisfiable
        if key and (key, action) in seen:
            fault = f'"{shown(key)}" with {action} is listed twice'
            faults.add(f"{where}.topologyKey", fault, "Remove one of the two.")
        seen.add((key, action))
        if constraint.min_domains is not None and action == "ScheduleAnyway":
            fault, fix = "needs whenUnsatisfiable: DoNotSchedule", "Remove it, or write DoNotSchedule."
            faults.add(f"{where}.minDomains", fault, fix, Kind.FORBIDDEN)
        check_selector(constraint.label_selector, f"{where}.labelSelector", faults)
        _keys(constraint.match_label_keys, constraint.label_selector, f"{where}.matchLabelKeys", faults)
