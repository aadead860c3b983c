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
from collections.abc import Iterable, Iterator

from webhook.api.mpijob import MPIJob, replica_path
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.predict.pod_security.pod import PodTemplate
from webhook.predict.scc.matching import Rejection
from webhook.predict.scc.outcome import OPEN, Outcome, account_of, outcomes
from webhook.rules import CauseReason, Degree, Violation, rule, shortened
from webhook.rules.limits import MAX_REJECTIONS


@rule("scc", RuleSettings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
    """One violation for each role, at the first field that is rejected."""
    for role, found in outcomes(job, ctx).items():
        if found.rejections:
            yield _violation(f"{replica_path(role)}.template", found, ctx.namespace)


def _violation(template: str, found: Outcome, namespace: str) -> Violation:
    told = _distinct(found.rejections)[: MAX_REJECTIONS + 1]
    first, *others = told
    by = f'SCC "{found.scc}"' if found.scc else "OpenShift"
    more = ", ".join(f"{_field(each.path)} {_shown(each.value)} ({each.detail})" for each in others)
    return Violation(
        f"{template}.{first.path}",
        f"{by} rejects {_shown(first.value)}: {first.detail}{more and f'; also {more}'}",
        fix=_fix(told, found, namespace),
        reason=CauseReason.FORBIDDEN,
        degree=Degree(template, frozenset(f"{each.path}={each.value}" for each in found.rejections)),
    )


def _distinct(rejections: Iterable[Rejection]) -> list[Rejection]:
    """Each fault once, containers before init containers, such as that of `launcher-wait`, which copies the first. What
    the job leaves open is a fault only if it is the only one: the injection `scc` sets `hostUsers`.
    """
    found: dict[object, Rejection] = {}
    for each in sorted(rejections, key=lambda each: each.path.startswith("spec.initContainers")):
        found.setdefault((_field(each.path), _shown(each.value), each.detail), each)
    return [each for each in found.values() if each[:2] != OPEN] or [*found.values()]


def _fix(told: Iterable[Rejection], found: Outcome, namespace: str) -> str:
    fields = " and ".join(dict.fromkeys(map(_in_fix, told)))
    ways = ["set hostUsers to false" if fields == "hostUsers" else f"remove {fields}"]
    if found.wider:
        account = account_of(found.filled or PodTemplate(), namespace).rpartition(":")[2]
        command = f"oc adm policy add-scc-to-user {found.wider} -z {account} -n {namespace}"
        # Without its user an image mostly cannot use ssh.
        ways.insert(0 if fields == "runAsUser" else 1, f"have an administrator run: {command}")
    text = ", or ".join(ways)
    return f"{text[0].upper()}{text[1:]}."


def _field(path: str) -> str:
    """The field below the security context, or the path below the pod's spec."""
    return path.removeprefix("spec.").rpartition("securityContext.")[2]


def _in_fix(rejection: Rejection) -> str:
    field = _field(rejection.path)
    return f"{rejection.value} from {field}" if field == "capabilities.add" else field


def _shown(value: object) -> str:
    return shortened(json.dumps(value))
