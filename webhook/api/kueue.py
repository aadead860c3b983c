"""Fields that several kinds of Kueue's objects have (`v1beta2` and `v1beta1`), and Kueue's arithmetic.

Kueue counts cpu in thousandths and other resources in whole units, both rounded up. The numbers have 64 bits; the
largest number means unlimited (kueue `pkg/resources/{amount,requests}.go`, v0.18.3).
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

PRIORITY_CLASS: Final = PREFIX + "priority-class"
"""The label with the name of a WorkloadPriorityClass."""

FOREIGN: Final = (PREFIX + "multikueue-origin", PREFIX + "prebuilt-workload-name")
"""A label or annotation with one of these keys marks a job that another cluster copied here, or a job with a prebuilt
Workload.

Kueue finishes a prebuilt Workload that differs from its job (kueue `pkg/controller/jobframework`, "prebuilt workload is
out of sync").
"""

FRAMEWORK: Final = "kubeflow.org/mpijob"
"""The name of MPIJobs in Kueue's list of frameworks."""

UNLIMITED: Final = 2**63 - 1

_CPU: Final = "cpu"
_MILLI: Final = NANO // 1000
# A cpu quota of at least this many thousandths is unlimited.
_CPU_LIMIT: Final = UNLIMITED // 1000 * 1000


_MEANT: Final = ("queuename", "queue", "localqueue", "localqueuename")
_NEAR: Final = 0.85
_NO_LETTER: Final = re.compile("[^a-z]")


def queue_names(keys: Iterable[str]) -> list[str]:
    """The keys that mean Kueue's label for a queue, also misspelled or with another domain."""
    return [key for key in keys if _means_queue_name(key)]


def _means_queue_name(key: str) -> bool:
    prefix, _, name = key.lower().rpartition("/")
    if "kueue" in prefix or prefix.endswith("x-k8s.io"):
        return bool(get_close_matches(_NO_LETTER.sub("", name), _MEANT, 1, _NEAR))
    return not prefix and "q" in name and _NO_LETTER.sub("", name) == _MEANT[0]


class FlavorResource(NamedTuple):
    flavor: str
    resource: str


class Quota(NamedTuple):
    """Amounts in Kueue's units. Without a limit, everything can be borrowed or lent."""

    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None


Quotas = Mapping[FlavorResource, Quota]


class Group(NamedTuple):
    """A resource group of a queue. Kueue tries the flavors in this order."""

    covered: frozenset[str]
    flavors: tuple[str, ...]


class Condition(msgspec.Struct, rename="camel", omit_defaults=True):
    type: str = ""
    status: str = ""
    reason: str = ""


class QueueStatus(msgspec.Struct, omit_defaults=True):
    conditions: list[Condition] | None = None


class ResourceQuota(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    nominal_quota: object = None
    borrowing_limit: object = None
    lending_limit: object = None


class FlavorQuotas(msgspec.Struct, omit_defaults=True):
    name: str = ""
    resources: list[ResourceQuota] | None = None


class ResourceGroup(msgspec.Struct, rename="camel", omit_defaults=True):
    covered_resources: list[str] | None = None
    flavors: list[FlavorQuotas] | None = None


def without_kueues(template: Mapping[str, Any]) -> dict[str, Any]:
    """A pod template without the fields that Kueue changes when it starts or stops a job (kueue
    `pkg/podset/podset.go`).
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
    """QuantityError if a quota is invalid."""
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
    conditions = (status and status.conditions) or ()
    return any(condition.type == "Active" and condition.status == "True" for condition in conditions)


def amount(resource: str, value: Quantity) -> int:
    if resource == _CPU:
        milli = -(-value // _MILLI)
        return milli if milli < _CPU_LIMIT else UNLIMITED
    return min(-(-value // NANO), UNLIMITED)


def text(resource: str, value: int) -> str:
    if value >= UNLIMITED:
        return "unlimited"
    return quantity.format(Quantity(value * (_MILLI if resource == _CPU else NANO)))


def plus(first: int, second: int) -> int:
    """The sum; unlimited stays unlimited."""
    return min(first + second, UNLIMITED)


def minus(first: int, second: int) -> int:
    """The difference; unlimited stays unlimited, except that unlimited minus unlimited is 0."""
    if first == UNLIMITED:
        return 0 if second == UNLIMITED else UNLIMITED
    return first - second
