"""Pods are matched with SCCs. The results equal OpenShift's results.

`verdicts.jsonl.xz` has 2,000 generated pods with the results of OpenShift's own admission code
(github.com/openshift/apiserver-library-go of 2025-09-17).
"""

import json
import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from tests.support.openshift import DEFAULT_SCCS, ORDER, RESERVED
from webhook.cluster.resources.sccs import SecurityContextConstraints
from webhook.predict.pod_security.pod import PodTemplate, convert
from webhook.predict.scc.constraints import Ranges, in_namespace, in_order, ranges
from webhook.predict.scc.matching import Rejection, fill, rejections

HERE = Path(__file__).parent


NAMESPACE = cast("Ranges", ranges(RESERVED))
CONSTRAINTS = {
    scc.name: in_namespace(scc, NAMESPACE)
    for scc in in_order(msgspec.convert(manifest, SecurityContextConstraints) for manifest in DEFAULT_SCCS)
}


def verdicts() -> Iterator[dict[str, Any]]:
    with lzma.open(HERE / "verdicts.jsonl.xz") as lines:
        yield from map(json.loads, lines)


def assigned(verdict: dict[str, Any]) -> PodTemplate:
    """The pod with the security contexts that OpenShift assigned."""
    pod, of_containers = verdict["assigned"]["pod"], verdict["assigned"]["containers"]
    lists = {
        field: [{**each, "securityContext": of_containers[each["name"]]} for each in verdict["spec"].get(field, ())]
        for field in ("containers", "initContainers")
    }
    return convert({"spec": {**verdict["spec"], **lists, "securityContext": pod}})


def details(messages: list[str]) -> set[str]:
    return {re.sub(r'^\S+ (?:Forbidden|Invalid value: (?:"[^"]*"|\S+)): ', "", each) for each in messages}


# This pattern matches messages that can be compared. OpenShift names ports differently, and reports fields of the pod a
# second time at each container.
_PLACED = re.compile(
    r"spec\.(?:(?:c|initC)ontainers\[\d+\]\.(?!containers|initContainers|host|ports|seL|seccomp)|spec\.securityContext\.seL|volumes)"
    ".*Invalid value"
)


def placed(messages: list[str]) -> set[str]:
    """The messages whose path and value can be compared."""
    return set(filter(_PLACED.match, messages))


def in_their_words(rejection: Rejection) -> str:
    path = re.sub(r"(\]\.)securityContext\.|(volumes\[\d+\])\..*", r"\1\2", rejection.path)
    if path.startswith("spec.securityContext"):
        path = f"spec.{path}"
    return f"{path}: Invalid value: {json.dumps(rejection.value)}: {rejection.detail}"


def test_constraints_are_tried_in_openshifts_order() -> None:
    assert list(CONSTRAINTS) == ORDER


def test_results_and_assigned_contexts_equal_the_results_of_openshift() -> None:
    for number, verdict in enumerate(verdicts()):
        template = convert({"spec": verdict["spec"]})
        filled = {name: fill(scc, template) for name, scc in CONSTRAINTS.items()}
        rejected = {name: list(rejections(CONSTRAINTS[name], pod)) for name, pod in filled.items()}
        assert [name for name, violations in rejected.items() if not violations] == verdict["accepted"], number
        for name, messages in verdict["refused"].items():
            assert {rejection.detail for rejection in rejected[name]} == details(messages), (number, name)
            ours = placed([in_their_words(rejection) for rejection in rejected[name]])
            assert ours == placed(messages), (number, name)
        if "assigned" in verdict:
            assert filled["restricted-v2"] == assigned(verdict), number
    assert number == 1999
