"""What a pod has of its node and of the network: namespaces, names, the resolver, gates."""

import re
from typing import Final

from webhook.predict.pod_template import texts
from webhook.predict.pod_template.fault import Faults, Kind, shown
from webhook.predict.pod_template.security import Sysctl
from webhook.predict.pod_template.template import PodSpec

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


def check_host(spec: PodSpec, path: str, found: Faults) -> None:
    """All of it."""
    _namespaces(spec, path, found)
    if spec.node_name:
        _node_name(spec, spec.node_name, path, found)
    _objects(spec, path, found)
    if spec.dns_config is not None or spec.dns_policy == "None":
        _dns(spec, path, found)
    if spec.readiness_gates or spec.scheduling_gates:
        _gates(spec, path, found)
    for index, alias in enumerate(spec.host_aliases or ()):
        if problem := texts.address(alias.ip):
            texts.note(found, f"{path}.hostAliases[{index}].ip", alias.ip, problem, "Write it as 10.0.0.1.")
        for number, name in enumerate(alias.hostnames or ()):
            if problem := texts.subdomain(name):
                where = f"{path}.hostAliases[{index}].hostnames[{number}]"
                texts.note(found, where, name, problem, "Correct the name.")


def _namespaces(spec: PodSpec, path: str, found: Faults) -> None:
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


def _sysctls(spec: PodSpec, sysctls: list[Sysctl], path: str, found: Faults) -> None:
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


def _node_name(spec: PodSpec, name: str, path: str, found: Faults) -> None:
    if problem := texts.subdomain(name):
        texts.note(found, f"{path}.nodeName", name, problem, "Name a node, or remove it.")
    elif spec.scheduling_gates:
        found.add(f"{path}.nodeName", "does not go with schedulingGates", "Remove one of the two.", Kind.FORBIDDEN)


def _objects(spec: PodSpec, path: str, found: Faults) -> None:
    """The names of objects that the pod belongs to; the older name of the account counts only without the newer one."""
    account = "serviceAccountName" if spec.service_account_name else "serviceAccount"
    for field, name in (
        (account, spec.service_account_name or spec.service_account),
        ("runtimeClassName", spec.runtime_class_name),
    ):
        if name and (problem := texts.subdomain(name)):
            texts.note(found, f"{path}.{field}", name, problem, "Correct the name.")


def _dns(spec: PodSpec, path: str, found: Faults) -> None:
    config = spec.dns_config
    if spec.dns_policy == "None" and not (config and config.nameservers):
        fault = "is missing, but dnsPolicy is None"
        found.add(f"{path}.dnsConfig.nameservers", fault, "Name a server, or remove dnsPolicy.", Kind.REQUIRED)
    if config is None:
        return
    for index, server in enumerate(config.nameservers or ()):
        if problem := texts.address(server):
            where = f"{path}.dnsConfig.nameservers[{index}]"
            texts.note(found, where, server, problem, "Write it as 10.0.0.1.")
    searches = config.searches or []
    for index, domain in enumerate(searches):
        if problem := texts.search(domain):
            where = f"{path}.dnsConfig.searches[{index}]"
            texts.note(found, where, domain, problem, "Correct the domain.")
    if sum(map(len, searches)) + len(searches) - 1 > _LONGEST_SEARCH:
        fault = f"has more than {_LONGEST_SEARCH} characters in all"
        found.add(f"{path}.dnsConfig.searches", fault, "Leave some out.")


def _gates(spec: PodSpec, path: str, found: Faults) -> None:
    for index, gate in enumerate(spec.readiness_gates or ()):
        if problem := texts.label_key(gate.condition_type):
            where = f"{path}.readinessGates[{index}].conditionType"
            texts.note(found, where, gate.condition_type, problem, "Correct the name.")
    seen: set[str] = set()
    for index, held in enumerate(spec.scheduling_gates or ()):
        where = f"{path}.schedulingGates[{index}].name"
        if problem := texts.label_key(held.name):
            texts.note(found, where, held.name, problem, "Correct the name.")
        elif held.name in seen:
            found.add(where, f'"{shown(held.name)}" is there twice', "Remove one of the two.")
        seen.add(held.name)
