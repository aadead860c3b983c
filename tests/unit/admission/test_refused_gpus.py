"""What a refused job asked for; how it is counted is in test_telemetry.py."""

from tests.support.devices import claim_template, claims, exactly
from tests.support.jobs import changed
from tests.support.rule_checks import defaulted
from webhook.admission import refused_gpus
from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.cluster.snapshot import Snapshot
from webhook.kit.context import Context
from webhook.rules import Violation


def test_devices_of_claims_count_too() -> None:
    job = defaulted(changed({**claims("pair"), "Worker.replicas": 3}))
    refused = Decision(denied=[Finding("gpus", Violation("spec", "is wrong", fix="Mend it."))])
    view = Snapshot([claim_template("pair", exactly(count=2))])
    found = refused_gpus.of(refused, job, Context(operation="CREATE", namespace="team-a", username="alice", view=view))
    assert found == {"deviceclass.resource.kubernetes.io/gpu.nvidia.com": 6}
