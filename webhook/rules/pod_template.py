"""The API server accepts the pods of the pod templates.

The API server validates only pods. It stores a job whose template has a volume mount without its volume, and rejects
each pod that the operator creates later, on every attempt; the job's status stays empty. This rule makes the API
server's checks of a pod, with the defaults of the API server and the operator, as far as the result is certain when the
job is submitted. It covers types, choices, numbers, names, references inside the template, resources, probes, volumes,
tolerations, security contexts, ports, affinity and spread.

Other rules check the rest: `images` checks images, `upstream-contract` checks negative and invalid quantities and the
operator's volumes and names, `gpus` checks accelerators, `limit-range` checks the defaults of LimitRanges, and
`references` and `priority` check objects that must exist.

The rule also rejects containers that the kubelet never starts: containers with user 0 and `runAsNonRoot: true`, and
containers with a volume of huge pages that no container requests. `hostNetwork` with `hostUsers: false` is rejected,
because its feature gate `UserNamespacesHostNetworkSupport` is off in Kubernetes 1.35. If the gate is on, exempt the
job.

Memory or storage below a mebibyte is a warning: `memory: 64` means 64 bytes. A probe that names a port which the
container does not define never succeeds, and is a warning. These are warnings too: an `httpGet` probe of sshd's port
(22 or 2222), a `mountPath` that ends with Docker's `:ro` or `:rw`, and a number of GPUs in `nodeSelector`. If a worker
runs only sshd, `httpGet` and gRPC probes and a `tcpSocket` probe of another port are warnings. Contradictory conditions
on a label in every term of a required node affinity are a warning.

The rule does not check fields that depend on other feature gates, or that MPIJobs rarely use: `hostnameOverride`,
`restartPolicyRules`, `workloadRef`, the sum of requests compared with the pod's requests, tolerations with `Gt` or
`Lt`, projected trust bundles and certificates, options for Windows, and the details of storage that is mounted without
a claim.
"""

from collections.abc import Iterator, Mapping

from webhook.api.mpijob import MPIJob
from webhook.cluster.resources.limit_ranges import LIMIT_RANGES
from webhook.cluster.view import UNKNOWN
from webhook.kit.context import Context
from webhook.kit.settings import RuleSettings
from webhook.predict.pod_template import Fault, Role, faults
from webhook.rules import CauseReason, Violation, rule
from webhook.rules.upstream_contract import RESERVED_VOLUMES


class Settings(RuleSettings):
    """No settings except the action: the API server's checks cannot be changed."""


@rule("pod-template", Settings, since="0.1")
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    return violations(job, ctx, added=RESERVED_VOLUMES)


def violations(job: MPIJob, ctx: Context, *, added: Mapping[str, tuple[str, ...]]) -> Iterator[Violation]:
    """Checks both templates. `added` has the names of the volumes that the operator adds, by role."""
    templates = [spec.template for _, _, spec in job.replicas]
    roles = [
        Role(role, f"{path}.template", spec.template, added.get(role, ()), spec.restart_policy == "Never", templates)
        for role, path, spec in job.replicas
    ]
    ranges = ctx.view.within(LIMIT_RANGES, ctx.namespace)
    without_ranges = None if ranges is UNKNOWN else not ranges
    return map(_violation, faults(ctx.document, roles, without_ranges=without_ranges))


def _violation(fault: Fault) -> Violation:
    return Violation(fault.path, fault.message, fault.fix, reason=CauseReason[fault.kind.name], advisory=fault.advisory)
