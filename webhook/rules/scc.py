"""On OpenShift, an SCC that the pods may use accepts launcher and workers.

OpenShift admits a pod only if one of its Security Context Constraints (SCC) accepts the pod's users, groups, volumes,
capabilities and host fields. OpenShift does not check the templates of jobs. This rule checks both templates as
OpenShift checks pods: it tries each SCC that the pods may use, in OpenShift's order, fills in the values of the SCC,
and checks the pod.

The pods may use the SCCs of their ServiceAccount. In addition, workers may use the SCCs of the account `mpi-operator`
in the namespace `mpi-operator`, and the launcher may use the SCCs of the Job controller. If the operator has another
account that may use more SCCs, this rule is too strict: set its action to `warn`.

Nothing is checked in namespaces without OpenShift's annotations (`openshift.io/sa.scc.uid-range` and others), or if the
SCCs could not be read. If it is unknown which SCCs the pods may use, nothing is rejected: a warning names the field if
neither `restricted-v2` nor `restricted-v3` accepts the pods. OpenShift grants these two SCCs to all accounts.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from webhook.api.mpijob import MPIJob, replica_path
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.predict.pod_security.pod import PodTemplate
from webhook.predict.scc.matching import Rejection
from webhook.predict.scc.outcome import OPEN, Outcome, account_of, outcomes
from webhook.rules import CauseReason, Degree, Violation, rule, shortened
from webhook.rules.limits import MAX_REJECTIONS

_ADDED: Final = "capabilities.add"


@rule("scc", RuleSettings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: RuleSettings, ctx: Context) -> Iterator[Violation]:
    for role, outcome in outcomes(job, ctx).items():
        if outcome.rejections:
            yield _violation(f"{replica_path(role)}.template", outcome, ctx.namespace)


def _violation(template: str, outcome: Outcome, namespace: str) -> Violation:
    listed = _distinct(outcome.rejections)[: MAX_REJECTIONS + 1]
    first, *others = listed
    by = f'SCC "{outcome.scc}"' if outcome.scc else "OpenShift"
    more = ", ".join(f"{_field(rejection.path)} {_shown(rejection.value)} ({rejection.detail})" for rejection in others)
    return Violation(
        f"{template}.{first.path}",
        f"{by} rejects {_shown(first.value)}: {first.detail}{more and f'; also {more}'}",
        fix=_fix(listed, outcome, namespace),
        reason=CauseReason.FORBIDDEN,
        advisory=outcome.assumed,
        degree=Degree(template, frozenset(f"{rejection.path}={rejection.value}" for rejection in outcome.rejections)),
    )


def _distinct(rejections: Iterable[Rejection]) -> list[Rejection]:
    """Each rejection once. If a container and an init container have the same rejection, the container's remains.

    An unset `hostUsers` is left out if there are other rejections, because the injection `scc` sets it.
    """
    distinct: dict[object, Rejection] = {}
    for rejection in sorted(rejections, key=lambda rejection: rejection.path.startswith("spec.initContainers")):
        distinct.setdefault((_field(rejection.path), _shown(rejection.value), rejection.detail), rejection)
    return [rejection for rejection in distinct.values() if rejection[:2] != OPEN] or [*distinct.values()]


def _fix(listed: Collection[Rejection], outcome: Outcome, namespace: str) -> str:
    of_root = [rejection for rejection in listed if _field(rejection.path) == "runAsUser" and rejection.value == 0]
    fields = " and ".join(dict.fromkeys(_in_fix(rejection) for rejection in listed if rejection not in of_root))
    if of_root:
        more = f", and remove {fields}" if fields else ""
        return f"Use an image with its own user{more}: sshd runs as root under no default SCC except privileged."
    ways = ["set hostUsers to false" if fields == "hostUsers" else f"remove {fields}"]
    if outcome.wider == "privileged" and all(_field(rejection.path) == _ADDED for rejection in listed):
        ways.append("have an administrator write an SCC of your own that allows it")
    elif outcome.wider:
        account = account_of(outcome.filled or PodTemplate(), namespace).rpartition(":")[2]
        command = f"oc adm policy add-scc-to-user {outcome.wider} -z {account} -n {namespace}"
        # Most images can use ssh only as the image's own user, so a wider SCC is suggested first.
        ways.insert(0 if fields == "runAsUser" else 1, f"have an administrator run: {command}")
        if outcome.assumed:
            ways[0] = f"if the pods may not use {outcome.wider}, {ways[0]}"
    text = ", or ".join(ways)
    return f"{text[0].upper()}{text[1:]}."


def _field(path: str) -> str:
    """The field below the security context, or the path below the pod's spec."""
    return path.removeprefix("spec.").rpartition("securityContext.")[2]


def _in_fix(rejection: Rejection) -> str:
    field = _field(rejection.path)
    return f"{rejection.value} from {field}" if field == _ADDED else field


def _shown(value: object) -> str:
    return shortened(json.dumps(value))
