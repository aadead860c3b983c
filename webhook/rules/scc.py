"""On OpenShift, an SCC that the pods may use accepts launcher and workers.

OpenShift admits a pod only if one of its Security Context Constraints (SCC) accepts the users, groups, volumes,
capabilities and host fields of the pod. OpenShift does not check the pod templates of a job, so it admits a job whose
pods no SCC accepts. This rule checks both templates, injections included, as OpenShift checks pods: it tries each SCC
that the pods may use, in OpenShift's order. It fills in the values of the SCC, then checks the pod.

The pods of a job may use the SCCs of their ServiceAccount. In addition, workers may use the SCCs of the account
`mpi-operator` in the namespace `mpi-operator`, and the launcher those of the controller of Jobs. If the operator has
another account that may use more SCCs, this rule is too strict: set its action to warn.

Nothing is checked in namespaces without OpenShift's annotations (`openshift.io/sa.scc.uid-range` and others), or if the
SCCs, or the accounts that may use them, could not be read.
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
    """One violation for each role, at the first rejected field."""
    for role, outcome in outcomes(job, ctx).items():
        if outcome.rejections:
            yield _violation(f"{replica_path(role)}.template", outcome, ctx.namespace)


def _violation(template: str, outcome: Outcome, namespace: str) -> Violation:
    listed = _distinct(outcome.rejections)[: MAX_REJECTIONS + 1]
    first, *others = listed
    by = f'SCC "{outcome.scc}"' if outcome.scc else "OpenShift"
    more = ", ".join(f"{_field(each.path)} {_shown(each.value)} ({each.detail})" for each in others)
    return Violation(
        f"{template}.{first.path}",
        f"{by} rejects {_shown(first.value)}: {first.detail}{more and f'; also {more}'}",
        fix=_fix(listed, outcome, namespace),
        reason=CauseReason.FORBIDDEN,
        degree=Degree(template, frozenset(f"{each.path}={each.value}" for each in outcome.rejections)),
    )


def _distinct(rejections: Iterable[Rejection]) -> list[Rejection]:
    """Each rejection once, at a container rather than at an init container that copies it.

    An unset field is left out if there are other rejections: the injection `scc` sets `hostUsers`.
    """
    distinct: dict[object, Rejection] = {}
    for each in sorted(rejections, key=lambda each: each.path.startswith("spec.initContainers")):
        distinct.setdefault((_field(each.path), _shown(each.value), each.detail), each)
    return [each for each in distinct.values() if each[:2] != OPEN] or [*distinct.values()]


def _fix(listed: Iterable[Rejection], outcome: Outcome, namespace: str) -> str:
    fields = " and ".join(dict.fromkeys(map(_in_fix, listed)))
    ways = ["set hostUsers to false" if fields == "hostUsers" else f"remove {fields}"]
    if outcome.wider:
        account = account_of(outcome.filled or PodTemplate(), namespace).rpartition(":")[2]
        command = f"oc adm policy add-scc-to-user {outcome.wider} -z {account} -n {namespace}"
        # Most images cannot use ssh without their user, so a wider SCC is suggested first.
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
