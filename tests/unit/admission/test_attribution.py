"""What was injected is told as the injection's, not as the user's."""

from datetime import date

import pytest

from tests.support.jobs import changed, request
from tests.support.nodes import node
from tests.support.policies import HEADER
from webhook.admission import pipelines
from webhook.admission.pipelines import load_policy
from webhook.cluster.snapshot import Snapshot

POLICY = load_policy(f"{HEADER}injections: {{node-selector: {{enabled: true, labels: {{example.com/pool: a}}}}}}")
VIEW = Snapshot([node("n", **{"nvidia.com/gpu": "64"})])
PATH = "spec.mpiReplicaSpecs[Worker].template.spec.nodeSelector[example.com/pool]"
WROTE = ", which the injection node-selector wrote"


def told(forged: str | None = None, **selector: str) -> list[tuple[str, str]]:
    """(message, fix) of what is said of the label."""
    job = changed({"Worker.template.spec.nodeSelector": selector}) if selector else changed({})
    mutated = pipelines.mutate(request(job), policy=POLICY, view=VIEW).document
    if forged is not None:
        mutated["metadata"]["annotations"]["training.openshift.io/injected"] = forged
    decision = pipelines.validate(request(mutated), policy=POLICY, view=VIEW, today=date.min)
    found = (each.violation for each in (*decision.denied, *decision.warned))
    return [(each.message, each.fix) for each in found if each.path == PATH]


def test_a_label_of_the_policy_is_the_policys() -> None:
    [(message, fix)] = told()
    assert message.endswith(WROTE)
    assert fix == "Write your own value there, or ask your administrator."


def test_a_label_of_the_users_is_the_users() -> None:
    [(message, fix)] = told(**{"example.com/pool": "b"})
    assert "injection" not in message
    assert "administrator" not in fix


@pytest.mark.parametrize(
    "forged", ["", "{", "[]", '{"x": ["/spec 1"]}', '{"node-selector": ["Worker:/spec/nodeSelector/a b"]}']
)
def test_a_record_that_cannot_be_read_changes_nothing(forged: str) -> None:
    [(message, _)] = told(forged)
    assert WROTE not in message
