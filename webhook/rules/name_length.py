"""The job's name leaves room for scaling up.

Worker pods are called `<name>-worker-<index>`, which must be a DNS label of at most 63 characters. The name must be
short enough for `scaleTo` workers. If a running job is scaled to more workers than its name allows, the operator does
nothing more for the job. The rule `upstream-contract` rejects names that are too long for the current number of
workers.

With `setHostnameAsFQDN` the host of a worker is called `<name>-worker-<index>.<name>.<namespace>.svc.cluster.local`.
The kubelet starts no pod with a host name of more than 64 characters. The violation is a warning if the name would fit
with a shorter cluster domain than `cluster.local`.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import Field

from webhook.api import names
from webhook.api.mpijob import WORKER, MPIJob
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.rules import Violation, rule

_LONGEST_FULL_NAME: Final = 64
_DOMAIN: Final = "cluster.local"


class Settings(RuleSettings):
    """The maximum growth of a job."""

    scale_to: int = Field(100, ge=1, le=1_000_000, description="The name must fit this many workers.")


@rule("name-length", Settings, since="0.1", importance=Importance.MINOR)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    if names.is_generated(job.metadata.name, job.metadata.generate_name):
        path, kind = "metadata.generateName", "generateName"
        base = min(len(job.metadata.generate_name), names.GENERATED_BASE_MAX_LENGTH)
        length = base + names.GENERATED_SUFFIX_LENGTH
    else:
        path, kind, length = "metadata.name", "name", len(job.metadata.name)
    yield from _full_names(job, length, ctx)
    later = _room(settings.scale_to)
    if later < length <= _room(max(job.workers, 1)):
        suffix = names.GENERATED_SUFFIX_LENGTH if kind == "generateName" else 0
        added = f" ({suffix} of them generated)" if suffix else ""
        yield Violation(
            path,
            f"{length} characters{added} leave no room for {settings.scale_to} workers",
            fix=f"Use a {kind} of at most {later - suffix} characters.",
        )


def _full_names(job: MPIJob, length: int, ctx: Context) -> Iterator[Violation]:
    """`length`: characters of the job's name, which a full host name contains twice (`GetNodenameForKernel`)."""
    for role, path, replica in job.replicas:
        if replica.template.spec is None or not replica.template.spec.set_hostname_as_fqdn:
            continue
        host = f"-worker-{max(job.workers, 1) - 1}" if role == WORKER else "-launcher"
        least = 2 * length + len(f"{host}..{ctx.namespace}.svc.")
        if least + len(_DOMAIN) > _LONGEST_FULL_NAME:
            yield Violation(
                f"{path}.template.spec.setHostnameAsFQDN",
                f"the full host name has {least + len(_DOMAIN)} characters, at most {_LONGEST_FULL_NAME} are allowed",
                fix="Remove it, or shorten the job's name.",
                advisory=least < _LONGEST_FULL_NAME,
            )


def _room(workers: int) -> int:
    return names.DNS_LABEL_MAX_LENGTH - len(f"-worker-{workers - 1}")
