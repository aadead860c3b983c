"""Verdicts and assigned contexts against those of OpenShift.

`verdicts.jsonl.xz` has 2,000 generated pods with the verdicts computed by OpenShift's own admission code
(github.com/openshift/apiserver-library-go of 2025-09-17).
"""

import json
import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from tests.support.openshift import DEFAULT_SCCS, ORDER, RESERVED
from webhook.cluster.resources.sccs import SecurityContextConstraints
from webhook.predict.pod_security.pod import PodTemplate, convert
from webhook.predict.scc.constraints import Ranges, in_namespace, in_order, ranges
from webhook.predict.scc.matching import Rejection, fill, rejections

HERE = Path(__file__).parent


def reserved() -> Ranges:
    found = ranges(RESERVED)
    assert found is not None
    return found


CONSTRAINTS = {
    scc.name: in_namespace(scc, reserved())
    for scc in in_order(msgspec.convert(each, SecurityContextConstraints) for each in DEFAULT_SCCS)
}


def verdicts() -> Iterator[dict[str, Any]]:
    with lzma.open(HERE / "verdicts.jsonl.xz") as lines:
        yield from map(json.loads, lines)


def assigned(verdict: dict[str, Any]) -> PodTemplate:
    """The pod with the contexts that OpenShift assigned."""
    pod, of_containers = verdict["assigned"]["pod"], verdict["assigned"]["containers"]
    lists = {
        field: [{**each, "securityContext": of_containers[each["name"]]} for each in verdict["spec"].get(field, ())]
        for field in ("containers", "initContainers")
    }
    return convert({"spec": {**verdict["spec"], **lists, "securityContext": pod}})


def details(words: list[str]) -> set[str]:
    return {re.sub(r'^\S+ (?:Forbidden|Invalid value: (?:"[^"]*"|\S+)): ', "", each) for each in words}


# OpenShift repeats fields of the pod at its containers, and has other names for ports.
_PLACED = re.compile(
    r"spec\.(?:(?:c|initC)ontainers\[\d+\]\.(?!containers|initContainers|host|ports|seL|seccomp)|spec\.securityContext\.seL|volumes)"
    ".*Invalid value"
)


def placed(words: list[str]) -> set[str]:
    """Those with the path and value of a field."""
    return set(filter(_PLACED.match, words))


def in_their_words(rejection: Rejection) -> str:
    path = re.sub(r"(\]\.)securityContext\.|(volumes\[\d+\])\..*", r"\1\2", rejection.path)
    if path.startswith("spec.securityContext"):
        path = f"spec.{path}"
    return f"{path}: Invalid value: {json.dumps(rejection.value)}: {rejection.detail}"


def test_constraints_are_tried_in_openshifts_order() -> None:
    assert list(CONSTRAINTS) == ORDER


def test_every_verdict_and_assigned_context_is_openshifts() -> None:
    for number, verdict in enumerate(verdicts()):
        template = convert({"spec": verdict["spec"]})
        filled = {name: fill(scc, template) for name, scc in CONSTRAINTS.items()}
        refused = {name: list(rejections(CONSTRAINTS[name], each)) for name, each in filled.items()}
        assert [name for name, found in refused.items() if not found] == verdict["accepted"], number
        for name, words in verdict["refused"].items():
            assert {each.detail for each in refused[name]} == details(words), (number, name)
            here = placed([in_their_words(each) for each in refused[name]])
            assert here == placed(words), (number, name)
        if "assigned" in verdict:
            assert filled["restricted-v2"] == assigned(verdict), number
    assert number == 1999
