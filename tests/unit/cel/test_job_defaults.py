"""The operator's defaults in JSON are those that the typed job gets."""

import msgspec
import pytest

from tests.support.jobs import REMOVE, changed
from webhook.api import mpijob
from webhook.cel.evaluation import with_defaults

BARE = {
    "spec.slotsPerWorker": REMOVE,
    "spec.runPolicy": REMOVE,
    "spec.sshAuthMountPath": REMOVE,
    "spec.mpiImplementation": REMOVE,
    "spec.launcherCreationPolicy": REMOVE,
    "Worker.replicas": REMOVE,
    "Launcher.replicas": REMOVE,
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        BARE,
        {"spec.runPolicy": None, "spec.slotsPerWorker": None, "spec.mpiImplementation": ""},
        {"spec.runPolicy": {"cleanPodPolicy": None}, "Worker.restartPolicy": "Always", "Worker.replicas": None},
        {"Worker": REMOVE},
        {"Launcher": None},
        {"spec.mpiReplicaSpecs": None},
    ],
)
def test_both_fill_in_the_same(changes: dict[str, object]) -> None:
    data = msgspec.json.encode(changed(changes))
    typed = mpijob.apply_operator_defaults(mpijob.decode(data))
    filled = mpijob.decode(msgspec.json.encode(with_defaults(msgspec.json.decode(data))))
    assert filled == typed


@pytest.mark.parametrize("job", [{}, {"spec": None}])
def test_what_has_no_spec_stays_as_it_is(job: dict[str, object]) -> None:
    assert with_defaults(dict(job)) == job
