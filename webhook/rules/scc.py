"""On OpenShift, an SCC that the pods may use accepts launcher and workers.

OpenShift admits a pod only under Security Context Constraints (SCC) that accept all of it: its users, groups, volumes,
capabilities and host fields. A job has pod templates, which OpenShift does not judge, so a job that no SCC accepts gets
no pods. Here both templates, injections included, are judged as OpenShift's admission judges the pods: the SCCs that
the pods may use are tried in its order, each after filling in its values.

The pods of a job may use the SCCs of their ServiceAccount, those of the account `mpi-operator` in the namespace
`mpi-operator` for workers, and those of the controller of Jobs for the launcher. An operator with another account, and
with rights to more SCCs than the pods have, makes this rule too strict: set its action to warn.

In namespaces without the annotations that OpenShift puts there (`openshift.io/sa.scc.uid-range` and others), nothing is
judged. The same holds where the SCCs, or who may use them, could not be read.
"""

import json
from collections.abc import Iterator

from webhook.api.mpijob import MPIJob, replica_path
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.predict.pod_security.pod import PodTemplate
from webhook.predict.scc.matching import Rejection
from webhook.predict.scc.outcome import Outcome, account_of, outcomes
from webhook.rules import CauseReason, Degree, Violation, rule, shortened
from webhook.rules.limits import MAX_REJECTIONS


@rule("scc", RuleSettings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
    """One violation for each role, at the first field that is rejected."""
    for role, found in outcomes(job, ctx).items():
        if found.rejections:
            yield _violation(f"{replica_path(role)}.template", found, ctx.namespace)


def _violation(template: str, found: Outcome, namespace: str) -> Violation:
    first, *others = found.rejections
    by = f'SCC "{found.scc}"' if found.scc else "OpenShift"
    message = f"{by} rejects {_shown(first.value)}: {first.detail}"
    if others:
        more = (f"{_field(each.path)} {_shown(each.value)} ({each.detail})" for each in others[:MAX_REJECTIONS])
        message += f"; also {', '.join(more)}"
    fields = " and ".join(dict.fromkeys(_in_fix(each) for each in found.rejections[: MAX_REJECTIONS + 1]))
    fix = "Set hostUsers to false" if fields == "hostUsers" else f"Remove {fields}"
    if found.wider:
        account = account_of(found.filled or PodTemplate(), namespace).rpartition(":")[2]
        command = f"oc adm policy add-scc-to-user {found.wider} -z {account} -n {namespace}"
        fix += f", or have an administrator run: {command}"
    return Violation(
        f"{template}.{first.path}",
        message,
        fix=f"{fix}.",
        reason=CauseReason.FORBIDDEN,
        degree=Degree(template, frozenset(f"{each.path}={each.value}" for each in found.rejections)),
    )


def _field(path: str) -> str:
    """The field below the security context, or the path below the pod's spec."""
    return path.removeprefix("spec.").rpartition("securityContext.")[2]


def _in_fix(rejection: Rejection) -> str:
    field = _field(rejection.path)
    return f"{rejection.value} from {field}" if field == "capabilities.add" else field


def _shown(value: object) -> str:
    return shortened(json.dumps(value))
