"""GPUs and other accelerators are requested in a way that a node can provide.

A worker gets between `min` and `max` of them, counted like Kubernetes counts a pod (init containers and sidecars
included). They come whole, with requests and limits equal, and of one kind in the whole job: mixed kinds are not
supported, so the part that needs another kind is a job of its own. Which resource names count is a setting. For cores,
of which one device has several (`coreResources`, such as `aws.amazon.com/neuroncore`), `maxCores` is the bound. It or
`max` also applies to a launcher that is not a worker, `min` does not. A GPU of its first container stays idle (the
operator empties its `NVIDIA_VISIBLE_DEVICES`): that is a warning, as is a GPU that a LimitRange adds to it by default.

`NVIDIA_VISIBLE_DEVICES` in a container that requests no accelerator is a warning: with the defaults of NVIDIA's
container toolkit, it gives GPUs of the node past every request, quota and queue. `refuseVisibleDevices` and `max: 0`
reject it. Not guaranteed: variables of images and of `envFrom` are not seen, nor are mounts under
`/var/run/nvidia-container-devices`. The toolkit's setting `accept-nvidia-visible-devices-envvar-when-unprivileged =
false` closes that way on the nodes.

Devices that come by claims are counted if their ResourceClaimTemplate is known. Those of a DeviceClass are accelerators
if `deviceclass.resource.kubernetes.io/` with its name, or the extended resource that it names, is among the resource
names. If a request has several choices (`firstAvailable`), the largest counts against `max`. A claim that pods share or
that takes all devices of a node rejects nothing: a warning names it and the reason. A claim that cannot be read is
ignored. With `refuseUncountedClaims`, claims of the first two kinds are rejected, as are claims of a template that does
not exist yet, and of DeviceClasses that are neither accelerators nor in `otherClasses`; a claim that cannot be read is
a warning. Not guaranteed: a template that is replaced after the job was admitted is not seen.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from pydantic import Field

from webhook.api import quantity, quantity_fields
from webhook.api.accelerators import (
    CORES,
    DEFAULT_ACCELERATORS,
    accelerators,
    is_accelerator,
    misspelt_accelerator,
    read,
)
from webhook.api.mpijob import LAUNCHER, MPIJob, replica_path
from webhook.api.names import label_key_problem
from webhook.api.pod import PodTemplate, ResourceRequirements
from webhook.api.quantity import Quantity, QuantityError
from webhook.cluster.resources.limit_ranges import LIMIT_RANGES
from webhook.cluster.view import UNKNOWN
from webhook.kit.advice_bounds import Admitted, Span
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import ObjectNames, RangeRuleSettings, ResourceNames
from webhook.predict import devices
from webhook.predict.devices import Devices
from webhook.predict.job_pods import job_pods
from webhook.predict.nodes import node_shapes
from webhook.predict.sizes import Sizes
from webhook.rules import CauseReason, Degree, Violation, rule, shortened
from webhook.rules.limits import MAX_CLAIM_NAME_CHARACTERS

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
# Values with which the toolkit gives no GPU: https://github.com/NVIDIA/nvidia-container-toolkit
NO_DEVICES = frozenset({None, "", "none", "void"})


class Settings(RangeRuleSettings):
    """The number and kinds of accelerators."""

    min: int = Field(0, ge=0, description="Minimum number of accelerators of a worker.")
    max: int = Field(16, ge=0, description="Maximum number of accelerators of a worker, or of the launcher.")
    resources: ResourceNames = Field(
        DEFAULT_ACCELERATORS,
        description="Names of resources that are accelerators; `*` in a name matches any text.",
    )
    max_cores: int = Field(
        128, ge=0, description="Maximum number of cores of a worker, or of the launcher; with max: 0 none are allowed."
    )
    core_resources: ResourceNames = Field(
        CORES, description="Resource names of which one device has several: maxCores bounds them, not max."
    )
    refuse_uncounted_claims: bool = Field(
        False,
        description="Whether claims are rejected whose accelerators cannot be counted; otherwise it is a warning.",
    )
    other_classes: ObjectNames = Field(
        (), description="DeviceClasses besides accelerators that claims may then request, such as those of adapters."
    )
    refuse_visible_devices: bool = Field(
        False,
        description="Whether NVIDIA_VISIBLE_DEVICES is rejected in every container. Otherwise it is a warning where no "
        "accelerator is requested, and rejected there with max: 0.",
    )

    @property
    def others(self) -> tuple[str, ...] | None:
        """`other_classes` if claims that cannot be counted are rejected; None if they cause a warning."""
        return self.other_classes if self.refuse_uncounted_claims else None


def admits(settings: Settings) -> Admitted:
    """Accelerators within the bounds."""
    return Admitted(gpus=Span(settings.min, settings.max), accelerators=settings.resources)


@rule("gpus", Settings, since="0.1", admits=admits, importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """Each quantity, then the kinds, then the number for each pod."""
    kinds: dict[str, str] = {}
    computing = {role for role, _, _ in job.computing()}
    ranges = ctx.view.within(LIMIT_RANGES, ctx.namespace)
    filled_in = ranges is not UNKNOWN and bool(ranges)
    for role, path, replica in job.replicas():
        template = replica.template
        yield from _misspelt(f"{path}.template", template, settings, ctx)
        for where, container in devices.asking(template, ctx):
            if container.resources is not None:
                place = f"{path}.template.{where}.resources"
                yield from _quantities(place, container.resources, settings.resources, kinds, filled_in)
        if not template.containers:
            continue  # upstream-contract rejects it
        pod = devices.of_pod(template, settings.resources, ctx)
        yield from _visible(f"{path}.template", template, settings, overwritten=role not in computing, pod=pod)
        bound = _bound(template, pod, settings, ctx)
        if role in computing:
            faults = list(_bounds(role, path, pod, bound, partial(_of_a_worker, job, settings, ctx)))
            for fault in faults:
                yield _with_more_workers(fault, job, ctx) if pod.asked > bound.most else fault
            if not faults:
                yield from uncounted(path, template, settings.resources, ctx, settings.others)
        elif pod.asked > bound.most:
            yield _too_many("the launcher", role, path, pod, bound)
        else:
            if pod.least:
                yield from _idle(path, template, settings)
            yield from _by_default(job, settings, ctx)
            if settings.others is not None:
                yield from uncounted(path, template, settings.resources, ctx, settings.others)
    if len(kinds) > 1:
        yield from _kinds(job, kinds)


def _misspelt(path: str, template: PodTemplate, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """If nodes are known, `accelerator-available` reports what they have; `pod-template` rejects invalid names."""
    for where, amounts in () if node_shapes(ctx.view) else quantity_fields.of_template(template):
        for name in amounts:
            meant = misspelt_accelerator(name)
            if meant and not is_accelerator(name, settings.resources) and not label_key_problem(name):
                place = path + quantity_fields.place(where, name)
                may_exist = "." in name and name.lower().rstrip("s") != meant
                fault, fix = f"no node has the resource {name}", f"Rename it to {meant}."
                yield Violation(place, fault, fix, CauseReason.NOT_SUPPORTED, advisory=may_exist)


def _kinds(job: MPIJob, kinds: Mapping[str, str]) -> Iterator[Violation]:
    """More than one kind in `kinds`; the workers' kind is the job's."""
    launcher = replica_path(LAUNCHER)
    first, *others = sorted(kinds, key=lambda name: kinds[name].startswith(launcher))
    for name in others:
        if kinds[name].startswith(launcher) and not job.spec.run_launcher_as_worker:
            fix = f"Remove {name}: the launcher is not a worker."
        else:
            fix = f"Use {first} instead of {name}, or make the part that needs {name} a job of its own."
        fault = f"{name} next to {first}, but a job has one kind of accelerator"
        yield Violation(kinds[name], fault, fix=fix, reason=CauseReason.NOT_SUPPORTED)


def _quantities(
    path: str, asked: ResourceRequirements, names: tuple[str, ...], kinds: dict[str, str], filled_in: bool
) -> Iterator[Violation]:
    """Whole numbers, requests equal to limits; records in `kinds` where each accelerator first appears.

    The same fault in both is one. If missing limits are `filled_in`, `limit-range` judges them.
    """
    limits, requests = map(_as_meant, (asked.limits or {}, asked.requests or {}))
    for field, amounts, others in (("limits", limits, requests), ("requests", requests, limits)):
        for name, value in amounts.items():
            if "/" not in name or not is_accelerator(name, names):
                continue
            where = f"{path}.{field}[{name}]"
            try:
                amount = quantity.parse(value)
            except QuantityError:
                continue  # upstream-contract rejects it
            if amount < 0:
                continue  # and this one too
            if amount > 0:
                kinds.setdefault(name, where)
            in_both = read(others.get(name)) == amount if name in others else False
            both = ", in requests too" if in_both else ""
            if not quantity.is_whole(amount) and in_both and field == "requests":
                continue  # reported for the limit
            if not quantity.is_whole(amount):
                fault = f"{quantity.format(amount)} is not whole, and GPUs are not divided"
                yield Violation(where, fault, fix=f"Set it to {quantity.whole(amount)}{both}.")
                if name not in limits and not filled_in:
                    yield from _equal(path, name, Quantity(quantity.whole(amount) * quantity.NANO), limits)
            elif field == "requests" and (name in limits or not filled_in):
                yield from _equal(path, name, amount, limits)


def _as_meant(amounts: Mapping[str, object]) -> Mapping[str, object]:
    return {misspelt_accelerator(name) or name: amount for name, amount in amounts.items()}


def _equal(path: str, name: str, request: Quantity, limits: Mapping[str, object]) -> Iterator[Violation]:
    """Kubernetes does not overcommit such resources: a request needs a limit, and the same one.

    https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/core/validation/validation.go
    (`validateResourceRequirements`)
    """
    if name not in limits:
        shown = quantity.format(request)
        yield Violation(
            f"{path}.limits[{name}]",
            f"is missing, but the request is {shown}",
            fix=f"Set it to {shown}.",
            reason=CauseReason.REQUIRED,
        )
        return
    try:
        limit = quantity.parse(limits[name])
    except QuantityError:
        return  # upstream-contract rejects it
    if request != limit:
        shown, wanted, sound = quantity.format(request), quantity.format(limit), limit >= 0 and quantity.is_whole(limit)
        yield Violation(
            f"{path}.requests[{name}]",
            f"{shown} differs from the limit of {wanted}, and GPUs are not overcommitted",
            fix=f"Set it to {wanted}, or remove it: the limit applies." if sound else "Remove it: the limit applies.",
        )


def _with_more_workers(fault: Violation, job: MPIJob, ctx: Context) -> Violation:
    """With the advice to spread the accelerators, if more workers are admitted."""
    if job.workers + 1 not in Sizes.of(job, ctx).replicas(gpus=0):
        return fault
    return replace(fault, fix=f"{fault.fix.removesuffix('.')}, and use more workers.")


def _of_a_worker(job: MPIJob, settings: Settings, ctx: Context) -> int:
    """The advice for a pod with too few: as many as a worker, if that is within the limits."""
    count = devices.of_each(job.worker, settings.resources, ctx)
    return count if settings.min <= count <= settings.max else settings.min


class _Bound(NamedTuple):
    """The limits of a pod, and their resource."""

    least: int
    most: int
    noun: str = "GPU"


def _bound(template: PodTemplate, pod: Devices, settings: Settings, ctx: Context) -> _Bound:
    """`maxCores` for a pod whose accelerators are all cores."""
    beyond = pod.asked > min(settings.max, settings.max_cores)
    if beyond and settings.max and devices.of_pod(template, settings.core_resources, ctx).asked == pod.asked:
        return _Bound(settings.min, settings.max_cores, "core")
    return _Bound(settings.min, settings.max)


def _bounds(role: str, path: str, found: Devices, bound: _Bound, wanted: Callable[[], int]) -> Iterator[Violation]:
    """`wanted` is called only for a pod that has too few."""
    pod = "the launcher, which is a worker," if role == LAUNCHER else "a worker"
    if found.asked > bound.most:
        yield _too_many(pod, role, path, found, bound)
    elif found.most is not None and found.most < bound.least:
        # If claims have too few, the claims need more.
        number = bound.least if found.by_claim else wanted()
        fix = f"Request {number} or more {_where_else(found, 'in resources.limits')}."
        fault = f"{pod} requests {_count(found.most)}, at least {bound.least} required"
        yield Violation(_where(path, found), fault, fix=fix, degree=Degree(f"{role}<", -found.most))


def _too_many(pod: str, role: str, path: str, found: Devices, bound: _Bound) -> Violation:
    count = _count(found.asked, bound.noun)
    if found.most != found.least:
        count = f"{count} or more" if found.most is None else f"up to {count}"
    fix = f"Request {bound.most} or fewer {_where_else(found)}."
    fault = f"{pod} requests {count}, at most {bound.most} allowed"
    return Violation(_where(path, found), fault, fix=fix, degree=Degree(f"{role}>", found.asked))


def _where(path: str, found: Devices) -> str:
    return f"{path}.template.spec.{'resourceClaims' if found.by_claim else 'containers'}"


def _where_else(found: Devices, otherwise: str = "for each") -> str:
    """A ResourceClaimTemplate cannot be changed."""
    return "in all, by another ResourceClaimTemplate" if found.by_claim else otherwise


def uncounted(
    path: str,
    template: PodTemplate,
    patterns: tuple[str, ...] | None,
    ctx: Context,
    others: tuple[str, ...] | None = None,
) -> Iterator[Violation]:
    """Claims with an unknown number of GPUs: one violation per reason and role in a review, for all rules together.

    A warning, unless the policy rejects such claims: then `others` has the further DeviceClasses that are allowed.
    """
    where = f"{path}.template.spec.resourceClaims"
    if where in ctx.memo.reported_claims:
        return
    reasons = devices.uncounted(template, patterns, ctx, others).items()
    for reason, claims in (each for each in reasons if others is not None or each[0].known):
        ctx.memo.reported_claims.add(where)
        first, of_one = f'claim "{shortened(claims[min(claims)], MAX_CLAIM_NAME_CHARACTERS)}"', len(claims) == 1
        subject = f"{first} counts" if of_one else f"{first} and {len(claims) - 1} more count"
        at = f"{where}[{min(claims)}]" if of_one else where
        advisory = others is None or not reason.known
        yield Violation(at, f"{subject} against no GPU bound: {reason.why}", fix=reason.fix, advisory=advisory)


def _count(number: int, noun: str = "GPU") -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _visible(
    path: str, template: PodTemplate, settings: Settings, *, overwritten: bool, pod: Devices
) -> Iterator[Violation]:
    """GPUs by a variable that the container toolkit reads; the operator has `overwritten` that of the first container.

    A user's value wins over that of the device plugin (kubernetes `pkg/kubelet/kubelet_pods.go`, `opts.Envs`). Claims
    of other devices, such as adapters, give no GPU.
    """
    first = template.containers[0]
    for kind, index, container in template.each_container:
        variables = [
            each
            for each in container.env or ()
            if each.name == VISIBLE_DEVICES and (each.value_from or each.value not in NO_DEVICES)
        ]
        if not variables or (container is first and overwritten):
            continue
        claims = pod.by_claim and settings.max > 0 and container.resources and container.resources.claims
        if not settings.refuse_visible_devices and (claims or accelerators(container, settings.resources)):
            continue
        for _ in variables:
            yield Violation(
                f"{path}.spec.{kind}[{index}].env[{VISIBLE_DEVICES}]",
                "gives GPUs without a request",
                fix="Remove it, or request GPUs in resources.limits.",
                reason=CauseReason.FORBIDDEN,
                advisory=not settings.refuse_visible_devices and settings.max > 0,
            )


def _idle(path: str, template: PodTemplate, settings: Settings) -> Iterator[Violation]:
    # The operator hides GPUs only from the first container; a sidecar may well use one.
    count = accelerators(template.containers[0], settings.resources)
    if count:
        noun = "GPU stays" if count == 1 else "GPUs stay"
        yield Violation(
            path,
            f"its {count} {noun} idle",
            fix="Request none, or set runLauncherAsWorker: true.",
            advisory=True,
        )


def _by_default(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """The launcher's first device that only a LimitRange adds."""
    for pods in (each for each in job_pods(job, ctx) if each.role == LAUNCHER):
        for _, name in pods.by_default:
            if is_accelerator(name, settings.resources):
                fix = 'Set its limit to "0".'
                yield Violation(pods.path, f"a LimitRange adds an idle {name}", fix=fix, advisory=True)
                return
