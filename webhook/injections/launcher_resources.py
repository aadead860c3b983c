"""A launcher without resources gets small amounts if a quota or LimitRange would otherwise reject its pod.

A ResourceQuota on CPU or memory rejects every pod with a container that does not state an amount of the resource. A
LimitRange with a minimum or maximum does the same, if it has no default. Most launchers only start ranks by ssh and
state no resources. Such a job is stored and its workers run, but its launcher is never created. Therefore each
container of the launcher gets the requests and limits that the namespace requires and the job does not state. An
injected limit is never below an existing request.

With `when: always` every launcher container gets the missing requests, in every namespace.

In a queue of Kueue whose flavors are all topology-aware, a launcher that requests none of their resources never starts
(`no TAS flavor assigned`). It gets small requests of CPU and memory if the ClusterQueue covers them. Otherwise it gets
a request and a limit of `"0"` for a device that the ClusterQueue covers. A launcher also gets `"0"` of each accelerator
that a LimitRange would add to it by default.

Nothing is injected into a launcher that runs ranks (`runLauncherAsWorker`), or into a pod with pod-level resources.
Nothing is injected either if the job's ClusterQueue does not cover the amounts, or if a LimitRange forbids them: the
rules `resource-quota` and `limit-range` then suggest amounts. With `when: always` the amounts are also left out if they
would make the job larger than the ClusterQueue's quota. Nothing is injected while the LimitRanges of the namespace are
unknown.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from re import compile as compiled
from typing import Annotated, Final

from msgspec import structs
from pydantic import AfterValidator, Field, model_validator

from webhook.api import quantity
from webhook.api.accelerators import is_accelerator
from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import LAUNCHER, MPIJob
from webhook.api.pod_resources import PodResources
from webhook.api.quantity import Quantity, QuantityError
from webhook.cluster.resources.limit_ranges import LIMIT_RANGES
from webhook.cluster.view import UNKNOWN
from webhook.injections import Caution, injection
from webhook.kit.context import Context, Memo
from webhook.kit.forms import ITEM, ComesBack, a_text, in_launcher
from webhook.kit.importance import Importance
from webhook.kit.patch import PatchBuilder, template_path
from webhook.kit.patched_job import patched_job, trial
from webhook.kit.settings import InjectionSettings
from webhook.predict.job_pods import JobPods, job_pods
from webhook.predict.kueue import queues, topology
from webhook.predict.kueue.coverage import not_covered
from webhook.predict.kueue.feasibility import obstacles
from webhook.predict.kueue.managed import configuration, manages
from webhook.predict.kueue.pod_sets import pod_sets
from webhook.predict.limit_ranges import OutOfBounds, faults
from webhook.predict.never import never_has
from webhook.predict.quota.assessment import assess

REQUESTS: Final = "requests"
LIMITS: Final = "limits"
RESOURCES: Final = ("cpu", "memory")
_NONE: Final = "0"
_OF_CONTAINER = compiled(r"spec\.(?P<kind>containers|initContainers)\[(?P<index>\d+)\]\.resources")

Key = tuple[int, str, str]
"""(index of the container, with init containers last; `requests` or `limits`; resource)."""


class When(StrEnum):
    """The namespaces in which the amounts are injected."""

    NEEDED = "needed"
    ALWAYS = "always"


def _amounts(amounts: dict[str, str]) -> dict[str, str]:
    for name, text in amounts.items():
        try:
            amount = quantity.parse(text)
        except QuantityError as error:
            raise ValueError(f'{name} "{text}" {error}. {error.fix(name)}') from None
        if name not in RESOURCES or amount <= 0:
            raise ValueError(f'"{name}: {text}" is not an amount above zero of {" or ".join(RESOURCES)}')
    if missing := [name for name in RESOURCES if name not in amounts]:
        raise ValueError(f"has no {' and no '.join(missing)}")
    return amounts


Amounts = Annotated[dict[str, str], AfterValidator(_amounts)]


class Settings(InjectionSettings):
    """The amounts, and the namespaces in which they are injected."""

    when: When = Field(
        When.NEEDED,
        description="needed: only if a quota or LimitRange would reject the launcher; always: in every namespace.",
    )
    requests: Amounts = Field({"cpu": "100m", "memory": "512Mi"}, description="The requests of a container.")
    limits: Amounts = Field({"cpu": "1", "memory": "2Gi"}, description="The limits of a container, if one is required.")

    @model_validator(mode="after")
    def _in_order(self) -> "Settings":
        for name, request in self.requests.items():
            limit = self.limits[name]
            if quantity.parse(request) > quantity.parse(limit):
                raise ValueError(f"requests.{name} {request} is above limits.{name} {limit}")
        return self


def _no_device(name: str, value: object) -> bool:
    return "/" in name and value == _NONE


FORMS: Final = tuple(
    in_launcher("spec", kind, ITEM, "resources", field, name, holds=holds, when=ComesBack.SAME_FILE)
    for kind in ("containers", "initContainers")
    for field in (REQUESTS, LIMITS)
    for name, holds in (*((name, a_text) for name in RESOURCES), (ITEM, _no_device))
)


@injection("launcher-resources", Settings, since="0.1", importance=Importance.FAILS, forms=FORMS)
def inject(job: MPIJob, settings: Settings, ctx: Context, patch: PatchBuilder) -> Iterator[str]:
    launcher = next((pods for pods in job_pods(job, ctx) if pods.role == LAUNCHER), None)
    if launcher is None or not launcher.certain or job.spec.run_launcher_as_worker:
        return
    if launcher.template.spec is None or launcher.template.spec.resources is not None:
        return
    covered = _of_topologies(job, launcher, ctx, patch)
    needed = (*_needed(job, ctx, launcher), *((0, REQUESTS, name) for name in RESOURCES if name in covered))
    amounts = {key: _of(settings, launcher, key) for key in dict.fromkeys((*needed, *_unrequested(settings, launcher)))}
    queue = patch.get(("metadata", "labels", QUEUE_NAME))
    names = sorted({name for _, _, name in amounts})
    problem = not_covered(ctx.view, ctx.namespace, queue, names) if isinstance(queue, str) and names else ""
    amounts = {} if problem else dict(_within_limit_ranges(launcher, amounts, ctx))
    if not needed and (problem := problem or _reason_to_wait(job, launcher, amounts, ctx, patch)):
        amounts = {}
    if problem:
        yield Caution(f"nothing is set for the launcher: {problem}")
    devices = [(index, name) for index, name in launcher.by_default if is_accelerator(name, ctx.admitted.accelerators)]
    if covered.isdisjoint(RESOURCES) and (of_devices := [name for name in covered if "/" in name]):
        devices.append((0, topology.request_for(of_devices)))
    with_none = amounts | {(index, field, name): _NONE for index, name in devices for field in (REQUESTS, LIMITS)}
    if with_none and not _breaks_a_bound(launcher, with_none, ctx):
        amounts = with_none
    if added := _write(launcher, amounts, patch):
        yield f"set the launcher's {', '.join(added)}"


def _of_topologies(job: MPIJob, launcher: JobPods, ctx: Context, patch: PatchBuilder) -> frozenset[str]:
    """The resources of the topology-aware flavors, if the launcher must request one of them; else empty."""
    name = queues.of_job(ctx.view, ctx.namespace, patch.get(("metadata", "labels", QUEUE_NAME)))
    queue = queues.cluster_queue(ctx.view, ctx.namespace, name) if name and name is not UNKNOWN else None
    config = configuration(ctx.view)
    if queue is None or config is UNKNOWN or manages(ctx.view, ctx.namespace) is not True:
        return frozenset()
    if not all(map(config.leaves_out, launcher.requests)):
        return frozenset()
    sets = [pod_set for pod_set in pod_sets(job, ctx, config) or () if pod_set.role == LAUNCHER]
    return frozenset(name for obstacle in obstacles(ctx.view, queue, sets, config) for name in obstacle.of_topologies)


def _write(launcher: JobPods, amounts: Mapping[Key, str], patch: PatchBuilder) -> list[str]:
    added: dict[str, None] = {}
    for (index, field, name), text in amounts.items():
        container_path = launcher.resources.containers[index].path
        kind, position = container_path.removeprefix("spec.").removesuffix("]").split("[")
        path = (*template_path(LAUNCHER), "spec", kind, int(position), "resources", field, name)
        if patch.add(path, text):
            added[f"{field}.{name} {text}"] = None
    return [*added]


def _reason_to_wait(
    job: MPIJob, launcher: JobPods, amounts: Mapping[Key, str], ctx: Context, patch: PatchBuilder
) -> str:
    """The reason why the job would wait for ever with these amounts; empty if it may start."""
    label = patch.get(("metadata", "labels", QUEUE_NAME))
    if not amounts or never_has(job, ctx, RESOURCES, label=label):
        return ""
    tried = trial(patch)
    _write(launcher, amounts, tried)
    return never_has(*patched_job(tried, ctx), RESOURCES, label=label)


def _needed(job: MPIJob, ctx: Context, launcher: JobPods) -> Iterator[Key]:
    """The amounts that the namespace requires and the job does not state."""
    # Quotas are evaluated only for new jobs. An update must restore the amounts that the new job got.
    assessment = assess(job, structs.replace(ctx, operation="CREATE", old=None, memo=Memo()))
    if assessment is not None:
        part = next(part for part in assessment.demand.parts if part.role == LAUNCHER)
        for quota in assessment.quotas:
            if not quota.counts(part.charges[0].traits):
                continue
            for resource, indices in quota.unstated(launcher.resources).items():
                field, name = resource.split(".") if "." in resource else (REQUESTS, resource)
                yield from ((index, field, name) for index in indices)
    for fault in _faults(launcher, launcher.resources, ctx):
        if not isinstance(fault, OutOfBounds) or fault.amounts.name not in RESOURCES:
            continue
        place = _OF_CONTAINER.fullmatch(fault.amounts.path)
        missing = [
            field
            for field, amount in ((REQUESTS, fault.amounts.request), (LIMITS, fault.amounts.limit))
            if amount is None
        ]
        if place is None or not missing:
            continue
        first = 0 if place["kind"] == "containers" else len(launcher.template.containers)
        yield from ((first + int(place["index"]), field, fault.amounts.name) for field in missing)


def _unrequested(settings: Settings, launcher: JobPods) -> Iterator[Key]:
    if settings.when is When.ALWAYS:
        for index, container in enumerate(launcher.resources.containers):
            yield from ((index, REQUESTS, name) for name in RESOURCES if name not in container.requests)


def _of(settings: Settings, launcher: JobPods, key: Key) -> str:
    """The policy's amount. If the limit would then be below the request, both get the container's existing amount."""
    index, field, name = key
    container = launcher.resources.containers[index]
    text = (settings.limits if field == LIMITS else settings.requests)[name]
    other = (container.requests if field == LIMITS else container.limits).get(name)
    if other is None:
        return text
    amount = quantity.parse(text)
    within = amount >= other if field == LIMITS else amount <= other
    return text if within else quantity.format(other)


def _within_limit_ranges(launcher: JobPods, amounts: Mapping[Key, str], ctx: Context) -> Mapping[Key, str]:
    """`amounts` if LimitRanges allow them, else requests equal to the limits. Empty if a LimitRange forbids both."""
    if not amounts or not _breaks_a_bound(launcher, amounts, ctx):
        return amounts
    equal = {key: amounts.get((key[0], LIMITS, key[2]), text) for key, text in amounts.items()}  # limit/request is 1
    return {} if _breaks_a_bound(launcher, equal, ctx) else equal


def _breaks_a_bound(launcher: JobPods, amounts: Mapping[Key, str], ctx: Context) -> bool:
    stated: dict[tuple[int, str], dict[str, Quantity]] = {}
    for (index, field, name), text in amounts.items():
        stated.setdefault((index, field), {})[name] = quantity.parse(text)
    containers = list(launcher.resources.containers)
    for index, container in enumerate(containers):
        limits = stated.get((index, LIMITS), {})
        requests = {**limits, **container.requests, **stated.get((index, REQUESTS), {})}
        containers[index] = replace(container, requests=requests, limits={**container.limits, **limits})
    changed = replace(launcher.resources, containers=tuple(containers))
    return any(isinstance(fault, OutOfBounds) for fault in _faults(launcher, changed, ctx))


def _faults(launcher: JobPods, resources: PodResources, ctx: Context) -> list[object]:
    ranges = ctx.view.within(LIMIT_RANGES, ctx.namespace)
    if ranges is UNKNOWN or not ranges:
        return []
    return list(faults(launcher.template, resources, launcher.disputed, tuple(ranges.values())))
