"""No rule raises an exception for any job, with or without objects of a cluster."""

import json
from collections.abc import Mapping
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench.replies.cases import clusters
from tests.support.any_job import Json, any_job
from tests.support.rule_checks import run
from tests.support.strategies import PROPERTY
from webhook.api.annotations import NETWORKS
from webhook.cluster.snapshot import Snapshot
from webhook.rules import REGISTRY

# The first namespace of the clusters is renamed to the namespace that `run` uses.
VIEWS: Final = [Snapshot(json.loads(json.dumps(each).replace("team-0000", "team-a"))) for each in clusters()]
QUEUE: Final = {"kueue.x-k8s.io/queue-name": "team", "kueue.x-k8s.io/priority-class": "gone"}
JOBS: Final = any_job(
    annotations=st.just({NETWORKS: "ib,gone"}),
    command=st.sampled_from([["mpirun", "-np", "4", "x"], ["sh", "-c", "mpirun -np 4 x"]]),
    drop=st.just(["ALL"]),
    image=st.sampled_from(["ubuntu", " a", "https://A/b:C", "a@sha256:1", "quay.io/a:" + "b" * 200]),
    key=st.just("compliance"),
    labels=st.just(QUEUE),
    launcherCreationPolicy=st.just("WaitForWorkersReady"),
    medium=st.sampled_from(["Memory", ""]),
    operator=st.just("In"),
    runAsUser=st.sampled_from([0, 1000]),
    runLauncherAsWorker=st.just(True),
    sshAuthMountPath=st.sampled_from(["/root/.ssh", "/root/.ssh/", "/home/mpiuser/.ssh", ""]),
)
# Settings that enable checks that are off by default.
SETTINGS: Final[Mapping[str, list[dict[str, Any]]]] = {
    "compliance": [
        {
            "nodeLabels": {"compliance": "hipaa"},
            "storageClasses": ["encrypted"],
            "requireMemoryEmptyDir": True,
            "refuseHostPath": True,
            "jobAnnotations": {"audit.openshift.io/log-to-siem": "true"},
            "podAnnotations": {"audit.openshift.io/log-to-siem": "true"},
        }
    ],
    "gang": [{"scheduler": "volcano"}, {"scheduler": "scheduler-plugins-scheduler"}],
    "images": [
        {"allowedRegistries": ["quay.io"], "requireDigest": True, "pullSecretsFor": ["docker.io"]},
        {"refuseLatest": True},
    ],
    "network-policy": [{"posture": "restricted"}],
    "priority": [{"allowed": ["high"], "allowedWorkload": ["prod"]}],
    "tier": [{"name": "x", "maxWorkers": 2, "maxGpus": 0, "implementations": ["OpenMPI"], "features": []}],
    "volcano-queue": [{"gangScheduling": True}, {"gangScheduling": True, "hierarchy": True}],
}


@settings(PROPERTY, max_examples=100)
@given(JOBS)
def test_no_rule_raises_for_any_job(job: Json) -> None:
    for rule in REGISTRY:
        for chosen in ({}, *SETTINGS.get(rule, ())):
            for view in VIEWS:
                run(rule, job, chosen, view=view)
