"""Faults for which the API server would reject the JobSet or its Jobs.

For TrainJobs, this check replaces the rule `upstream-contract`.

Sources: https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/pkg/webhooks/jobset_webhook.go (`ValidateCreate`) and
https://github.com/kubernetes/kubernetes/blob/v1.35.4/pkg/apis/batch/validation/validation.go (`ValidateJob`).
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from webhook.api import names
from webhook.api.mpijob import WORKER, replica_path
from webhook.api.untyped import at, mapping, mappings
from webhook.kit.context import Context
from webhook.parts.trainer import kinds
from webhook.parts.trainer.replicated_jobs import JOB_SET, METADATA, PATCHES, ReplicatedJob, claim_templates
from webhook.parts.trainer.shape import Shape
from webhook.predict.pod_template.fault import Faults
from webhook.predict.pod_template.labels import check_annotations, check_labels
from webhook.rules import CauseReason, Violation, shortened

_NODES: Final = f"{replica_path(WORKER)}.replicas"
_FIX: Final = "Correct it in the runtime."
_NUMBERS: Final = (
    "activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes", "ttlSecondsAfterFinished",
)  # fmt: skip
# JobSet `ruleNameFmt`, `maxRuleNameLength` and `validOnJobFailureReasons`
_RULE_NAME: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_RULE_NAME_LENGTH: Final = 128
_REASONS: Final = (
    "BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy",
)  # fmt: skip


def faults(shape: Shape, _: Context) -> Iterator[Violation]:
    preceding: set[str] = set()
    for job in shape.jobs:
        yield from _of_job(job, preceding)
        preceding.add(job.name)
    yield from _of_metadata(shape)
    spec = at(shape.runtime, "template", "spec")
    yield from _of_policies(spec, {job.name for job in shape.jobs})
    yield from _of_coordinator(at(spec, "coordinator"), shape)
    yield from _of_claims(spec, shape)
    subdomain = at(spec, "network").get("subdomain")
    if subdomain and (problem := names.dns_1035_label_problem(str(subdomain))):
        fault = f"{_quoted(subdomain)} is not a Service name, which {problem}"
        yield Violation(f"{JOB_SET}.network.subdomain", fault, fix=_FIX)
    if at(shape.runtime, "mlPolicy", "mpi").get("mpiImplementation") == "" and shape.replicated_job(kinds.LAUNCHER):
        yield Violation("spec.mpiImplementation", "is empty, so Trainer creates no pods", fix="Set it to OpenMPI.")


def _of_job(replicated: ReplicatedJob, preceding: set[str]) -> Iterator[Violation]:
    path, of_job = replicated.path, f"{replicated.path}.template.spec"
    if problem := names.dns_1035_label_problem(f"a-{replicated.name}-0"):
        fault = f"{_quoted(replicated.name)} gives an invalid name of a Job, which {problem}"
        yield Violation(f"{path}.name", fault, fix=_FIX)
    group = replicated.written.get("groupName")
    if group and (problem := names.dns_1035_label_problem(str(group))):
        yield Violation(f"{path}.groupName", f"{_quoted(group)} {problem}", fix=_FIX)
    if replicated.depends_on and not replicated.index:
        yield Violation(f"{path}.dependsOn", "the first of the replicatedJobs cannot depend on another", fix=_FIX)
    elif before := [
        name
        for dependency in replicated.depends_on
        if (name := str(dependency.get("name"))) not in preceding | {replicated.name}
    ]:
        fault = f"{_quoted(before[0])} is not among the replicatedJobs before it"
        yield Violation(f"{path}.dependsOn", fault, fix=_FIX, reason=CauseReason.NOT_SUPPORTED)
    job = at(replicated.written, "template", "spec")
    restarts = at(replicated.template, "spec").get("restartPolicy") or "OnFailure"
    if restarts == "Always":
        field = f"{of_job}.template.spec.restartPolicy"
        yield Violation(field, "is Always, which Jobs do not allow", fix="Use OnFailure or Never.")
    elif restarts != "Never" and at(job, "podFailurePolicy"):
        field = f"{of_job}.podFailurePolicy"
        yield Violation(
            field, f"cannot be used with restartPolicy: {shortened(restarts, 40)}", fix="Set that to Never."
        )
    for name in _NUMBERS:
        number = job.get(name)
        if isinstance(number, int) and number < 0:
            yield Violation(f"{of_job}.{name}", f"is {number}", fix="Set it to 0 or more.")
    if at(job, "selector") and job.get("manualSelector") is not True:
        yield Violation(f"{of_job}.selector", "is set by Kubernetes", fix="Remove it.")
    if replicated.pods < 1:  # only possible if a TrainJob sets the number of nodes
        # A Job without pods is complete, so a launcher may continue alone.
        fault = f"{replicated.pods} pods of {replicated.name}" + (", at least 1 required" if replicated.pods else "")
        yield Violation(_NODES, fault, fix="Set it to 1 or more.", advisory=not replicated.pods)


def _of_metadata(shape: Shape) -> Iterator[Violation]:
    metadata_faults = Faults()
    parts = [(METADATA, at(shape.runtime, "template", "metadata"))]
    parts += [(f"{job.path}.template.metadata", at(job.written, "template", "metadata")) for job in shape.jobs]
    for index, patch in enumerate(mappings(shape.job.get("runtimePatches"))):
        path = f"{PATCHES}[{index}].trainingRuntimeSpec.template"
        template = at(patch, "trainingRuntimeSpec", "template")
        parts.append((f"{path}.metadata", at(template, "metadata")))
        for number, replicated in enumerate(mappings(at(template, "spec").get("replicatedJobs"))):
            place = f"{path}.spec.replicatedJobs[{number}].template.metadata"
            parts.append((place, at(replicated, "template", "metadata")))
    for path, metadata in parts:
        check_labels(_texts(metadata.get("labels")), f"{path}.labels", metadata_faults)
        check_annotations(_texts(metadata.get("annotations")), f"{path}.annotations", metadata_faults)
    return (Violation(fault.path, fault.message, fix=fault.fix) for fault in metadata_faults)


def _of_policies(spec: dict[str, Any], replicated: set[str]) -> Iterator[Violation]:
    yield from _targets(f"{JOB_SET}.successPolicy", mapping(spec.get("successPolicy")), replicated)
    rules = mappings(at(spec, "failurePolicy").get("rules"))
    uses = Counter(str(rule["name"]) for rule in rules if rule.get("name"))
    for index, rule in enumerate(rules):
        path, name = f"{JOB_SET}.failurePolicy.rules[{index}]", str(rule.get("name") or "")
        if name and (len(name) > _RULE_NAME_LENGTH or not _RULE_NAME.fullmatch(name)):
            fault = f'{_quoted(name)} is not a valid rule name: a letter first, then up to 127 letters, digits or "_,:"'
            yield Violation(f"{path}.name", fault, fix=_FIX)
        elif uses[name] > 1:
            yield Violation(f"{path}.name", f"{_quoted(name)} is the name of {uses[name]} rules", fix=_FIX)
        yield from _targets(path, rule, replicated)
        reasons = rule.get("onJobFailureReasons")
        for reason in map(str, reasons if isinstance(reasons, list) else ()):
            if reason not in _REASONS:
                fault = f"{_quoted(reason)} is not one of {', '.join(_REASONS)}"
                yield Violation(f"{path}.onJobFailureReasons", fault, fix=_FIX, reason=CauseReason.NOT_SUPPORTED)
                break


def _targets(path: str, policy: dict[str, Any], replicated: set[str]) -> Iterator[Violation]:
    targets = policy.get("targetReplicatedJobs")
    for name in map(str, targets if isinstance(targets, list) else ()):
        if name not in replicated:
            fault, path = f"{_quoted(name)} is not one of the replicatedJobs", f"{path}.targetReplicatedJobs"
            yield Violation(path, fault, fix=_FIX, reason=CauseReason.NOT_SUPPORTED)
            return


def _of_coordinator(coordinator: dict[str, Any], shape: Shape) -> Iterator[Violation]:
    if not coordinator:
        return
    path, name = f"{JOB_SET}.coordinator", str(coordinator.get("replicatedJob"))
    job = shape.replicated_job(name)
    if job is None:
        fault = f"{_quoted(name)} is not one of the replicatedJobs"
        yield Violation(f"{path}.replicatedJob", fault, fix=_FIX, reason=CauseReason.NOT_SUPPORTED)
        return
    indices = (("jobIndex", job.replicas), ("podIndex", job.pods))
    for field, count in indices if shape.job else indices[:1]:  # a TrainJob may change the number of pods
        index = coordinator.get(field, 0)
        if isinstance(index, int) and not 0 <= index < max(count, 1):
            yield Violation(f"{path}.{field}", f"is {index}, and {job.name} has {count}", fix=_FIX)


def _of_claims(spec: dict[str, Any], shape: Shape) -> Iterator[Violation]:
    """Each claim that JobSet creates must have a unique name and be mounted."""
    earlier: set[str] = set()
    mounted = {mount for job in shape.jobs for mount in job.mounts}
    pods = [at(job.template, "spec") for job in shape.jobs]
    volumes = {str(volume.get("name")) for pod in pods for volume in mappings(pod.get("volumes"))}
    for path, claim in claim_templates(spec):
        if problem := names.dns_1123_subdomain_problem(claim):
            yield Violation(path, f"{_quoted(claim)} is not a claim name, which {problem}", fix=_FIX)
        elif claim in earlier:
            yield Violation(path, f"{_quoted(claim)} is the name of another claim", fix=_FIX)
        elif claim not in mounted and shape.job:  # patches of TrainJobs may mount it
            yield Violation(path, f"no container mounts {_quoted(claim)}", fix=_FIX)
        elif claim in volumes:
            yield Violation(path, f"{_quoted(claim)} is the name of a volume too", fix=_FIX)
        earlier.add(claim)


def _texts(value: Any) -> dict[str, str]:
    return {key: text for key, text in mapping(value).items() if isinstance(text, str)}


def _quoted(text: object) -> str:
    return f'"{shortened(str(text), 40)}"'
