"""The objects that a job's pods refer to exist in its namespace.

The rule checks PersistentVolumeClaims, ConfigMaps (as volumes and in the environment, unless they are optional) and
their keys, ServiceAccounts, RuntimeClasses, and the NetworkAttachmentDefinitions in the annotation
`k8s.v1.cni.cncf.io/networks`. If such an object is missing, the pods are rejected or wait for ever. The violation is a
warning, because the same `kubectl apply` may create the object. Secrets are not checked, because this service may not
read them.

A claim that several pods mount should be `ReadWriteMany`. With `ReadWriteOnce` all these pods must run on one node,
so the rule warns, but never rejects the job. With `ReadWriteOncePod` a second pod never starts.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from webhook.api import names, networks
from webhook.api.mpijob import MPIJob
from webhook.api.networks import NETWORKS, NetworksError
from webhook.api.pod import ConfigMapSource, Container, PodTemplate, Volume
from webhook.cluster.resource import Resource
from webhook.cluster.resources.config_maps import CONFIG_MAPS, ConfigMap
from webhook.cluster.resources.network_attachment_definitions import NETWORK_ATTACHMENT_DEFINITIONS
from webhook.cluster.resources.persistent_volume_claims import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from webhook.cluster.resources.runtime_classes import RUNTIME_CLASSES
from webhook.cluster.resources.service_accounts import SERVICE_ACCOUNTS
from webhook.cluster.view import ABSENT, UNKNOWN
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import WarningRuleSettings
from webhook.rules import CauseReason, Degree, Violation, rule, shortened
from webhook.rules.child_names import CONFIG_SUFFIX
from webhook.rules.limits import MAX_OBJECT_NAME_CHARACTERS

MANY = frozenset({"ReadWriteMany", "ReadOnlyMany"})
ONE_POD = "ReadWriteOncePod"


class Settings(WarningRuleSettings):
    """No settings except the action."""


class Reference(msgspec.Struct, frozen=True, gc=False):
    """A reference at `path`; `namespace` is empty for the job's namespace and for cluster-wide objects."""

    path: str
    resource: Resource[Any, Any]
    name: str
    namespace: str = ""
    unchecked: bool = False
    """True if no other rule reports an invalid name."""
    keys: tuple[tuple[str, str], ...] = ()
    """(path, key) of required keys."""


@rule("references", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    if not job.managed_here:
        return
    checked: set[Any] = set()
    shared: dict[str, int] = {}
    paths: dict[str, str] = {}
    for _, path, replica in job.replicas:
        template = replica.template
        claims = set()
        for reference in _references(template, path):
            if reference.resource is PERSISTENT_VOLUME_CLAIMS:
                claims.add(reference.name)
                paths.setdefault(reference.name, reference.path)
            if (violation := _missing(reference, job, checked, ctx)) is not None:
                yield violation
            elif reference.keys:
                yield from _missing_keys(reference, ctx)
        for name in claims:
            shared[name] = shared.get(name, 0) + (replica.replicas or 0)
        if text := template.annotations.get(NETWORKS):
            yield from _networks(f"{path}.template.metadata.annotations[{NETWORKS}]", text, job, checked, ctx)
    for name, pods in shared.items():
        if pods < 2:
            continue
        claim = ctx.view.get(PERSISTENT_VOLUME_CLAIMS, (ctx.namespace, name))
        if isinstance(claim, PersistentVolumeClaim) and claim.access_modes:
            yield from _sharing(paths[name], claim, pods)


def _references(template: PodTemplate, path: str) -> list[Reference]:
    references: list[Reference] = []
    if (spec := template.spec) is None:
        return references
    path = f"{path}.template.spec"
    for index, volume in enumerate(spec.volumes or ()):
        if volume.persistent_volume_claim or volume.config_map or volume.projected:
            _volume(volume, f"{path}.volumes[{index}]", references)
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers or ()):
            if container.env or container.env_from:
                _environment(container, f"{path}.{kind}[{index}]", references)
    for field, name in (("serviceAccountName", spec.service_account_name), ("serviceAccount", spec.service_account)):
        if name:  # the newer `serviceAccountName` overrides `serviceAccount`
            if not _is_invalid(name):
                references.append(Reference(f"{path}.{field}", SERVICE_ACCOUNTS, name))
            break
    if spec.runtime_class_name and not _is_invalid(spec.runtime_class_name):
        references.append(Reference(f"{path}.runtimeClassName", RUNTIME_CLASSES, spec.runtime_class_name))
    return references


def _is_invalid(name: str) -> bool:
    """The rule `pod-template` reports an invalid name."""
    return names.dns_1123_subdomain_problem(name) is not None


def _volume(volume: Volume, path: str, references: list[Reference]) -> None:
    if volume.persistent_volume_claim is not None and volume.persistent_volume_claim.claim_name:
        claim, path_of_name = volume.persistent_volume_claim.claim_name, f"{path}.persistentVolumeClaim.claimName"
        references.append(Reference(path_of_name, PERSISTENT_VOLUME_CLAIMS, claim, unchecked=True))
    if volume.config_map is not None:
        _config_map(volume.config_map, f"{path}.configMap", references)
    for index, source in enumerate((volume.projected and volume.projected.sources) or ()):
        if source.config_map is not None:
            _config_map(source.config_map, f"{path}.projected.sources[{index}].configMap", references)


def _environment(container: Container, path: str, references: list[Reference]) -> None:
    for index, source in enumerate(container.env_from or ()):
        if source.config_map_ref is not None and not _is_invalid(source.config_map_ref.name):
            _config_map(source.config_map_ref, f"{path}.envFrom[{index}].configMapRef", references)
    for index, variable in container.sourced:
        key = variable.value_from.config_map_key_ref
        if key is not None and not _is_invalid(key.name):
            _config_map(key, f"{path}.env[{index}].valueFrom.configMapKeyRef", references)


def _config_map(source: ConfigMapSource, path: str, references: list[Reference]) -> None:
    if source.name and not source.optional:
        keys = [(f"{path}.key", source.key)] if source.key else []
        keys += [(f"{path}.items[{index}].key", item.key) for index, item in enumerate(source.items or ()) if item.key]
        references.append(Reference(f"{path}.name", CONFIG_MAPS, source.name, unchecked=True, keys=tuple(keys)))


def _networks(path: str, text: str, job: MPIJob, checked: set[Any], ctx: Context) -> Iterator[Violation]:
    try:
        selected = networks.parse(text)
    except NetworksError as error:
        yield Violation(path, str(error), fix="Write net-a, team/net-b@ib0 or a list in JSON.")
        return
    for network in selected:
        reference = Reference(path, NETWORK_ATTACHMENT_DEFINITIONS, network.name, network.namespace)
        if (violation := _missing(reference, job, checked, ctx)) is not None:
            yield violation


def _missing(reference: Reference, job: MPIJob, checked: set[Any], ctx: Context) -> Violation | None:
    """A violation if the object is missing, once for each object."""
    resource, namespace = reference.resource, reference.namespace or ctx.namespace
    if (key := (resource, namespace, reference.name)) in checked:
        return None
    checked.add(key)
    problem = names.dns_1123_subdomain_problem(reference.name) if reference.unchecked else None
    if not problem and ctx.view.get(resource, resource.key(namespace, reference.name)) is not ABSENT:
        return None
    if resource is CONFIG_MAPS and reference.name == f"{job.metadata.name}{CONFIG_SUFFIX}":
        return None  # the operator creates it
    if problem:
        fix = names.advice(reference.name, names.dns_1123_subdomain_problem)
        return Violation(reference.path, f'{resource.kind} "{shortened(reference.name, 60)}" {problem}', fix)
    elsewhere = resource.is_namespaced and namespace != ctx.namespace
    similar = None if elsewhere else ctx.closest_name(reference.name, lambda: _names(resource, ctx))
    where = f" in {namespace}" if elsewhere else ""
    hint = f', but "{similar}" does' if similar else ""
    create = "Create it, before or in the same apply."
    return Violation(
        reference.path,
        f'{resource.kind} "{shortened(reference.name, 60)}" does not exist{where}{hint}',
        fix=f"Use {similar}, or create it before or in the same apply." if similar else create,
        reason=CauseReason.NOT_SUPPORTED,
    )


def _missing_keys(reference: Reference, ctx: Context) -> Iterator[Violation]:
    config_map = ctx.view.get(CONFIG_MAPS, (ctx.namespace, reference.name))
    existing = config_map.keys if isinstance(config_map, ConfigMap) else None
    for path, key in reference.keys if existing is not None else ():
        if key not in (existing or ()):
            similar = ctx.closest_name(key, lambda: existing or ())
            name, shown = (shortened(text, MAX_OBJECT_NAME_CHARACTERS) for text in (reference.name, key))
            fault = f'ConfigMap "{name}" has no key "{shown}"'
            fix = f"Write {similar}." if similar else "Add the key, or correct it."
            yield Violation(path, fault, fix=fix, reason=CauseReason.NOT_SUPPORTED)


def _names(resource: Resource[Any, Any], ctx: Context) -> Iterable[str]:
    records = ctx.view.within(resource, ctx.namespace) if resource.is_namespaced else ctx.view.all(resource)
    return () if records is UNKNOWN else (record.name for record in records.values())


def _sharing(path: str, claim: PersistentVolumeClaim, pods: int) -> Iterator[Violation]:
    modes = set(claim.access_modes)
    degree = Degree(f"shares {claim.name}", pods)
    if modes == {ONE_POD}:
        fault = f"{pods} pods mount it, but {ONE_POD} allows one"
        fix = "Use a claim with ReadWriteMany."
        yield Violation(path, fault, fix=fix, reason=CauseReason.NOT_SUPPORTED, degree=degree)
    elif not modes & MANY:
        fault = f"{pods} pods mount it, but ReadWriteOnce keeps them on one node"
        yield Violation(path, fault, fix="Use a claim with ReadWriteMany.", advisory=True, degree=degree)
