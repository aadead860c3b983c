"""The verdict on jobs in files, by the pipelines of the server.

The API server and Kueue's webhook also change jobs. This module repeats their changes: it drops nulls and fields that a
client cannot set, fills in the namespace, and suspends a job in a queue.

`job_schema` checks the job against the schema of MPIJobs. Faults are fixed in a copy for the rules, so all problems are
reported at once. The metadata is validated as in
https://github.com/kubernetes/apimachinery/blob/v0.35.4/pkg/api/validation/objectmeta.go
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from webhook.admission import pipelines, skipping
from webhook.admission.messages import SCHEMA, Finding
from webhook.admission.pipelines import Decision
from webhook.api import mpijob, names, placeholders
from webhook.api.kueue import QUEUE_NAME
from webhook.api.metadata import LAST_APPLIED
from webhook.api.names import closest_name
from webhook.api.review import AdmissionRequest, GroupVersionKind, UserInfo
from webhook.api.shape import ShapeError
from webhook.api.untyped import without_nulls
from webhook.cli import files, job_schema
from webhook.cli.files import Manifest
from webhook.cli.job_verdict import Verdict
from webhook.cli.job_world import NO_CLUSTER, POLICIES, USER, JobWorld
from webhook.cli.limits import MAX_KINDS_LISTED
from webhook.cli.terminal import fail
from webhook.cluster.resources.namespaces import NAMESPACES
from webhook.cluster.view import ABSENT, UNKNOWN, Answer, ClusterView, NotingView
from webhook.cluster.without_jobs import WithoutJobs
from webhook.injections import Caution
from webhook.policy import in_force
from webhook.policy.document import PolicyError
from webhook.policy.in_force import PolicySet
from webhook.predict.kueue import managed, queues
from webhook.predict.pod_template import texts
from webhook.predict.pod_template.fault import Faults, shown
from webhook.predict.pod_template.labels import check_annotations, check_labels
from webhook.rules import CauseReason, Violation, shortened


def metadata_violations(metadata: Any) -> list[Violation]:
    """Faults for which the API server rejects the metadata, except wrong types."""
    if not isinstance(metadata, dict):
        return []
    faults = Faults()
    _name(metadata, faults)
    check_labels(_texts(metadata.get("labels")), "metadata.labels", faults)
    check_annotations(_texts(metadata.get("annotations")), "metadata.annotations", faults)
    finalizers = metadata.get("finalizers")
    for index, finalizer in enumerate(finalizers if isinstance(finalizers, list) else ()):
        if isinstance(finalizer, str) and (problem := names.label_key_problem(finalizer)):
            faults.add(f"metadata.finalizers[{index}]", f'"{shown(finalizer)}" {problem}', texts.LETTERS)
    return [Violation(fault.path, fault.message, fault.fix, CauseReason[fault.kind.name]) for fault in faults]


def _name(metadata: Mapping[str, Any], faults: Faults) -> None:
    prefix = metadata.get("generateName")
    made = f"{prefix[: names.GENERATED_BASE_MAX_LENGTH]}x" if isinstance(prefix, str) and prefix else None
    name = metadata.get("name") or None
    for field, written, checked in (("name", name, name), ("generateName", prefix, made if name is None else None)):
        if isinstance(checked, str) and (problem := names.dns_1123_subdomain_problem(checked)):
            meant = names.corrected(checked, names.dns_1123_subdomain_problem)
            fix = f"Write {meant.removesuffix('' if written is checked else 'x')}." if meant else texts.SPELLING
            faults.add(f"metadata.{field}", f'"{shown(str(written))}" {problem}', fix)
    namespace = metadata.get("namespace")
    if isinstance(namespace, str) and namespace and (problem := names.dns_1123_label_problem(namespace)):
        faults.add(
            "metadata.namespace",
            f'"{shown(namespace)}" {problem}',
            f"Write {names.corrected(namespace, names.dns_1123_label_problem) or 'one'}, or another that exists.",
        )


def _texts(value: Any) -> dict[str, str]:
    entries = value.items() if isinstance(value, dict) else ()
    return {key: text for key, text in entries if isinstance(text, str)}


NAMESPACE: Final = "namespace"
MPI_JOB: Final = GroupVersionKind(mpijob.GROUP, mpijob.API_VERSION.partition("/")[2], "MPIJob")
_HEAD: Final = {"kind": MPI_JOB.kind, "apiVersion": mpijob.API_VERSION}


def is_job(manifest: Manifest) -> bool:
    """True for an MPIJob, and for an object that was probably meant to be an MPIJob.

    There are three signs: a similar kind, the API group, and `spec.mpiReplicaSpecs`. Two of them are enough. For an
    object without a kind, one is enough.
    """
    kind = re.sub("[-_ ]", "", manifest.kind.lower()).removesuffix("s")
    near = get_close_matches(kind, ["mpijob"], cutoff=0.8)
    return kind == "mpijob" or bool(near) + files.job_signs(manifest.document) > bool(kind)


def check(manifest: Manifest, world: JobWorld, *, namespace: str = "default") -> Verdict:
    """The verdict on one MPIJob. `namespace` is used if the job names none."""
    head_findings = [*_of_head(manifest)]
    if not head_findings:
        return _check(manifest, world, namespace)
    keys = {files.head_key(manifest.document, field) for field in _HEAD}
    rest = {key: value for key, value in (manifest.written or manifest.document).items() if key not in keys}
    meant = replace(manifest, document={**_HEAD, **without_nulls(rest)}, written={**_HEAD, **rest})
    if manifest.api_version == mpijob.OLDER_VERSIONS[-1]:  # the spec of this version is too different
        verdict = Verdict(manifest, manifest.namespace or namespace, validation=Decision(name=manifest.title))
    else:
        verdict = _check(meant, world, namespace)
    verdict.validation.denied[:0] = head_findings
    return replace(verdict, manifest=replace(manifest, moved=verdict.manifest.moved))


def _of_head(manifest: Manifest) -> Iterator[Finding]:
    misspelt = {field: key for field in _HEAD if (key := files.head_key(manifest.document, field)) != field}
    for field, key in misspelt.items():
        fix = f"Rename it to {field}." if manifest.document[key] == _HEAD[field] else f"Write {field}: {_HEAD[field]}."
        yield Finding(SCHEMA, Violation(key, "is not a field of an MPIJob", fix))
    if manifest.kind != MPI_JOB.kind and "kind" not in misspelt:
        fault = f'"{shortened(manifest.kind)}" is not supported' if manifest.kind else "is missing"
        yield Finding(SCHEMA, Violation("kind", fault, f"Write {MPI_JOB.kind}.", CauseReason.NOT_SUPPORTED))
    if manifest.api_version != mpijob.API_VERSION and "apiVersion" not in misspelt:
        yield skipping.finding(manifest.api_version)


def _check(manifest: Manifest, world: JobWorld, namespace: str) -> Verdict:
    namespace = manifest.namespace or namespace
    if world.schema is None:
        return _by_rules(manifest, world, namespace)
    judged = job_schema.SchemaVerdict(manifest.written or manifest.document, world.schema, manifest)
    unfilled = {path: _unfilled(path, meaning) for path, meaning in placeholders.find(manifest.document)}
    verdict = _by_rules(replace(manifest, document=judged.fixed), world, namespace)
    denied, warned = verdict.validation.denied, verdict.validation.warned
    fixes = {finding.violation.path: finding.violation.fix for finding in (*warned, *denied)}
    # The fix of a rule is better than the schema's example value.
    better = {path: fixes[path] for path in judged.unconvertible if path in fixes}
    violations = [replace(violation, fix=better.get(violation.path, violation.fix)) for violation in judged.violations]
    violations += metadata_violations(manifest.document.get("metadata"))
    filled = [violation for violation in violations if violation.path not in unfilled]
    schema_findings = [Finding(SCHEMA, violation) for violation in (*unfilled.values(), *filled)]
    undecided = (*unfilled, *judged.unconvertible)
    for findings in (denied, warned):  # findings about placeholders and unusable values are uncertain
        findings[:] = [finding for finding in findings if not _within(finding.violation.path, undecided)]
    reported = {finding.violation.path for finding in denied}
    denied[:0] = [finding for finding in schema_findings if finding.violation.path not in reported]
    return replace(verdict, manifest=replace(manifest, moved=judged.original_paths))


def _within(path: str, places: Sequence[str]) -> bool:
    return path in places or path.startswith(tuple(f"{place}{mark}" for place in places for mark in ".["))


def _unfilled(path: str, meaning: str) -> Violation:
    return Violation(path, "is still to be filled in", fix=f"Put here: {meaning}.", reason=CauseReason.REQUIRED)


def _by_rules(manifest: Manifest, world: JobWorld, namespace: str) -> Verdict:
    view, policy = NotingView(world.cluster), world.policy(namespace)
    stored = world.cluster.jobs.get((namespace, manifest.name))
    request = review(manifest, namespace=namespace, stored=stored, user=world.user)
    mutation = pipelines.mutate(request, policy=policy, view=view)
    document = mutation.document if mutation.document is not None else manifest.created_in(namespace)
    if mutation.document is not None:
        request = msgspec.structs.replace(request, object=_encode(document))
    if stored is None and _kueue_suspends(request, world.cluster):
        spec = document.get("spec") or {}
        suspended = {**spec, "runPolicy": {**(spec.get("runPolicy") or {}), "suspend": True}}
        request = msgspec.structs.replace(request, object=_encode({**document, "spec": suspended}))
    decide = partial(pipelines.validate, policy=policy, today=world.today)
    validation = decide(request, view=view)
    if validation.requested and world.may_exempt is not None:
        granted = world.may_exempt(namespace, validation.requested)
        validation = decide(request, view=view, granted=granted)
    standing: list[Finding] = []
    if stored is not None:
        # The stored job's own pods and quota use must not count against the job.
        new = msgspec.structs.replace(request, operation="CREATE", old_object=_encode(None))
        refused = decide(new, view=WithoutJobs(world.cluster)).denied
        standing = [finding for finding in refused if finding not in validation.denied]
    if world.cluster.get(NAMESPACES, namespace) is ABSENT:
        validation.told[NAMESPACE] = [Caution(_not_there(namespace, world))]
    unknown = {*view.unknown}
    if world.policies is None and world.instead is None:
        unknown.add(POLICIES)
    depends_on_user = (
        bool(validation.requested)
        or any(exempt.users or exempt.groups or exempt.service_accounts for exempt in policy.document.exemptions)
        or any(rule.needs_user for rule in policy.custom_rules)
    )
    if world.user is None and depends_on_user:
        unknown.add(USER)
    return Verdict(
        manifest,
        namespace,
        validation,
        mutation,
        stored is not None,
        standing,
        frozenset(unknown),
        policy,
    )


def _kueue_suspends(request: AdmissionRequest, view: ClusterView) -> bool:
    try:
        job = mpijob.decode(request.object)
    except ShapeError:
        return False
    queue = queues.of_job(view, request.namespace, job.labels.get(QUEUE_NAME))
    return managed.suspends(view, request.namespace, job, queued=queue is not UNKNOWN and bool(queue))


def _not_there(namespace: str, world: JobWorld) -> str:
    namespaces = world.cluster.all(NAMESPACES)
    near = None if isinstance(namespaces, Answer) else closest_name(namespace, map(str, namespaces))
    hint = f"; did you mean {near}?" if near else ". The API server rejects jobs in it until it is created"
    return f'"{namespace}" does not exist{hint}'


def review(
    manifest: Manifest,
    *,
    namespace: str,
    user: UserInfo | None,
    stored: Mapping[str, Any] | None = None,
    kind: GroupVersionKind = MPI_JOB,
) -> AdmissionRequest:
    document = manifest.created_in(namespace)
    return AdmissionRequest(
        uid="check",
        operation="CREATE" if stored is None else "UPDATE",
        kind=kind,
        name=manifest.name,
        namespace=namespace,
        object=_encode(_applied(stored, document, _last_applied(stored)) if stored else document),
        old_object=_encode(stored),
        user_info=user or UserInfo(),
    )


def _last_applied(stored: Mapping[str, Any]) -> Any:
    try:
        return msgspec.json.decode(stored["metadata"]["annotations"][LAST_APPLIED])
    except (LookupError, TypeError, msgspec.DecodeError):
        return {}


def _applied(stored: Mapping[str, Any], new: Mapping[str, Any], previous: Any) -> dict[str, Any]:
    """`stored` after `kubectl apply` of `new`. `previous` is the object of the last `kubectl apply`.

    Mappings are merged and lists are replaced. Fields of `previous` that are missing in `new` are removed.
    """
    before: Mapping[str, Any] = previous if isinstance(previous, dict) else {}
    result = {key: value for key, value in stored.items() if key in new or key not in before}
    for key, value in new.items():
        old = result.get(key)
        mergeable = isinstance(value, dict) and isinstance(old, dict)
        result[key] = _applied(cast("dict[str, Any]", old), value, before.get(key)) if mergeable else value
    return result


def _encode(document: Mapping[str, Any] | None) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(document))


def not_judged(verdicts: Sequence[Verdict], world: JobWorld) -> Iterator[str]:
    """Messages about rules and policies that the verdicts ignore, because information is missing."""
    unknown = frozenset[str]().union(*(verdict.unknown for verdict in verdicts))
    for why, kinds in world.reasons(unknown).items():
        missing = "a cluster" if why == NO_CLUSTER and len(kinds) > MAX_KINDS_LISTED else ", ".join(kinds)
        yield f"not judged: rules that need {missing} ({why})"
    for namespace in dict.fromkeys(verdict.namespace for verdict in verdicts):
        if policies := world.left_out(namespace):
            yield f'labels of namespace "{namespace}" unknown: these policies are ignored: {", ".join(policies)}'


def load_policies(path: Path) -> PolicySet:
    try:
        return in_force.load_policies(files.read(str(path)), path.stem)
    except files.ManifestError as error:
        fail(error)
    except PolicyError as error:
        fail(*(f"{path}: {line}" for line in str(error).splitlines()))
