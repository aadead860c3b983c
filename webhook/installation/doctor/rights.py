"""The rights that the service needs, and the rights on Secrets that it must not have."""

import asyncio
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from webhook.client.access_reviews import Right, has_right
from webhook.client.calls import Client
from webhook.client.objects import KubernetesObject
from webhook.cluster.resource import WatchedPlace
from webhook.cluster.resources import watched_resources
from webhook.installation import registration
from webhook.installation.certificate_store import CRD
from webhook.installation.components import COMPONENTS, rights_of
from webhook.installation.doctor.facts import KUEUE_CONFIGURATION, Location
from webhook.installation.limits import MAX_RIGHTS_READ_AT_ONCE
from webhook.policy.store import REMEMBERED

SECRET_VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete")
ADMISSION: Final = "admissionregistration.k8s.io"
REVIEWED: Final = "subjectaccessreviews"


@dataclass(frozen=True, slots=True)
class Purpose:
    without: str
    """The consequence if a right is missing."""
    rights: tuple[Right, ...]
    essential: bool = False
    """Whether the service cannot work without the rights."""


def purposes(location: Location, *, ca_secret: str, options: Container[str]) -> tuple[Purpose, ...]:
    """All rights that the service needs with these `options`, by purpose."""
    view = Purpose("rules do not see them, and reject no job because of them", _view(location))
    return (view, *beyond_view(location, ca_secret=ca_secret, options=options))


def beyond_view(location: Location, *, ca_secret: str, options: Container[str]) -> tuple[Purpose, ...]:
    """All rights that the service needs, except the rights to read objects for the rules."""
    place = location.namespace
    purposes_needed = [
        Purpose(
            "policies are not followed", _rights(["get", "list", "watch"], "", "configmaps", place), essential=True
        ),
        Purpose(
            "valid policies are not stored, and faults of broken ones are not reported",
            (
                Right("create", "", "configmaps", place),
                Right("update", "", "configmaps", place, REMEMBERED),
                Right("create", "", "events", place),
            ),
        ),
        Purpose(
            "jobs in a namespace that is not cached yet get no verdict (HTTP 503)",
            (Right("get", "", "namespaces"),),
            essential=True,
        ),
        Purpose("exemptions by annotation are rejected", (Right("create", "authorization.k8s.io", REVIEWED),)),
        Purpose(
            "two jobs may get the same quota",
            _rights(["get", "create", "update", "delete"], "coordination.k8s.io", "leases", place),
        ),
    ]
    mutating = registration.RESOURCES["MutatingWebhookConfiguration"]
    purposes_needed.append(
        Purpose(
            "missing webhook configurations and a wrong order of them are not reported",
            (*_of_configurations("get"), Right("get", ADMISSION, mutating, name=KUEUE_CONFIGURATION)),
        )
    )
    if ca_secret:
        secret = _rights(["get", "patch"], "", "secrets", place, ca_secret)
        bundles = _of_configurations("get", "patch")
        purposes_needed.append(Purpose("certificates are not renewed", (*secret, *bundles), essential=True))
        if "--conversion" in options:
            crd = _rights(
                ["get", "patch"], "apiextensions.k8s.io", "customresourcedefinitions", name=CRD.rpartition("/")[2]
            )
            purposes_needed.append(Purpose("older versions of jobs cannot be read after the CA changes", crd))
    purposes_needed += [
        Purpose(component.without, tuple(rights_of(component)))
        for component in COMPONENTS
        if component.option in options
    ]
    return tuple(purposes_needed)


def read_rules(place: WatchedPlace | None) -> list[KubernetesObject]:
    """The RBAC rules for the resources that the service reads in `place`. None stands for all namespaces.

    If a resource's field selector has a name, the rule is for this name only.
    """
    plurals_by_rule: dict[tuple[str, str], set[str]] = {}
    for resource in watched_resources():
        if resource.place is place:
            name = resource.field_selector.removeprefix("metadata.name=") if resource.field_selector else ""
            plurals_by_rule.setdefault((resource.api_group, name), set()).add(resource.plural)
    return [
        {"apiGroups": [group], "resources": sorted(plurals)}
        | ({"resourceNames": [name]} if name else {})
        | {"verbs": ["get", "list", "watch"]}
        for (group, name), plurals in sorted(plurals_by_rule.items())
    ]


def excess(location: Location, *, options: Container[str]) -> tuple[Right, ...]:
    """Rights on Secrets that the service does not need with these `options`."""
    needed = {
        right.verb
        for component in COMPONENTS
        if component.option in options
        for right in rights_of(component)
        if right.resource == "secrets"
    }
    verbs = [verb for verb in SECRET_VERBS if verb not in needed]
    return tuple(Right(verb, "", "secrets", namespace) for namespace in ("", location.namespace) for verb in verbs)


async def granted(api: Client, account: str, namespace: str, rights: Iterable[Right]) -> Mapping[Right, bool]:
    """For each right, whether the ServiceAccount has it; ClusterError if the API server does not answer."""
    gate = asyncio.Semaphore(MAX_RIGHTS_READ_AT_ONCE)
    unique = tuple(dict.fromkeys(rights))

    subject = {
        "user": f"system:serviceaccount:{namespace}:{account}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
    }

    async def allowed(right: Right) -> bool:
        async with gate:
            return await has_right(api, right, subject)

    return dict(zip(unique, await asyncio.gather(*map(allowed, unique)), strict=True))


def _view(location: Location) -> tuple[Right, ...]:
    namespaces = {None: "", WatchedPlace.OWN: location.namespace, WatchedPlace.KUEUE: location.kueue_namespace}
    return tuple(
        Right(verb, group, resource, namespace, name)
        for place, namespace in namespaces.items()
        for rule in read_rules(place)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or [""]
        for verb in rule["verbs"]
    )


def _rights(verbs: Iterable[str], group: str, resource: str, namespace: str = "", name: str = "") -> tuple[Right, ...]:
    return tuple(Right(verb, group, resource, namespace, name) for verb in verbs)


def _of_configurations(*verbs: str) -> tuple[Right, ...]:
    return tuple(
        right
        for resource in registration.RESOURCES.values()
        for right in _rights(verbs, ADMISSION, resource, name=registration.NAME)
    )
