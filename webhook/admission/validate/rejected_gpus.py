"""The accelerators that a rejected job requested, for a metric."""

from collections import Counter

from webhook.admission.decision import Decision
from webhook.admission.limits import MAX_COUNTED_GPUS
from webhook.api.accelerators import counted_accelerators
from webhook.api.mpijob import MPIJob
from webhook.kit.context import Context
from webhook.predict.devices import by_claims
from webhook.predict.job_pods import job_pods


def of(decision: Decision, job: MPIJob, ctx: Context) -> dict[str, int]:
    """The number of accelerators by name; empty if the job is admitted or already exists."""
    if decision.allowed or ctx.operation != "CREATE":
        return {}
    accelerators: Counter[str] = Counter()
    for pods in job_pods(job, ctx):
        claims = pods.shape.device_claims
        for name, count in (*counted_accelerators(pods.requests), *by_claims(claims, ctx.namespace, ctx.view)):
            accelerators[name] += pods.count * count
    return {name: min(count, MAX_COUNTED_GPUS) for name, count in accelerators.items()}
