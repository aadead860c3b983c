"""GPUs and other accelerators are requested in a way that a node can provide.

A worker requests between `min` and `max` accelerators, added up as Kubernetes does it (init containers and sidecars
included). The numbers are whole, requests equal limits, and a job has one kind of accelerator. The setting `resources`
lists the accelerators. For cores, of which a device has several (`coreResources`, such as `aws.amazon.com/neuroncore`),
the limit is `maxCores`.

`max` and `maxCores` also apply to a launcher that is not a worker; `min` does not. A GPU of this launcher's first
container is a warning: it stays idle, because the operator empties `NVIDIA_VISIBLE_DEVICES`. A GPU that a LimitRange
adds to this launcher is a warning too.

`NVIDIA_VISIBLE_DEVICES` in a container without accelerators is a warning: with the defaults of NVIDIA's container
toolkit, the container gets GPUs of the node without a request, quota or queue. With `refuseVisibleDevices` or `max: 0`
the variable is rejected. The values `none`, `void` and empty text hide the GPUs that a container requests, which is a
warning too. Exceptions: the service does not see variables of images and of `envFrom`, and it ignores
mounts under `/var/run/nvidia-container-devices`. The toolkit's setting
`accept-nvidia-visible-devices-envvar-when-unprivileged = false` prevents this access on the nodes.

Devices of claims are counted if the ResourceClaimTemplate is known. A DeviceClass has accelerators if `resources`
contains its extended resource, or `deviceclass.resource.kubernetes.io/` with its name. If a request has several choices
(`firstAvailable`), the largest is compared with `max`. A claim that pods share, or that takes all devices of a node, is
not counted, and a warning names it. A claim that cannot be read is ignored.

`refuseUncountedClaims` rejects claims that pods share, claims of all devices of a node, claims of a missing template,
and claims for DeviceClasses that are neither accelerators nor in `otherClasses`. A claim that cannot be read is then a
warning. Exception: the service does not notice that a template is replaced after the job was admitted.
"""

from collections.abc import Iterator, Mapping, Sequence

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
from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob, replica_path
from webhook.api.names import label_key_problem
from webhook.api.pod import PodTemplate, ResourceRequirements
from webhook.api.quantity import Quantity, QuantityError
from webhook.api.quantity_fields import Written
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
from webhook.rules import CauseReason, Degree, Violation, number_of, rule, shortened
from webhook.rules.limits import MAX_CLAIM_NAME_CHARACTERS
from webhook.rules.upstream_contract import quantities

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
# With these values the toolkit gives no GPU: https://github.com/NVIDIA/nvidia-container-toolkit
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
        CORES,
        description="Names of resources that are cores, of which a device has several: maxCores limits them, not max.",
    )
    refuse_uncounted_claims: bool = Field(
        False,
        description="Reject claims whose accelerators cannot be counted; otherwise they cause a warning.",
    )
    other_classes: ObjectNames = Field(
        (),
        description="With refuseUncountedClaims: other DeviceClasses that claims may request, such as classes of "
        "network adapters.",
    )
    refuse_visible_devices: bool = Field(
        False,
        description="Reject NVIDIA_VISIBLE_DEVICES in every container. Otherwise it is a warning in containers that "
        "request no accelerator; with max: 0 it is rejected in these containers.",
    )

    @property
    def others(self) -> tuple[str, ...] | None:
        """The allowed `other_classes`; None if claims that cannot be counted only cause a warning."""
        return self.other_classes if self.refuse_uncounted_claims else None


def admits(settings: Settings) -> Admitted:
    return Admitted(gpus=Span(settings.min, settings.max), accelerators=settings.resources)


@rule("gpus", Settings, since="0.1", admits=admits, importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    kinds: dict[str, str] = {}
    ranges = ctx.view.within(LIMIT_RANGES, ctx.namespace)
    filled_in = ranges is not UNKNOWN and bool(ranges)
    nodes_are_known = bool(node_shapes(ctx.view))
    for role, path, replica in job.replicas:
        template = replica.template
        if not nodes_are_known:  # otherwise the rule `accelerator-available` reports misspelt names
            yield from _misspelt(f"{path}.template", ctx.once(quantities, template), settings)
        for field, index, container in template.with_devices:
            if container.resources is not None:
                place = f"{path}.template.spec.{field}[{index}].resources"
                yield from _quantities(place, container.resources, settings, kinds, filled_in)
        if not template.containers:
            continue  # upstream-contract rejects it
        pod = devices.of_pod(template, settings.resources, ctx)
        computes = role == WORKER or bool(job.spec.run_launcher_as_worker)
        yield from _visible(f"{path}.template", template, settings, overwritten=not computes, pod=pod)
        if fault := _out_of_bounds(job, role, pod, settings, ctx, computes=computes):
            yield fault
            continue
        if not computes:
            if pod.least:
                yield from _idle(path, template, settings)
            if filled_in:
                yield from _by_default(job, settings, ctx)
        if computes or settings.others is not None:
            yield from uncounted(path, template, settings.resources, ctx, settings.others)
    if len(kinds) > 1:
        yield from _kinds(job, kinds)


def _misspelt(path: str, written: Sequence[Written], settings: Settings) -> Iterator[Violation]:
    for where, amounts in written:
        for name in amounts:
            meant = "/" in name and misspelt_accelerator(name)
            if meant and not is_accelerator(name, settings.resources) and not label_key_problem(name):
                place = path + quantity_fields.place(where, name)
                may_exist = "." in name and name.lower().rstrip("s") != meant
                fault = f"no node has the resource {name}"
                fix = "Remove it." if meant in amounts else f"Rename it to {meant}."
                yield Violation(place, fault, fix, CauseReason.NOT_SUPPORTED, advisory=may_exist)


def _kinds(job: MPIJob, kinds: Mapping[str, str]) -> Iterator[Violation]:
    """A violation for each kind except the kind of the workers."""
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
    path: str, resources: ResourceRequirements, settings: Settings, kinds: dict[str, str], filled_in: bool
) -> Iterator[Violation]:
    """Adds to `kinds` the field where each accelerator first appears.

    If a LimitRange may have `filled_in` missing limits, the rule `limit-range` checks them.
    """
    limits, requests = map(_corrected_names, (resources.limits or {}, resources.requests or {}))
    fields = (("limits", limits, requests), ("requests", requests, limits))
    for field, amounts, others in fields[:1] if limits == requests else fields:
        for name, value in amounts.items():
            if not is_accelerator(name, settings.resources):
                continue
            where = f"{path}.{field}[{name}]"
            try:
                amount = quantity.parse(value)
            except QuantityError:
                continue  # upstream-contract rejects it
            if amount < 0:
                continue  # upstream-contract rejects it
            if amount > 0:
                kinds.setdefault(name, where)
            if not quantity.is_whole(amount):
                in_both = name in others and read(others[name]) == amount
                if in_both and field == "requests":
                    continue  # reported for the limit
                both = ", in requests too" if in_both else ""
                fault = f"{quantity.format(amount)} is not whole, and GPUs are not divided"
                yield Violation(where, fault, fix=f"Set it to {quantity.whole(amount)}{both}.")
                if name not in limits and not filled_in:
                    yield from _equal(path, name, Quantity(quantity.whole(amount) * quantity.NANO), limits, settings)
            elif field == "requests" and (name in limits or not filled_in):
                yield from _equal(path, name, amount, limits, settings)


def _corrected_names(amounts: Mapping[str, object]) -> Mapping[str, object]:
    return {misspelt_accelerator(name) or name: amount for name, amount in amounts.items() if "/" in name}


def _equal(
    path: str, name: str, request: Quantity, limits: Mapping[str, object], settings: Settings
) -> Iterator[Violation]:
    """Kubernetes does not overcommit extended resources: a request needs a limit of the same amount.

    https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/core/validation/validation.go
    (`validateResourceRequirements`)
    """
    try:
        limit = quantity.parse(limits[name]) if name in limits else None
    except QuantityError:
        return  # upstream-contract rejects it
    if request == limit:
        return
    cores = is_accelerator(name, settings.core_resources)
    most = Quantity((settings.max_cores if cores else settings.max) * quantity.NANO)
    shown = quantity.format(request)
    if limit is None:
        fault, fix = f"is missing, but the request is {shown}", f"Set it to {quantity.format(min(request, most))}."
        yield Violation(f"{path}.limits[{name}]", fault, fix, CauseReason.REQUIRED)
        return
    limit_text, valid = quantity.format(limit), 0 <= limit <= most and quantity.is_whole(limit)
    fault = f"{shown} differs from the limit of {limit_text}, and GPUs are not overcommitted"
    fix = f"Set it to {limit_text}, or remove it: the limit applies." if valid else "Remove it: the limit applies."
    yield Violation(f"{path}.requests[{name}]", fault, fix)


def _out_of_bounds(
    job: MPIJob, role: str, pod: Devices, settings: Settings, ctx: Context, *, computes: bool
) -> Violation | None:
    """The maximum is `maxCores` if all accelerators of the pod are cores."""
    subject = "a worker" if role == WORKER else "the launcher, which is a worker," if computes else "the launcher"
    most, noun = settings.max, "GPU"
    if pod.requested > min(most, settings.max_cores) and most:
        replica = job.worker if role == WORKER else job.launcher
        if devices.of_each(replica, settings.core_resources, ctx) == pod.requested:
            most, noun = settings.max_cores, "core"
    if pod.requested > most:
        count = number_of(pod.requested, noun)
        if pod.most != pod.least:
            count = f"{count} or more" if pod.most is None else f"up to {count}"
        more = computes and job.workers + 1 in Sizes.of(job, ctx).replicas(gpus=0)
        fix = f"Request {most} or fewer {_where_else(pod)}{', and use more workers' if more else ''}."
        fault = f"{subject} requests {count}, at most {most} allowed"
        return Violation(_where(role, pod), fault, fix=fix, degree=Degree(f"{role}>", pod.requested))
    if computes and pod.most is not None and pod.most < settings.min:
        # The fix for a claim is a new template, so it has the minimum instead of a worker's number.
        number = 0 if pod.by_claim else devices.of_each(job.worker, settings.resources, ctx)
        if not settings.min <= number <= settings.max:
            number = settings.min
        fix = f"Request {number} or more {_where_else(pod, 'in resources.limits')}."
        fault = f"{subject} requests {number_of(pod.most, 'GPU')}, at least {settings.min} required"
        return Violation(_where(role, pod), fault, fix=fix, degree=Degree(f"{role}<", -pod.most))
    return None


def _where(role: str, counted: Devices) -> str:
    return f"{replica_path(role)}.template.spec.{'resourceClaims' if counted.by_claim else 'containers'}"


def _where_else(counted: Devices, otherwise: str = "for each") -> str:
    """A ResourceClaimTemplate cannot be changed, so claims need another one."""
    return "in all, by another ResourceClaimTemplate" if counted.by_claim else otherwise


def uncounted(
    path: str,
    template: PodTemplate,
    patterns: tuple[str, ...] | None,
    ctx: Context,
    others: tuple[str, ...] | None = None,
) -> Iterator[Violation]:
    """Reports claims with an unknown number of GPUs, once for each reason and role in a review.

    Several rules call this function. The violation is a warning if `others` is None. Otherwise the claims are rejected,
    and `others` are the DeviceClasses without accelerators that claims may request.
    """
    if not (template.spec and template.spec.resource_claims):
        return
    where = f"{path}.template.spec.resourceClaims"
    if where in ctx.memo.reported_claims:
        return
    reasons = devices.uncounted(template, patterns, ctx, others).items()
    for reason, claims in reasons:
        if others is None and not reason.certain:
            continue
        ctx.memo.reported_claims.add(where)
        first, of_one = f'claim "{shortened(claims[min(claims)], MAX_CLAIM_NAME_CHARACTERS)}"', len(claims) == 1
        subject = first if of_one else f"{first} and {len(claims) - 1} more"
        at = f"{where}[{min(claims)}]" if of_one else where
        advisory = others is None or not reason.certain
        yield Violation(at, f"the GPUs of {subject} are not counted: {reason.why}", fix=reason.fix, advisory=advisory)


def _visible(
    path: str, template: PodTemplate, settings: Settings, *, overwritten: bool, pod: Devices
) -> Iterator[Violation]:
    """Reports variables by which the container toolkit gives GPUs to a container.

    `overwritten` is True if the operator sets the variable in the first container. A user's value overrides the device
    plugin's value (kubernetes `pkg/kubelet/kubelet_pods.go`, `opts.Envs`). Claims of other devices, such as adapters,
    give no GPU.
    """
    first = template.containers[0]
    for kind, index, container in template.each_container:
        for variable in container.env or ():
            if variable.name != VISIBLE_DEVICES or (container is first and overwritten):
                continue
            where = f"{path}.spec.{kind}[{index}].env[{VISIBLE_DEVICES}]"
            claims = pod.by_claim and settings.max > 0 and container.resources and container.resources.claims
            if not variable.value_from and variable.value in NO_DEVICES:
                if accelerators(container, ("nvidia.com/*",)):
                    yield Violation(where, "hides the GPUs that are requested", "Remove it.", advisory=True)
            elif settings.refuse_visible_devices or not (claims or accelerators(container, settings.resources)):
                fault, fix = "gives GPUs without a request", "Remove it, or request GPUs in resources.limits."
                advisory = settings.max > 0 and not settings.refuse_visible_devices
                yield Violation(where, fault, fix, CauseReason.FORBIDDEN, advisory=advisory)


def _idle(path: str, template: PodTemplate, settings: Settings) -> Iterator[Violation]:
    # The operator hides GPUs only from the first container; a sidecar may use one.
    count = accelerators(template.containers[0], settings.resources)
    if count:
        noun = "GPU stays" if count == 1 else "GPUs stay"
        fix = "Request none, or set runLauncherAsWorker: true."
        yield Violation(path, f"its {count} {noun} idle", fix, advisory=True)


def _by_default(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    for pods in job_pods(job, ctx):
        for _, name in pods.by_default if pods.role == LAUNCHER else ():
            if is_accelerator(name, settings.resources):
                fix = 'Set its limit to "0".'
                yield Violation(pods.path, f"a LimitRange adds an idle {name}", fix=fix, advisory=True)
                return
