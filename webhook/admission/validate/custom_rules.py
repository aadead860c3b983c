"""Custom rules in a verdict: their variables and outcomes."""

from typing import Any, Final

import msgspec
from msgspec import structs

from webhook.admission.validate import ratchet
from webhook.api.accelerators import is_accelerator
from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import MPIJob
from webhook.api.pod import PodTemplate
from webhook.api.review import AdmissionRequest
from webhook.cel import evaluation
from webhook.cluster.limits import MAX_ANNOTATION_CHARACTERS
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.kit.context import Context, Memo
from webhook.kit.custom_rules import Outcome, Variables, full_id
from webhook.policy.custom_rules import CustomRule
from webhook.policy.in_force import Policy
from webhook.predict import devices


class JobFacts(msgspec.Struct, frozen=True, rename="camel"):
    """The variable `job` of custom rules."""

    workers: int
    """Worker pods, without the launcher."""
    gpus_per_worker: int
    """Accelerators of a worker, requested as resources or by claims."""
    total_gpus: int
    """Accelerators of all workers and of the launcher."""
    slots: int
    """`slotsPerWorker`, or 1 if it is not set."""
    images: tuple[str, ...]
    """The images of all containers, init containers and image volumes, without duplicates."""
    accelerator: str
    """The accelerators' resource name, such as nvidia.com/gpu; empty without such a resource."""
    queue: str
    """The job's LocalQueue; empty if the job names none."""


def job_facts(job: MPIJob, ctx: Context) -> JobFacts:
    """`job` must have the operator's defaults."""
    patterns = ctx.admitted.accelerators
    per_worker = devices.of_each(job.worker, patterns, ctx)
    launcher = devices.of_each(job.launcher, patterns, ctx)
    names = devices.names(patterns, ctx)
    # The workers are first, so that `accelerator` is theirs if they have one.
    templates = [replica.template for _, _, replica in reversed(job.replicas)]
    return JobFacts(
        workers=job.workers,
        gpus_per_worker=per_worker,
        total_gpus=job.workers * per_worker + launcher,
        slots=job.spec.slots_per_worker or 1,
        images=tuple(dict.fromkeys(image for template in reversed(templates) for image in _images(template))),
        accelerator=next((name for template in templates if (name := _accelerator(template, names))), ""),
        queue=job.labels.get(QUEUE_NAME, ""),
    )


def _images(template: PodTemplate) -> tuple[str, ...]:
    containers = (*template.init_containers, *template.containers)
    volumes = (volume.image.reference for volume in (template.spec and template.spec.volumes) or () if volume.image)
    return tuple(filter(None, (*(container.image for container in containers), *volumes)))


def _accelerator(template: PodTemplate, names: tuple[str, ...]) -> str:
    for _, _, container in template.with_devices:
        if (resources := container.resources) is not None:
            requested: list[str] = [*(resources.limits or ()), *(resources.requests or ())]
            for name in requested:
                if is_accelerator(name, names):
                    return name
    return ""


_RESOURCE: Final = {"group": "kubeflow.org", "version": "v2beta1", "resource": "mpijobs"}


def evaluated(request: AdmissionRequest, job: MPIJob, ctx: Context, policy: Policy) -> Context:
    if not policy.custom_rules:
        return ctx
    namespace = ctx.view.get(NAMESPACES, ctx.namespace)
    namespace_is_known = isinstance(namespace, Namespace)
    outcomes: dict[str, Outcome] = {}
    rules: list[CustomRule] = []
    for rule in policy.custom_rules:
        if (rule.needs_namespace and not namespace_is_known) or (rule.needs_user and not request.user_info.username):
            outcomes[rule.id] = Outcome()  # a rule never denies because of an unknown value
        else:
            rules.append(rule)
    if rules:
        variables = Variables(
            object=request.object,
            old_object=request.old_object,
            request=_request(request, ctx),
            namespace_object=_namespace(namespace) if isinstance(namespace, Namespace) else None,
            params=policy.document.params,
            job=job_facts(job, ctx),
            old_job=None if ctx.old is None else job_facts(ctx.old, ratchet.judging_stored(ctx, job, ctx.old)),
        )
        evaluated_rules = evaluation.evaluate([rule.to_evaluate for rule in rules], variables)
        outcomes.update(zip((rule.id for rule in rules), evaluated_rules, strict=True))
    return structs.replace(ctx, custom_rules=outcomes)


def of_stored(ctx: Context, document: msgspec.Raw) -> Context:
    """The context of the stored job, with the outcomes of custom rules for the stored job."""
    standing = {own_id: outcome for own_id, outcome in ctx.custom_rules.items() if outcome.standing}
    return structs.replace(ctx, old=None, document=document, custom_rules=standing, memo=Memo())


def faults(ctx: Context) -> dict[str, str]:
    """Errors of custom rules by id."""
    return {full_id(own_id): outcome.fault for own_id, outcome in ctx.custom_rules.items() if outcome.fault}


def _namespace(namespace: Namespace) -> dict[str, Any]:
    whole = {key: value for key, value in namespace.annotations.items() if len(value) <= MAX_ANNOTATION_CHARACTERS}
    return {"metadata": {"name": namespace.name, "labels": namespace.labels, "annotations": whole}}


def _request(request: AdmissionRequest, ctx: Context) -> dict[str, Any]:
    """The request in the form of a ValidatingAdmissionPolicy's `request`, without empty fields."""
    user = request.user_info
    kind = {"group": request.kind.group, "version": request.kind.version, "kind": request.kind.kind}
    fields = {
        "kind": kind,
        "resource": _RESOURCE,
        "requestKind": kind,
        "requestResource": _RESOURCE,
        "name": request.name,
        "namespace": ctx.namespace,
        "operation": request.operation,
        "userInfo": {
            key: value
            for key, value in (
                ("username", user.username),
                ("uid", user.uid),
                ("groups", user.groups),
                ("extra", user.extra),
            )
            if value
        },
    }
    return {**{key: value for key, value in fields.items() if value != ""}, "dryRun": bool(request.dry_run)}
