"""Texts for a rejection by a quota, and for amounts of the quota's resources."""

from collections.abc import Iterable, Sequence
from typing import Final

from webhook.api import quantity
from webhook.api.accelerators import DEVICE_CLASS, DEVICES_OF_CLASS, is_accelerator
from webhook.api.mpijob import WORKER
from webhook.api.quantity import NANO, Quantity
from webhook.api.quota_charges import ONE
from webhook.predict.limits import MAX_OTHER_QUOTAS
from webhook.predict.quota.fit import Demand, Shortage, charged

HEADLINE: Final = "Quota exceeded"

_SIZES: Final = {"memory": "memory", "ephemeral-storage": "ephemeral storage", "storage": "storage"}
_OBJECTS: Final = {
    "pods": "pod",
    "services": "Service",
    "configmaps": "ConfigMap",
    "secrets": "Secret",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "jobs.batch": "Job",
    "mpijobs.kubeflow.org": "MPIJob",
    "resourceclaims.resource.k8s.io": "ResourceClaim",
}
_BY_CLASS: Final = ".storageclass.storage.k8s.io/"
_BINARY: Final = tuple((f"{letter}i", NANO * 1024**power) for power, letter in reversed([*enumerate("KMGTPE", 1)]))


def spelled(resource: str, amount: Quantity, accelerators: tuple[str, ...], *, more: bool = False) -> str:
    """The amount with its noun: `40 GPUs`, `0.5 CPUs`, `64Gi memory`. `more=True` gives `40 more GPUs`."""
    number, noun = _number_and_noun(resource, amount, accelerators)
    return f"{number} more {noun}" if more else f"{number} {noun}"


def number(resource: str, amount: Quantity, accelerators: tuple[str, ...]) -> str:
    """The amount without its noun: `40`, `0.5`, `64Gi`."""
    return _number_and_noun(resource, amount, accelerators)[0]


def details(
    short: Sequence[Shortage], demand: Demand, accelerators: tuple[str, ...], *, running: int | None, several: bool
) -> str:
    """The rejection for the first shortage, with the other shortages in one line.

    `running` is the number of running jobs that use the resource. The text names the quota if `several` is True.
    """
    first = short[0]
    more = any(part.made for part in demand.parts)
    requested = spelled(first.resource, first.missing, accelerators, more=more)
    parts = _parts(first, demand, accelerators, more=more)
    quota = f'{first.quota.reach} quota "{first.quota.name}"' if several else f"{first.quota.reach} quota"
    hard, taken, available = (
        spelled(first.resource, amount, accelerators) for amount in (first.hard, first.taken, first.available)
    )
    usage = taken if first.usage_known else "not yet known"
    users = f" ({running} running {_plural('job', running)})" if running else ""
    beyond = f"{quota} is {hard}" if first.impossible else _free(first, hard, quota, accelerators)
    lines = [
        HEADLINE,
        f"Details: Requested {requested}{parts}, but {beyond}.",
        f"Current usage: {usage}{users}",
        *([f"Available: {available}"] if first.usage_known else ()),
    ]
    if others := [_other(shortage, first.quota.name, accelerators) for shortage in short[1 : MAX_OTHER_QUOTAS + 1]]:
        if more_of_them := len(short) - 1 - len(others):
            others.append(f"and {more_of_them} more")
        lines.append(f"Also exceeded: {'; '.join(others)}")
    return "\n".join(lines)


def numbered(suggestions: Iterable[str]) -> str:
    return "\n".join(["Suggestions:", *(f"{index}. {text}" for index, text in enumerate(suggestions, start=1))])


def _parts(short: Shortage, demand: Demand, accelerators: tuple[str, ...], *, more: bool) -> str:
    """The request of each role, in parentheses; empty if no pod requests the resource."""
    texts = []
    for part in reversed(demand.parts):  # the workers first
        amount = charged(short.quota, [(1, charge) for charge in part.charges]).get(short.resource)
        count = part.count - part.made
        if amount and count > 0:
            of_pod = spelled(short.resource, amount, accelerators)
            workers = f"{count}{' more' if more else ''} {_plural('worker', count)} × {of_pod}"  # noqa: RUF001 - the sign is meant
            texts.append(workers if part.role == WORKER else f"launcher {of_pod}")
    return f" ({' + '.join(texts)})" if texts else ""


def _free(short: Shortage, hard: str, quota: str, accelerators: tuple[str, ...]) -> str:
    if not short.available:
        return f"none of {hard} is free in the {quota}"
    free = number(short.resource, short.available, accelerators)
    return f"only {free} of {hard} {'is' if short.available == ONE else 'are'} free in the {quota}"


def _other(short: Shortage, first: str, accelerators: tuple[str, ...]) -> str:
    free = number(short.resource, short.available, accelerators)
    most = number(short.resource, short.hard, accelerators)
    where = "" if short.quota.name == first else f' (quota "{short.quota.name}")'
    return f"{spelled(short.resource, short.missing, accelerators)} requested, {free} of {most} available{where}"


def _number_and_noun(resource: str, amount: Quantity, accelerators: tuple[str, ...]) -> tuple[str, str]:
    storage_class, by_class, inner = resource.rpartition(_BY_CLASS)
    if by_class:
        text, noun = _number_and_noun(inner, amount, accelerators)
        return text, f"{noun} of class {storage_class}"
    if resource.endswith(DEVICES_OF_CLASS):
        device_class = resource.removesuffix(DEVICES_OF_CLASS)
        if is_accelerator(DEVICE_CLASS + device_class, accelerators):
            return quantity.format(amount), _plural("GPU", amount)
        return quantity.format(amount), f"{_plural('device', amount)} of class {device_class}"
    name = resource.removeprefix("requests.").removeprefix("limits.").removeprefix("count/")
    if is_accelerator(name, accelerators):
        text, noun = quantity.format(amount), _plural("GPU", amount)
    elif name == "cpu":
        text, noun = f"{amount / NANO:.3f}".rstrip("0").rstrip("."), _plural("CPU", amount)
    elif name in _SIZES or name.startswith("hugepages-"):
        text, noun = _size(amount), _SIZES.get(name, name)
    elif name in _OBJECTS:
        text, noun = quantity.format(amount), _plural(_OBJECTS[name], amount)
    else:
        text, noun = quantity.format(amount), name
    return text, f"{noun} in limits" if resource.startswith("limits.") else noun


def _plural(noun: str, amount: int | Quantity) -> str:
    return noun if amount in {1, NANO} else f"{noun}s"


def _size(amount: Quantity) -> str:
    exact = quantity.format(amount)
    if len(exact) <= len("1023.9Gi"):
        return exact
    return next((f"{amount / size:.1f}{unit}" for unit, size in _BINARY if amount >= size), exact)
