"""A pair of request and limit that two rules refuse is told once."""

from datetime import date
from typing import Any

import pytest

from tests.support.jobs import changed, request
from tests.support.quota_objects import cluster
from webhook.admission.pipelines import load_policy, validate

HEAD = "apiVersion: policy.training.openshift.io/v1\nkind: MPIJobPolicy\n"
RESOURCES = "Worker.template.spec.containers.0.resources"


def refused(asked: dict[str, Any], bounds: dict[str, Any], policy: str = "") -> list[tuple[str, str]]:
    limits = {"type": "Container", "max": bounds, "default": bounds, "defaultRequest": bounds}
    bound = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "team-a"},
        "spec": {"limits": [limits]},
    }
    sent = request(changed({RESOURCES: asked}))
    decision = validate(sent, policy=load_policy(HEAD + policy), view=cluster(bound), today=date.min)
    return [(each.rule, each.violation.fix) for each in decision.denied]


ABOVE = {"requests": {"cpu": "16"}, "limits": {"cpu": "8"}}
BOTH = ("limit-range", "Set limits[cpu] to 4 and requests[cpu] to 4.")
OWN = ("pod-template", "Set it to 8 or less, or raise the limit.")


@pytest.mark.parametrize(
    ("asked", "bounds", "policy", "told"),
    [
        (ABOVE, {"cpu": "4"}, "", [BOTH]),
        (ABOVE, {"cpu": "32"}, "", [OWN]),
        (ABOVE, {"cpu": "4"}, "rules: {limit-range: {action: warn}}", [OWN]),
        ({"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}, {"cpu": "4"}, "", []),
    ],
)
def test_a_pair_is_told_once(
    asked: dict[str, Any], bounds: dict[str, Any], policy: str, told: list[tuple[str, str]]
) -> None:
    assert refused(asked, bounds, policy) == told


def test_other_pairs_are_told_beside_it() -> None:
    asked = {"requests": {"cpu": "16", "memory": "2Gi"}, "limits": {"cpu": "8", "memory": "1Gi"}}
    assert refused(asked, {"cpu": "4"}) == [BOTH, ("pod-template", "Set it to 1Gi or less, or raise the limit.")]
