"""Jobs that are too large to judge: found before anything else, and then nothing else looks at them.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/ gives a webhook seconds, and
one event loop answers everybody.
"""

import msgspec

from webhook.admission.messages import Finding
from webhook.api.mpijob import MPIJob
from webhook.api.review import AdmissionRequest
from webhook.kit.context import Context
from webhook.kit.settings import Action
from webhook.policy.in_force import Policy
from webhook.rules import job_size

INJECT_NOTHING = "too large to judge"
AS_STORED = "too large to judge, and its pods stay as they are stored"


def findings(job: MPIJob, ctx: Context, policy: Policy) -> list[Finding]:
    """Why the job is not looked at: the policy's own bounds where it denies by them, else the ceilings of these."""
    return [Finding(job_size.RULE, violation) for violation in job_size.check(job, _bounds(policy), ctx)]


def as_a_whole(document: msgspec.Raw, policy: Policy) -> bool:
    """Whether the bytes of the object, `managedFields` and all, are beyond the rule's bounds, whatever it leads to."""
    settings = policy.settings(job_size.RULE)
    bounds = settings if isinstance(settings, job_size.Settings) else job_size.CEILING
    return job_size.whole(document, bounds) is not None


def unread(document: msgspec.Raw) -> list[Finding]:
    """Why the object is not even decoded: no API server could store it."""
    fault = job_size.whole(document)
    return [Finding(job_size.RULE, fault)] if fault else []


def beyond_ceilings(job: MPIJob, ctx: Context) -> bool:
    """Whether no policy lets a job of this size be looked at."""
    return any(job_size.check(job, job_size.CEILING, ctx))


def changes_only_suspend(request: AdmissionRequest) -> bool:
    """Whether spec (except `suspend`), labels and annotations are unchanged; the API server writes both alike."""
    try:
        return _but_suspend(request.object) == _but_suspend(request.old_object)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError):
        return False


def _bounds(policy: Policy) -> job_size.Settings:
    settings = policy.settings(job_size.RULE)
    if policy.action(job_size.RULE) is not Action.DENY or not isinstance(settings, job_size.Settings):
        return job_size.CEILING
    return settings


class _Metadata(msgspec.Struct):
    labels: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    annotations: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class _Job(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict)


def _but_suspend(document: msgspec.Raw) -> tuple[object, ...]:
    job = msgspec.json.decode(document, type=_Job)
    spec = {name: bytes(value) for name, value in job.spec.items() if name != "runPolicy"}
    policy = msgspec.json.decode(job.spec.get("runPolicy", b"null")) or {}
    policy.pop("suspend", None)
    return spec, policy, bytes(job.metadata.labels), bytes(job.metadata.annotations)
