"""Common parts of Kueue's objects in `v1beta2` and `v1beta1`: quotas, conditions and Kueue's own arithmetic.

Kueue counts cpu in thousandths and all else in whole units, both rounded up, in 64 bits that saturate; the largest
number means unlimited (kueue `pkg/resources/{amount,requests}.go`, v0.18.3).
"""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

import msgspec

from webhook.api import quantity
from webhook.api.quantity import NANO, Quantity
from webhook.api.untyped import mapping

API_VERSIONS: Final = ("kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1")

PREFIX: Final = "kueue.x-k8s.io/"
QUEUE_NAME: Final = PREFIX + "queue-name"
"""The label of a job that waits in a LocalQueue."""

PRIORITY_CLASS: Final = PREFIX + "priority-class"
"""The label with the WorkloadPriorityClass of a job."""

FOREIGN: Final = (PREFIX + "multikueue-origin", PREFIX + "prebuilt-workload-name")
"""Labels or annotations of a copy of a job from another cluster, and of a job with a prebuilt Workload.

Kueue compares such a job with its Workload, and finishes the Workload if they differ (kueue
`pkg/controller/jobframework`, "prebuilt workload is out of sync").
"""

FRAMEWORK: Final = "kubeflow.org/mpijob"
"""MPIJobs in Kueue's list of frameworks."""

UNLIMITED: Final = 2**63 - 1

_CPU: Final = "cpu"
_MILLI: Final = NANO // 1000
# A quota of this amount or more is unlimited.
_CPU_LIMIT: Final = UNLIMITED // 1000 * 1000


_MEANT: Final = ("queuename", "queue", "localqueue", "localqueuename")
_NEAR: Final = 0.85
_NO_LETTER: Final = re.compile("[^a-z]")


def means_queue_name(key: str) -> bool:
    """Whether the key is QUEUE_NAME, or a misspelling of it."""
    prefix, _, name = key.lower().rpartition("/")
    if "kueue" in prefix or prefix.endswith("x-k8s.io"):
        return bool(get_close_matches(_NO_LETTER.sub("", name), _MEANT, 1, _NEAR))
    return not prefix and "q" in name and _NO_LETTER.sub("", name) == _MEANT[0]


class FlavorResource(NamedTuple):
    """A resource of a flavor. Each has its own quota."""

    flavor: str
    resource: str


class Quota(NamedTuple):
    """Amounts in Kueue's units. None as a limit allows borrowing or lending of everything."""

    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None


Quotas = Mapping[FlavorResource, Quota]


class Group(NamedTuple):
    """Resources that a pod set gets from the same flavor. Kueue tries the flavors in this order."""

    covered: frozenset[str]
    flavors: tuple[str, ...]


class Condition(msgspec.Struct, rename="camel", omit_defaults=True):
    """A condition in a status."""

    type: str = ""
    status: str = ""
    reason: str = ""


class QueueStatus(msgspec.Struct, omit_defaults=True):
    """The status; only the conditions are read."""

    conditions: list[Condition] | None = None


class ResourceQuota(msgspec.Struct, rename="camel", omit_defaults=True):
    """A flavor's quota of one resource, as written."""

    name: str = ""
    nominal_quota: object = None
    borrowing_limit: object = None
    lending_limit: object = None


class FlavorQuotas(msgspec.Struct, omit_defaults=True):
    """A flavor's quotas."""

    name: str = ""
    resources: list[ResourceQuota] | None = None


class ResourceGroup(msgspec.Struct, rename="camel", omit_defaults=True):
    """A resource group of a ClusterQueue or Cohort."""

    covered_resources: list[str] | None = None
    flavors: list[FlavorQuotas] | None = None


def without_kueues(template: Mapping[str, Any]) -> dict[str, Any]:
    """A pod template without the changes that Kueue makes when it starts and stops a job.

    Source: kueue `pkg/podset/podset.go`.
    """
    changed = {"metadata": ("labels", "annotations"), "spec": ("nodeSelector", "tolerations", "schedulingGates")}
    return {**template} | {
        part: {name: value for name, value in mapping(template.get(part)).items() if name not in fields}
        for part, fields in changed.items()
    }


def groups(resource_groups: Iterable[ResourceGroup] | None) -> tuple[Group, ...]:
    return tuple(
        Group(frozenset(group.covered_resources or ()), tuple(flavor.name for flavor in group.flavors or ()))
        for group in resource_groups or ()
    )


def quotas(resource_groups: Iterable[ResourceGroup] | None) -> Quotas:
    """The quotas of all groups; QuantityError if a quota is invalid."""
    return {
        FlavorResource(flavor.name, resource.name): Quota(
            *(
                None if value is None else amount(resource.name, quantity.parse(value))
                for value in (resource.nominal_quota or 0, resource.borrowing_limit, resource.lending_limit)
            )  # type: ignore[arg-type]
        )
        for group in resource_groups or ()
        for flavor in group.flavors or ()
        for resource in flavor.resources or ()
    }


def stopped(policy: str | None) -> str:
    """`Hold` or `HoldAndDrain` if the queue is stopped, else empty."""
    return "" if policy in {None, "None"} else str(policy)


def inactive_reason(status: QueueStatus | None) -> str:
    """Kueue's reason for an inactive queue; empty if the queue is active or its state is unknown."""
    for condition in (status and status.conditions) or ():
        if condition.type == "Active" and condition.status == "False":
            return condition.reason or "Unknown"
    return ""


def is_active(status: QueueStatus | None) -> bool:
    """Whether Kueue has reported that the queue is active."""
    conditions = (status and status.conditions) or ()
    return any(condition.type == "Active" and condition.status == "True" for condition in conditions)


def amount(resource: str, value: Quantity) -> int:
    if resource == _CPU:
        milli = -(-value // _MILLI)
        return milli if milli < _CPU_LIMIT else UNLIMITED
    return min(-(-value // NANO), UNLIMITED)


def text(resource: str, value: int) -> str:
    """The amount as a quantity, for messages."""
    if value >= UNLIMITED:
        return "unlimited"
    return quantity.format(Quantity(value * (_MILLI if resource == _CPU else NANO)))


def plus(one: int, other: int) -> int:
    """The sum; unlimited stays unlimited."""
    return min(one + other, UNLIMITED)


def minus(one: int, other: int) -> int:
    """The difference; unlimited stays unlimited, except that unlimited minus unlimited is 0."""
    if one == UNLIMITED:
        return 0 if other == UNLIMITED else UNLIMITED
    return one - other
