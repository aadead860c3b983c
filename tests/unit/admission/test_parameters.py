"""What whoever creates a job reads of values of the Namespace that cannot be used."""

from datetime import date
from typing import Any

import pytest

from tests.support import jobs
from tests.support.jobs import GOOD
from tests.support.policies import layer
from webhook.admission import pipelines
from webhook.admission.decision import Decision
from webhook.admission.messages import MAX_WARNING_LENGTH
from webhook.cluster.snapshot import Snapshot
from webhook.policy.in_force import PolicySet

KEY = "platform.example.com/max-gpus"
GPUS = f"rules: {{gpus: {{max: {{fromNamespaceAnnotation: {KEY}, default: 8, max: 16}}}}}}"
TIMEOUT = "injections: {job-timeout: {default: {fromNamespaceAnnotation: x/y, default: 24h}}}"
POLICIES = PolicySet([layer("base", GPUS), layer("time", TIMEOUT)])
LIMITS = "Worker.template.spec.containers.0.resources.limits"


def decide(hook: Any, job: Any, annotations: dict[str, str] | None, **fields: Any) -> Decision:
    metadata = {"name": "team-a", "annotations": annotations}
    known = [] if annotations is None else [{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}]
    return pipelines.decide(
        hook,
        jobs.request(job, **fields),
        policies=POLICIES,
        view=Snapshot(known),
        today=date(2027, 1, 1),
        time_left=lambda: 9.0,
    )


def asking_for(gpus: str) -> Any:
    return jobs.changed({LIMITS: {"nvidia.com/gpu": gpus}})


@pytest.mark.parametrize(
    ("annotations", "gpus", "denied"),
    [
        ({}, "8", []),
        ({}, "9", ["gpus"]),
        ({KEY: "9"}, "9", []),
        ({KEY: "4"}, "8", ["gpus"]),
        ({KEY: "17"}, "9", ["gpus"]),
    ],
)
def test_the_verdict_is_by_the_namespace(annotations: dict[str, str], gpus: str, denied: list[str]) -> None:
    found = decide("validate", asking_for(gpus), annotations).denied
    assert [finding.rule for finding in found if finding.rule == "gpus"] == denied


def test_a_wrong_value_is_a_warning() -> None:
    decision = decide("validate", GOOD, {KEY: "many"})
    assert decision.allowed
    (warning,) = (text for text in decision.warnings if "[gpus]" in text)
    assert warning.startswith("metadata.namespace: its annotation platform.example.com/max-gpus must be a whole number")
    assert len(warning) <= MAX_WARNING_LENGTH
    (finding,) = (each for each in decision.warned if each.rule == "gpus")
    assert finding.violation.fix == "Ask whoever administers the namespace to correct it."


def test_an_update_is_not_warned_of_it() -> None:
    assert not [
        each
        for each in decide("validate", GOOD, {KEY: "many"}, old=GOOD, operation="UPDATE").warned
        if each.violation.path == "metadata.namespace"
    ]


def test_a_wrong_value_of_an_injection_is_a_caution() -> None:
    decision = decide("mutate", GOOD, {"x/y": "soon"})
    assert decision.patch
    (warning,) = (text for text in decision.warnings if "x/y" in text)
    assert warning.startswith(
        "job-timeout: metadata.namespace: its annotation x/y is not a duration; accepted: 72h, 7d"
    )
